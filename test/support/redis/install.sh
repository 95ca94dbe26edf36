#!/bin/sh
# Installs Debian's redis-server for the tests if there is none and the user has permission, without starting the
# service. This never fails, because the tests decide whether they can run without it (TEST_REDIS_URL, containers).
set -eu

if [ -n "${TEST_REDIS_URL:-}" ] || command -v redis-server >/dev/null; then
  exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "redis-server is not on PATH. Install Redis 7.0 or newer for the tests and 'make run' (Debian: redis-server)." >&2
  exit 0
fi

# shellcheck disable=SC1091
. "$(dirname -- "$0")/../apt-install.sh"
apt_install redis-server
