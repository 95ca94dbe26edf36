# Source this file, then call `apt_install package…` to install Debian packages without starting their services. This
# never fails, because the tests decide whether they can run without them. It requires root and apt-get.

apt_install() {
  # Debian starts an installed service unless this file forbids it (invoke-rc.d, exit status 101).
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    trap 'exit 1' INT TERM
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
  fi
  echo "apt-get installs: $*"
  apt_try "$@" || { apt-get update >/dev/null && apt_try "$@"; } || echo "these could not be installed: $*" >&2
}

apt_try() {
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" >/dev/null 2>&1
}
