#!/usr/bin/env bash
# control-plane.sh [NODE] [iptables|nftables]: start etcd, the control plane, kubelet, kube-proxy and CoreDNS in a node.
#   AUDIT=1   log every request that is not the control plane's own (logs/audit.log)
#   NETPOL=1  enforce NetworkPolicy too
set -u
. "$(dirname "$0")/env.sh" "$@"
MODE=${2:-iptables} C=$D/cp; mkdir -p "$C/etcd"
[ -f "$C/sa.key" ] || openssl genrsa -out "$C/sa.key" 2048 2> /dev/null
cat > "$C/tokens.csv" <<X2
admintok,admin,a1,system:masters
nodetok,system:node:$N,n1,system:nodes
kcmtok,system:kube-controller-manager,k1
schedtok,system:kube-scheduler,s1
proxytok,system:kube-proxy,p1
X2
start() { n=$1; shift; setsid nsenter -t "$(cat "$D/ns.pid")" -m -n "$@" > "$D/logs/$n.log" 2>&1 < /dev/null & echo $! > "$D/$n.pid"; }
kc() { cat > "$C/$1.kubeconfig" <<X2
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://$IP:6443", certificate-authority: $C/pki/apiserver.crt}}]
users: [{name: u, user: {token: $2}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
X2
}
kc admin admintok; kc kubelet nodetok; kc kcm kcmtok; kc sched schedtok; kc proxy proxytok
k() { "$here/in" "$N" kubectl "$@"; }
audit=(); if [ -n "${AUDIT:-}" ]; then
	cat > "$C/audit.yaml" <<X2
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, userGroups: ["system:serviceaccounts:kube-system", "system:nodes"]}
- {level: None, users: ["system:apiserver", "system:kube-controller-manager", "system:kube-scheduler", "system:kube-proxy", "system:anonymous"]}
- {level: Metadata}
X2
	audit=(--audit-policy-file "$C/audit.yaml" --audit-log-path "$D/logs/audit.log" --audit-log-maxsize 4000)
fi
until_ok() { for _ in $(seq "$1"); do "${@:2}" > /dev/null 2>&1 && return; sleep 0.25; done; echo "gave up: ${*:2} (logs in $D/logs)" >&2; exit 1; }
start etcd etcd --data-dir "$C/etcd" --listen-client-urls http://127.0.0.1:2379 \
  --advertise-client-urls http://127.0.0.1:2379 --listen-peer-urls http://127.0.0.1:2380 --unsafe-no-fsync
start apiserver kube-apiserver --etcd-servers http://127.0.0.1:2379 --bind-address 0.0.0.0 --advertise-address $IP \
  --secure-port 6443 --cert-dir "$C/pki" --service-cluster-ip-range 10.96.0.0/16 \
  --service-account-key-file "$C/sa.key" --service-account-signing-key-file "$C/sa.key" \
  --service-account-issuer https://kubernetes.default.svc --token-auth-file "$C/tokens.csv" \
  --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction --allow-privileged=true \
  --kubelet-preferred-address-types InternalIP --v 1 "${audit[@]}"
until_ok 600 k get --raw /readyz; t API server
start kcm kube-controller-manager --kubeconfig "$C/kcm.kubeconfig" --service-account-private-key-file "$C/sa.key" \
  --root-ca-file "$C/pki/apiserver.crt" --use-service-account-credentials \
  --flex-volume-plugin-dir "$D/private/volplug" --leader-elect=false --allocate-node-cidrs=false \
  --bind-address 127.0.0.1 --kube-api-qps 500 --kube-api-burst 1000
start sched kube-scheduler --kubeconfig "$C/sched.kubeconfig" --leader-elect=false --bind-address 127.0.0.1 --kube-api-qps 500 --kube-api-burst 1000
start kubelet kubelet --config "$D/kubelet.yaml" --kubeconfig "$C/kubelet.kubeconfig" --root-dir "$D/kubelet" \
  --cert-dir "$D/kubelet/pki" --hostname-override "$N" --node-ip $IP --v 2
cat > "$D/proxy.yaml" <<X2
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: $MODE
hostnameOverride: $N
clientConnection: {kubeconfig: $C/proxy.kubeconfig}
detectLocalMode: BridgeInterface
detectLocal: {bridgeInterface: cni0}
oomScoreAdj: 0
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
metricsBindAddress: 127.0.0.1:10249
X2
start proxy kube-proxy --config "$D/proxy.yaml" --v 2
k apply -f "$here/coredns.yaml" > /dev/null
until_ok 400 k wait --for=condition=Ready "node/$N" --timeout=1s; t node Ready
if [ -n "${NETPOL:-}" ]; then # kube-router ends at once if the Node object is not there yet
	start netpol kube-router --run-router=false --run-service-proxy=false --run-loadbalancer=false --run-firewall=true \
		--kubeconfig "$C/admin.kubeconfig" --hostname-override "$N" --service-cluster-ip-range 10.96.0.0/16 --metrics-port 0
fi
k -n kube-system rollout status deploy/coredns --timeout=120s > /dev/null || exit 1; t CoreDNS
