#!/bin/sh
# Installs the packages of the project if the lock file has changed. Install scripts are not run, because no package
# requires them.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../../.." && pwd -P)
stamp=$root/node_modules/.sluice-lock.json
if cmp -s "$root/package-lock.json" "$stamp"; then
  exit 0
fi
if ! command -v npm >/dev/null; then
  echo 'Install npm (it comes with Node); the set-up needs it for the packages.' >&2
  exit 1
fi
echo 'Installing the packages of package-lock.json'
cd "$root"
PATH=$root/bin:$PATH
export PATH
# Fails if package.json and the lock differ, and never changes the lock.
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
cp package-lock.json "$stamp"
