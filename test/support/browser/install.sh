#!/bin/sh
# Installs Debian's chromium-headless-shell (see browser.ts) if it is missing and the user has permission. This never
# fails, because the tests decide whether they can run without it.
set -eu

if command -v chromium-headless-shell >/dev/null || [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  exit 0
fi

# shellcheck disable=SC1091
. "$(dirname -- "$0")/../apt-install.sh"
apt_install chromium-headless-shell
