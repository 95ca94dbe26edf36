#!/bin/sh
# Installs the CloudEvents SDKs of other languages for the tests: Python packages in a separate folder, and a Go
# program. This never fails, because the tests skip missing SDKs with a message.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../../.." && pwd -P)
peers=$root/test/cloudevents
cache=$root/.cache/cloudevents
mkdir -p "$cache"
work=$(mktemp -d "$cache/.install.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

stamp=$cache/python/requirements.txt
if ! cmp -s "$peers/python/requirements.txt" "$stamp"; then
  if ! command -v python3 >/dev/null; then
    echo 'python3 is not on PATH: the CloudEvents SDK for Python is not tested.' >&2
  else
    echo "The CloudEvents SDK for Python goes to $cache/python"
    if python3 -m venv --clear "$cache/python" >"$work/log" 2>&1 &&
      "$cache/python/bin/pip" install --quiet --require-hashes --requirement "$peers/python/requirements.txt" >"$work/log" 2>&1; then
      cp "$peers/python/requirements.txt" "$stamp"
    else
      tail -n 3 "$work/log" >&2
      echo 'The CloudEvents SDK for Python could not be installed.' >&2
    fi
  fi
fi

# The program is only built if it is older than its sources.
newer=$(find "$peers/go" -type f -newer "$cache/go-peer" 2>/dev/null || echo none)
if [ -n "$newer" ]; then
  if ! command -v go >/dev/null; then
    echo 'go is not on PATH: the CloudEvents SDK for Go is not tested.' >&2
  else
    echo "The CloudEvents SDK for Go is built into $cache/go-peer"
    cd "$peers/go"
    # GOTOOLCHAIN=local prevents downloading a toolchain. The move is atomic.
    if CGO_ENABLED=0 GOTOOLCHAIN=local go build -mod=readonly -o "$work/go-peer" . >"$work/log" 2>&1; then
      mv "$work/go-peer" "$cache/go-peer"
    else
      tail -n 3 "$work/log" >&2
      echo 'The CloudEvents SDK for Go could not be built.' >&2
    fi
  fi
fi
