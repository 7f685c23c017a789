#!/usr/bin/env bash
# up.sh [NODE] [POD_SUBNET]: make a node, which is a network namespace, a mount namespace and a containerd of its own.
# Nothing can leave it: it has no default route and no link to the machine's own network. Needs root.
set -eu
. "$(dirname "$0")/env.sh" "$@"
SUB=${2:-10.244.7.0/24}
images=$("$here/../images/build.sh")
mkdir -p "$D"/{ctr,run,cni/net.d,kubelet,logs,manifests}
cat > "$D/config.toml" <<C
version = 2
root = "$D/ctr"
state = "$D/run"
[grpc]
  address = "$D/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:test"
  tolerate_missing_hugetlb_controller = true
  disable_hugetlb_controller = true
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$D/cni/net.d"
C
cat > "$D/cni/net.d/10-node.conflist" <<C
{"cniVersion": "0.4.0", "name": "node", "plugins": [
 {"type": "bridge", "bridge": "cni0", "isGateway": true, "isDefaultGateway": true, "ipMasq": false, "hairpinMode": true,
  "ipam": {"type": "host-local", "dataDir": "$D/cni/ipam", "ranges": [[{"subnet": "$SUB"}]]}},
 {"type": "portmap", "capabilities": {"portMappings": true}, "snat": true}]}
C
ip netns add "$N" 2>/dev/null || true
# One long-lived mount namespace for the node, pinned by a sleeper's pid
setsid nsenter --net="/run/netns/$N" unshare -m --propagation private "$here/prepare.sh" "$N" > "$D/logs/prep.log" 2>&1 < /dev/null &
echo $! > "$D/ns.pid"
for _ in $(seq 100); do [ -e "$D/ready" ] && break; sleep 0.1; done; [ -e "$D/ready" ] || { cat "$D/logs/prep.log" >&2; exit 1; }
setsid nsenter -t "$(cat "$D/ns.pid")" -m -n containerd -c "$D/config.toml" > "$D/logs/containerd.log" 2>&1 < /dev/null &
echo $! > "$D/containerd.pid"
for _ in $(seq 100); do ctr version > /dev/null 2>&1 && break; sleep 0.1; done; t containerd
for i in "$images"/*.tar; do "$here/in" "$N" ctr -n k8s.io images import "$i" > /dev/null; done; t images
