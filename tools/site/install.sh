#!/bin/sh
# Installs the packages of the documentation site, unless the installed packages already match its lockfile.
set -eu
cd -- "$(dirname -- "$0")"
if [ -e node_modules/.package-lock.json ] && [ ! package-lock.json -nt node_modules/.package-lock.json ]; then exit 0; fi
echo 'Installing the packages of tools/site/package-lock.json'
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
touch node_modules/.package-lock.json
