#!/bin/sh
# Extracts promtool from Debian's package `prometheus` into the cache, for the tests of the alerts. Installs nothing and
# starts no service. Never fails: the tests decide whether they can run without it.
set -eu

cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/sluice/prometheus
if [ -n "${PROMTOOL:-}" ] || command -v promtool >/dev/null || [ -x "$cache/promtool" ]; then
  exit 0
fi
if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
  echo "promtool is not on PATH. Install Prometheus for the tests of the alerts, or set PROMTOOL to its path." >&2
  exit 0
fi

echo "promtool goes to $cache"
mkdir -p "$cache"
work=$(mktemp -d "$cache/.install.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
cd "$work"
download() {
  apt-get download prometheus
}
download >/dev/null 2>&1 || { apt-get update >/dev/null 2>&1 && download >/dev/null 2>&1; } || {
  echo 'promtool is missing: the package prometheus cannot be downloaded' >&2
  exit 0
}
dpkg-deb -x prometheus_*.deb .
# The move is atomic; the file of a faster run is the same.
mv usr/bin/promtool "$cache/promtool"
