#!/bin/sh
# Installs Debian's Lua for the health checks if it is missing and the user has permission. This never fails, because
# the tests decide whether they can run without it.
set -eu

if command -v lua5.1 >/dev/null || [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  exit 0
fi

# shellcheck disable=SC1091
. "$(dirname -- "$0")/../support/apt-install.sh"
apt_install lua5.1
