#!/bin/sh
# Installs Debian's packages for a node (see requirements.ts) if a program is missing and the user may, without starting
# the service of containerd. Never fails: the tests decide whether they can run without them.
set -eu

missing=
need() {
  command -v "$1" >/dev/null || missing="$missing $2"
}
need containerd containerd
need runc runc
need iptables iptables
need conntrack conntrack
need gcc gcc
need openssl openssl
need ip iproute2
[ -x /usr/lib/cni/bridge ] || [ -x /opt/cni/bin/bridge ] || missing="$missing containernetworking-plugins"
[ -e /usr/include/stdlib.h ] || missing="$missing libc6-dev"
if [ -z "$missing" ] || [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  exit 0
fi

# Debian starts an installed service unless this file forbids it (invoke-rc.d, exit status 101).
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  trap 'exit 1' INT TERM
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
fi
install() {
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing
}
echo "apt-get installs for the node:$missing"
install >/dev/null 2>&1 || { apt-get update >/dev/null && install >/dev/null; } || echo "these could not be installed:$missing" >&2
