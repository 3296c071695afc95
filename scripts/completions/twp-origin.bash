# bash completion for twp-origin. Made by scripts/make-completions from its --help.
_twp_origin() {
  local cur=$2 prev=$3 path='' i words
  case $prev in --ca|--cert|--congestion|--drain-timeout|--http|--key|--key-log|--listen|--ready-fd|--threads|--workers) COMPREPLY=($(compgen -f -- "$cur")); return ;; esac
  for ((i = 1; i < COMP_CWORD; i++)); do
    :
  done
  case $path in
    '') words='--ca --cert --congestion --drain-timeout --help --http --key --key-log --listen --print-listen --ready-fd --threads --version --workers' ;;
    *) words='' ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _twp_origin twp-origin
