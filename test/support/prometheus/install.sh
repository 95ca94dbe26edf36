#!/bin/sh
# Extracts promtool and Prometheus from Debian's package `prometheus` into the cache, for the tests of the alerts and of
# the dashboard. Nothing is installed or started. This never fails, because the tests decide whether they can run without it.
set -eu

cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/sluice/prometheus
has_promtool() {
  [ -n "${PROMTOOL:-}" ] || command -v promtool >/dev/null || [ -x "$cache/promtool" ]
}
has_prometheus() {
  [ -n "${PROMETHEUS:-}" ] || command -v prometheus >/dev/null || [ -x "$cache/prometheus" ]
}
if has_promtool && has_prometheus; then
  exit 0
fi
if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
  echo 'promtool or prometheus is not on PATH. Install Prometheus for the tests of the alerts and of the dashboard,' \
    'or set PROMTOOL and PROMETHEUS to their paths.' >&2
  exit 0
fi

echo "promtool and prometheus go to $cache"
mkdir -p "$cache"
work=$(mktemp -d "$cache/.install.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
cd "$work"
download() {
  apt-get download prometheus
}
download >/dev/null 2>&1 || { apt-get update >/dev/null 2>&1 && download >/dev/null 2>&1; } || {
  echo 'promtool and prometheus are missing: the package prometheus cannot be downloaded' >&2
  exit 0
}
dpkg-deb -x prometheus_*.deb .
# The moves are atomic, and the files of a faster run are the same.
mv usr/bin/promtool "$cache/promtool"
mv usr/bin/prometheus "$cache/prometheus"
