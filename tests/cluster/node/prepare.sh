#!/usr/bin/env bash
# prepare.sh NODE: started by up.sh inside the node's new namespaces, which it holds open.
# Private views, so that nothing outside the node's folder is written; then the node's links and the kubelet's configuration.
set -eu; . "$(dirname "$0")/env.sh" "$1"; rm -f "$D/ready"
mount --make-rshared /
for d in /var/log /var/lib/kubelet /var/lib/cni /run/containerd; do mkdir -p "$D/private$d" $d; mount --bind "$D/private$d" $d; done
mount -t tmpfs tmpfs "$D/ctr" # images and containers: gone with the namespace (deleting them from a disk took 15 s)
mount -t tmpfs tmpfs /run/netns
for kv in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
	k=${kv%=*}; f=$D/private/$(echo $k | tr / _); echo ${kv#*=} > "$f"; mount --bind "$f" /proc/sys/$k
done
printf 'nameserver 10.96.0.10\nsearch default.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5 timeout:2\n' > "$D/private/resolv.conf"
mount --bind "$D/private/resolv.conf" /etc/resolv.conf # Service names work in the node's own processes (the tests) too
ip link set lo up; sysctl -qw net.ipv4.ip_forward=1 net.bridge.bridge-nf-call-iptables=1
ip link add nodebr type bridge; ip addr add $IP/24 dev nodebr; ip link set nodebr up
ip route replace unreachable 10.0.0.0/8
ip route replace 10.96.0.0/16 dev nodebr # ClusterIPs must have a route, or the nat OUTPUT hook never sees them
for c in cpu cpuacct cpuset memory pids devices freezer blkio systemd unified; do mkdir -p /sys/fs/cgroup/$c/"$N"; done
for f in cpus mems; do cat /sys/fs/cgroup/cpuset/cpuset.$f > /sys/fs/cgroup/cpuset/"$N"/cpuset.$f; done
echo "nameserver 127.0.0.1" > "$D/resolv.conf"
cat > "$D/kubelet.yaml" <<K
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /$N
containerRuntimeEndpoint: unix://$D/containerd.sock
staticPodPath: $D/manifests
volumePluginDir: $D/private/volplug
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
maxOpenFiles: 20000
oomScoreAdj: 0
failSwapOn: false
imageGCHighThresholdPercent: 100
imageMinimumGCAge: 24h
evictionHard: {"memory.available": "50Mi", "nodefs.available": "0%", "imagefs.available": "0%", "nodefs.inodesFree": "0%"}
resolvConf: $D/resolv.conf
nodeStatusUpdateFrequency: 2s
fileCheckFrequency: 1s
syncFrequency: 5s
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
K
touch "$D/ready"; exec sleep infinity
