#!/usr/bin/env bash
# down.sh [NODE]: end what up.sh and control-plane.sh started, by pid, and wait for it. Safe to call twice. KEEP=1 keeps the node's
# folder, for its logs.
. "$(dirname "$0")/env.sh" "$@"
end() { # end NAME...: TERM, up to 5 s each, then KILL. Clients first: an API server with open watches drains for a minute
	for p in "$@"; do [ -f "$D/$p.pid" ] && kill "$(cat "$D/$p.pid")" 2> /dev/null; done
	for p in "$@"; do
		[ -f "$D/$p.pid" ] || continue
		for _ in $(seq 50); do kill -0 "$(cat "$D/$p.pid")" 2> /dev/null || break; sleep 0.1; done
		kill -9 "$(cat "$D/$p.pid")" 2> /dev/null; rm -f "$D/$p.pid"
	done
}
end netpol proxy sched kcm kubelet; t kubelet
if [ -f "$D/containerd.pid" ]; then
	c() { ctr -n k8s.io "$@" 2> /dev/null; }
	for i in $(c task ls -q); do c task kill -s KILL "$i"; done; sleep 0.5
	for i in $(c task ls -q); do c task rm -f "$i" > /dev/null; done
	for i in $(c c ls -q); do c c rm "$i"; done
fi; t containers
end apiserver; end etcd containerd
for p in $(pgrep -f "containerd-shim-runc-v2 .*-address $D/containerd.sock"); do kill "$p"; done
end ns; ip netns del "$N" 2> /dev/null; t namespaces
for c in cpu cpuacct cpuset memory pids devices freezer blkio systemd unified; do for r in "$N" k8s.io; do
	[ -d "/sys/fs/cgroup/$c/$r" ] && find "/sys/fs/cgroup/$c/$r" -depth -type d -exec rmdir {} \;
done; done 2> /dev/null
[ -n "${KEEP:-}" ] || rm -rf "$D"; t done
