#!/bin/sh
# Installs the project's packages when the lock file has changed since the last time. Install scripts of packages are
# not run: nothing here needs one.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../../.." && pwd -P)
stamp=$root/node_modules/.sluice-lock.json
if cmp -s "$root/package-lock.json" "$stamp"; then
  exit 0
fi
if ! command -v npm >/dev/null; then
  echo 'Install npm (it comes with Node): the packages are installed with it.' >&2
  exit 1
fi
echo 'Installing the packages of package-lock.json'
cd "$root"
PATH=$root/bin:$PATH
export PATH
# A registry without the packages of some other platform makes `npm ci` refuse the lock; `npm install` leaves out what is
# optional, and checks the same hashes.
npm ci --ignore-scripts --no-audit --no-fund --loglevel=silent ||
  npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error
cp package-lock.json "$stamp"
