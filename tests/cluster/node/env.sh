# Sourced by the scripts here: N the node's name, D its folder, B the binaries, IP the node's address.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
N=${1:-node} D=${HEXFLOW_NODES:-/var/lib/hexflow-nodes}/${1:-node} B=$("$here/../build.sh" --where) IP=10.77.0.1
export PATH=$B:$PATH KUBECONFIG=$D/cp/admin.kubeconfig CONTAINERD_ADDRESS=$D/containerd.sock
t0=${EPOCHREALTIME/./}
t() { printf '%6d ms  %s\n' $(((${EPOCHREALTIME/./} - t0) / 1000)) "$*" >&2; } # what is there, and since when
