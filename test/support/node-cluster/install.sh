#!/bin/sh
# Installs Debian's packages for a node (see requirements.ts) if a program is missing and the user has permission,
# without starting the containerd service. This never fails, because the tests decide whether they can run without them.
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

# shellcheck disable=SC1091
. "$(dirname -- "$0")/../apt-install.sh"
# shellcheck disable=SC2086
apt_install $missing
