#!/bin/sh
# Installs Debian's redis-server for the tests if there is none and the user may, without starting the service. Never
# fails: the tests decide whether they can run without it (TEST_REDIS_URL, containers).
set -eu

if [ -n "${TEST_REDIS_URL:-}" ] || command -v redis-server >/dev/null; then
  exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "redis-server is not on PATH. Install Redis 7.0 or newer for the tests and 'make run' (Debian: redis-server)." >&2
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
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends redis-server
}
echo 'redis-server is installed with apt-get'
install >/dev/null 2>&1 || { apt-get update >/dev/null && install >/dev/null; } || echo 'redis-server could not be installed' >&2
