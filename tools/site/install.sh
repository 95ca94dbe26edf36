#!/bin/sh
# Installs the packages of the documentation site, unless they are those of its lockfile already.
set -eu
cd -- "$(dirname -- "$0")"
if [ -e node_modules/.package-lock.json ] && [ ! package-lock.json -nt node_modules/.package-lock.json ]; then exit 0; fi
npm ci --ignore-scripts
touch node_modules/.package-lock.json
