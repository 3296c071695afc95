# Shared by the scripts of this project; to be sourced by bash with `set -euo pipefail`.
# shellcheck shell=bash

twp_name=${0##*/}
twp_repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

twp_say() { printf '%s: %s\n' "$twp_name" "$*"; }
twp_die() { printf '%s: %s\n' "$twp_name" "$*" >&2; exit 1; }
twp_has() { command -v "$1" >/dev/null 2>&1; }

# The folder of things fetched by scripts. A linked git worktree shares that of its main checkout.
# cmake/TwpDependencies.cmake finds it by the same rule.
twp_deps_dir() {
  if [[ -n ${TWP_DEPS_DIR:-} ]]; then
    realpath -m "$TWP_DEPS_DIR"
  elif [[ -f $twp_repo/.git && ! -d $twp_repo/.deps ]]; then
    local line
    read -r _ line <"$twp_repo/.git" # "gitdir: /main/checkout/.git/worktrees/NAME"
    if [[ $line == */.git/worktrees/* ]]; then echo "${line%/.git/worktrees/*}/.deps"; else echo "$twp_repo/.deps"; fi
  else
    echo "$twp_repo/.deps"
  fi
}

# The Debian mirror which this system's own apt sources name.
twp_debian_mirror() {
  if [[ -n ${TWP_DEBIAN_MIRROR:-} ]]; then echo "$TWP_DEBIAN_MIRROR"; return; fi
  local uri
  uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' 2>/dev/null | head -n1)
  if [[ -z $uri ]]; then # no package lists yet: take the first plain Debian source as written
    uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -E '/debian/?$' | head -n1) || true
  fi
  [[ -n $uri ]] || return 1
  echo "$uri"
}

twp_debian_keyring() {
  local k
  for k in /usr/share/keyrings/debian-archive-keyring.gpg /usr/share/keyrings/debian-archive-keyring.pgp; do
    if [[ -r $k ]]; then echo "$k"; return; fi
  done
  return 1
}

# twp_private_apt DIR MIRROR KEYRING SUITE...: sets the array twp_apt to an apt-get command with its own
# lists, cache and sources under DIR. Proxy and credential settings of the system stay in force.
twp_private_apt() {
  local dir=$1 mirror=$2 keyring=$3 suite
  shift 3
  mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
  : >"$dir/sources.list"
  for suite in "$@"; do echo "deb [signed-by=$keyring] $mirror $suite main" >>"$dir/sources.list"; done
  twp_apt=(apt-get -o Dir::State::Lists="$dir/lists" -o Dir::Cache="$dir/cache"
    -o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null
    -o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::Retries=3
    -o APT::Update::Post-Invoke-Success= -o Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false)
}

# twp_as_root CMD...: runs a command as root, directly or through sudo without a password.
twp_as_root() {
  if ((EUID == 0)); then "$@"; else sudo -n "$@"; fi
}
twp_can_root() { ((EUID == 0)) || { twp_has sudo && sudo -n true 2>/dev/null; }; }

# twp_install_host PACKAGE...: apt-get install without recommended packages and without starting daemons.
# Uses the EXIT trap while it runs.
twp_install_host() {
  twp_has apt-get || twp_die "this system has no apt-get: install what corresponds to: $*"
  twp_can_root || twp_die "not root and no sudo without a password; please run: apt-get install $*"
  local log policy=/usr/sbin/policy-rc.d made=0 rc=0 daemon fresh=()
  log=$(mktemp)
  twp_say "installing from the system's packages: $*"
  for daemon in nginx apache2; do
    if [[ " $* " == *" $daemon"* ]]; then fresh+=("$daemon"); fi
  done
  if ((${#fresh[@]})) && [[ ! -e $policy ]]; then # answers "not allowed" to every start of a service
    printf '#!/bin/sh\nexit 101\n' | twp_as_root tee "$policy" >/dev/null
    twp_as_root chmod 755 "$policy"
    made=1
    # shellcheck disable=SC2064  # expand now
    trap "twp_as_root rm -f '$policy'" EXIT
  fi
  twp_apt_install "$@" >"$log" 2>&1 || rc=$?
  if ((rc)); then # lists may be absent or old
    twp_as_root apt-get -o Acquire::Retries=3 update -qq >>"$log" 2>&1 || true
    rc=0
    twp_apt_install "$@" >>"$log" 2>&1 || rc=$?
  fi
  if ((made)); then
    twp_as_root rm -f "$policy"
    trap - EXIT
  fi
  if ((rc == 0)) && [[ -d /run/systemd/system ]] && ((${#fresh[@]})); then
    twp_as_root systemctl disable --quiet "${fresh[@]}" >>"$log" 2>&1 || true # tests start their own
  fi
  if ((rc)); then
    tail -n 20 "$log" >&2
    rm -f "$log"
    twp_die "apt-get could not install: $*"
  fi
  rm -f "$log"
}
twp_apt_install() {
  twp_as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 \
    install -y --no-install-recommends "$@"
}

# The Debian root with the programs that twp is compared with.
twp_peers_dir() {
  if [[ -n ${TWP_PEERS_DIR:-} ]]; then realpath -m "$TWP_PEERS_DIR"; else echo "$(twp_deps_dir)/peers"; fi
}
