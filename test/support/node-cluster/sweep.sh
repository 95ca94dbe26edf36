#!/bin/sh
# Removes all resources of a node outside of its namespaces: processes, interface, cgroups, and folder. It is safe to
# run this if some of them have already been removed.
#
# usage: sweep.sh <folder of the node>
set -u
exec 2>/dev/null
folder=$1
name=$(basename "$folder")

# There may be two sweeps at the same time: the watcher of a dead owner, and the next start. After the first sweep, a
# new node may have taken the name. In this case, the folder is different.
[ -d "$folder" ] || exit 0
exec 9<"$folder"
flock 9
[ "$folder" -ef /proc/self/fd/9 ] || exit 0

# The command line of init.sh contains the folder. If it doesn't, the pid now belongs to a different process.
if pid=$(cat "$folder/pid") && tr '\0' '\n' <"/proc/$pid/cmdline" | grep -Fqx -e "$folder"; then
  kill -KILL "$pid"
  for _ in $(seq 100); do
    [ -e "/proc/$pid" ] || break
    sleep 0.05
  done
fi

ip link delete "$name"

# A cgroup is busy until the kernel has removed its last process.
for cgroup in "/sys/fs/cgroup/$name" /sys/fs/cgroup/*/"$name"; do
  for _ in $(seq 100); do
    [ -d "$cgroup" ] || break
    find "$cgroup" -depth -type d -exec rmdir {} +
    [ -d "$cgroup" ] && sleep 0.05
  done
done

# As long as the folder exists, the next start tries again.
for cgroup in "/sys/fs/cgroup/$name" /sys/fs/cgroup/*/"$name"; do
  [ ! -d "$cgroup" ] || exit 1
done
rm -rf "$folder"
[ ! -e "$folder" ]
