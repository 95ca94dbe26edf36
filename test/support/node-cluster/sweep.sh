#!/bin/sh
# Removes all that a node has outside of its namespaces: processes, interface, cgroups, and folder. Harmless if some of
# them are gone already.
#
# usage: sweep.sh <folder of the node>
set -u
exec 2>/dev/null
folder=$1
name=$(basename "$folder")

# Two may sweep at once: the watcher of a dead owner, and the next start. Once the first is done, a new node may have
# taken the name; then this is another folder.
[ -d "$folder" ] || exit 0
exec 9<"$folder"
flock 9
[ "$folder" -ef /proc/self/fd/9 ] || exit 0

# The command line of init.sh has the folder. Without it, the pid belongs to another process by now.
if pid=$(cat "$folder/pid") && tr '\0' '\n' <"/proc/$pid/cmdline" | grep -Fqx -e "$folder"; then
  kill -KILL "$pid"
  for _ in $(seq 100); do
    [ -e "/proc/$pid" ] || break
    sleep 0.05
  done
fi

ip link delete "$name"

# A cgroup is busy until the kernel is done with its last process.
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
