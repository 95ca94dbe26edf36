#!/bin/sh
# PID 1 of a node, in new mount, network, and PID namespaces. It prepares the namespaces, reports to the folder, and
# waits. When it ends, all processes of the node end as well, along with their mounts, interfaces, and iptables rules.
#
# usage: init.sh <folder of the node> <its name> <its address/length> <address of the host> <range of Services>
set -eu
folder=$1 name=$2 address=$3 host=$4 services=$5

# /proc still belongs to the host, so this is the pid of this process on the host.
read -r pid _ </proc/self/stat
echo "$pid" >"$folder/pid.new"
mv "$folder/pid.new" "$folder/pid"

# Because of these separate folders, containerd, CNI, and the kubelet can use their default paths.
mount --make-rshared /
mount -t proc proc /proc
for path in run var/lib var/log; do
  mkdir -p "$folder/root/$path"
  mount --bind "$folder/root/$path" "/$path"
done

# The kubelet requires these values, and would change them for the whole machine. To prevent this, it reads these files.
mkdir "$folder/sysctl"
for pair in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
  kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
  key=${pair%=*}
  file=$folder/sysctl/$(basename "$key")
  echo "${pair#*=}" >"$file"
  mount --bind "$file" "/proc/sys/$key"
done

# The cgroup of all Pods, either in the unified hierarchy (v2), or in each hierarchy (v1).
if [ -e /sys/fs/cgroup/cgroup.procs ]; then
  for controller in $(cat /sys/fs/cgroup/cgroup.controllers); do
    echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control || true
  done
  mkdir "/sys/fs/cgroup/$name"
else
  for hierarchy in /sys/fs/cgroup/*; do
    [ ! -e "$hierarchy/cgroup.procs" ] || mkdir -p "$hierarchy/$name"
  done
fi

# The host moves one end of a pair of interfaces here.
until ip link show eth0 >/dev/null 2>&1; do sleep 0.05; done
ip link set lo up
ip address add "$address" dev eth0
ip link set eth0 up
# kube-proxy replaces the destination, but there must already be a route.
ip route add "$services" via "$host"
echo 1 >/proc/sys/net/ipv4/ip_forward
echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables

: >"$folder/ready"
# Since this shell is the parent of all orphaned processes, it reaps them while waiting.
while :; do sleep infinity; done
