# bash completion for twp-certgen. Made by scripts/make-completions from its --help.
_twp_certgen() {
  local cur=$2 prev=$3 path='' i words
  case $prev in --ca|--cert|--days|--host|--key|--name|--out|--password|--store) COMPREPLY=($(compgen -f -- "$cur")); return ;; esac
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in ca|export|leaf|show|trust|untrust) path+=" ${COMP_WORDS[i]}" ;; esac
  done
  case $path in
    '') words='ca leaf trust untrust show export --help --version' ;;
    ' ca') words='--ca --days --force --help --key --name --out' ;;
    ' leaf') words='--ca --client --days --force --help --host --out' ;;
    ' trust') words='--ca --help --store' ;;
    ' untrust') words='--ca --help --store' ;;
    ' show') words='--ca --help' ;;
    ' export') words='--ca --cert --der --force --help --key --legacy --out --p12 --password' ;;
    *) words='' ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _twp_certgen twp-certgen
