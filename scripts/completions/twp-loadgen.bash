# bash completion for twp-loadgen. Made by scripts/make-completions from its --help.
_twp_loadgen() {
  local cur=$2 prev=$3 path='' i words
  case $prev in --arm|--body|--body-size|--ca|--client|--concurrency|--connect-to|--csv|--duration|--expect-length|--expect-status|--header|--host|--http|--json|--limit-us|--method|--mode|--origin|--product|--product-version|--rate|--read-rate|--repeat|--run-id|--slo-errors|--slo-p99|--streams|--threads|--timeout|--warmup|--watch|--workload|-H|-X|-c|-d|-m|-t) COMPREPLY=($(compgen -f -- "$cur")); return ;; esac
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in ramp|run) path+=" ${COMP_WORDS[i]}" ;; esac
  done
  case $path in
    '') words='run ramp --help --version' ;;
    ' run') words='--arm --body --body-size --ca --client --concurrency --connect-to --csv --duration --expect-length --expect-status --header --help --host --http --insecure --json --limit-us --method --mode --new-connection --no-resume --origin --product --product-version --rate --read-rate --repeat --run-id --slo-errors --slo-p99 --streams --threads --timeout --verify-body --warmup --watch --workload' ;;
    ' ramp') words='--arm --body --body-size --ca --client --concurrency --connect-to --csv --duration --expect-length --expect-status --header --help --host --http --insecure --json --limit-us --method --mode --new-connection --no-resume --origin --product --product-version --read-rate --repeat --run-id --slo-errors --slo-p99 --streams --threads --timeout --verify-body --warmup --watch --workload' ;;
    *) words='' ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _twp_loadgen twp-loadgen
