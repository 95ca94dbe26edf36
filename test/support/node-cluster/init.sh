#!/bin/sh
# PID 1 of a node, in new mount, network, and PID namespaces: prepares them, reports to the folder, and waits. When it
# ends, so do all processes of the node, with their mounts, interfaces, and iptables rules.
#
# usage: init.sh <folder of the node> <its name> <its address/length> <address of the host> <range of Services>
set -eu
folder=$1 name=$2 address=$3 host=$4 services=$5

# /proc still belongs to the host: this is the pid by which the host knows this process.
read -r pid _ </proc/self/stat
echo "$pid" >"$folder/pid.new"
mv "$folder/pid.new" "$folder/pid"

# With these folders of its own, containerd, CNI, and the kubelet can use their default paths.
mount --make-rshared /
mount -t proc proc /proc
for path in run var/lib var/log; do
  mkdir -p "$folder/root/$path"
  mount --bind "$folder/root/$path" "/$path"
done

# The kubelet requires these values and would change them for the whole machine. So it finds files that have them.
mkdir "$folder/sysctl"
for pair in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
  kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
  key=${pair%=*}
  file=$folder/sysctl/$(basename "$key")
  echo "${pair#*=}" >"$file"
  mount --bind "$file" "/proc/sys/$key"
done

# The cgroup of all Pods: in the unified hierarchy (v2), or in each one (v1).
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
# kube-proxy replaces the destination, but a route must exist before.
ip route add "$services" via "$host"
echo 1 >/proc/sys/net/ipv4/ip_forward
echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables

: >"$folder/ready"
# As the parent of all orphans this shell reaps them while it waits.
while :; do sleep infinity; done
