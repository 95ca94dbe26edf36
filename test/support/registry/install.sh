#!/bin/sh
# Installs Debian's docker-registry and skopeo (see registry.ts) if one is missing and the user has permission,
# without starting the registry service. This never fails, because the tests decide whether they can run without them.
set -eu

missing=
command -v docker-registry >/dev/null || missing="$missing docker-registry"
command -v skopeo >/dev/null || missing="$missing skopeo"
if [ -z "$missing" ] || [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  exit 0
fi

# shellcheck disable=SC1091
. "$(dirname -- "$0")/../apt-install.sh"
# shellcheck disable=SC2086
apt_install $missing
