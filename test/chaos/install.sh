#!/bin/sh
# Installs Debian's libfaketime (see redis-clock.ts) if it is missing and the user has permission. This never fails,
# because tests that require it are skipped without it.
set -eu

library=/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1
if [ -e "$library" ] || [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  exit 0
fi

# shellcheck disable=SC1091
. "$(dirname -- "$0")/../support/apt-install.sh"
apt_install libfaketime
