#!/bin/sh
# Sees to it that the tests find promtool: takes it out of Debian's package `prometheus`, into the cache. Nothing is
# installed and no service starts. Never fails: whether tests can run without it is for them to say.
set -eu

cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/sluice/prometheus
if [ -n "${PROMTOOL:-}" ] || command -v promtool >/dev/null || [ -x "$cache/promtool" ]; then
  exit 0
fi
if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
  echo "promtool is not on PATH. Install Prometheus for the tests of the alerts, or name it by PROMTOOL." >&2
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
  echo 'promtool could not be had: the package prometheus cannot be downloaded' >&2
  exit 0
}
dpkg-deb -x prometheus_*.deb .
# Complete or absent; when another run was faster, its file is the same.
mv usr/bin/promtool "$cache/promtool"
