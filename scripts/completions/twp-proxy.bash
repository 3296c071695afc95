# bash completion for twp-proxy. Made by scripts/make-completions from its --help.
_twp_proxy() {
  local cur=$2 prev=$3 path='' i words
  case $prev in --access-log|--admin|--ca|--cert|--config|--drain-timeout|--inspect|--key|--key-log|--listen|--origin-ca|--origin-http|--pid-file|--ready-fd|--set|--tcp-congestion|--to|--workers|-c) COMPREPLY=($(compgen -f -- "$cur")); return ;; esac
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in check|config|reload|reverse|run) path+=" ${COMP_WORDS[i]}" ;; esac
  done
  case $path in
    '') words='reverse run check config reload --help --version' ;;
    ' reverse') words='--access-log --admin --ca --cert --drain-timeout --help --inspect --key --key-log --listen --origin-ca --origin-http --origin-insecure --pid-file --print-listen --ready-fd --set --tcp-congestion --to --workers' ;;
    ' run') words='--access-log --admin --config --drain-timeout --help --key-log --pid-file --print-listen --ready-fd --set --tcp-congestion --workers' ;;
    ' check') words='--config --help' ;;
    ' config') words='reverse run --help' ;;
    ' config reverse') words='--access-log --admin --ca --cert --drain-timeout --help --inspect --key --key-log --listen --origin-ca --origin-http --origin-insecure --set --tcp-congestion --to --workers' ;;
    ' config run') words='--access-log --admin --config --drain-timeout --help --key-log --set --tcp-congestion --workers' ;;
    ' reload') words='--help --pid-file' ;;
    *) words='' ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _twp_proxy twp-proxy
