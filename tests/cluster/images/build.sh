#!/usr/bin/env bash
# Make the images of the test cluster, once, without a registry or a daemon. Prints the folder of OCI archives last.
#
#   pause    the sandbox of every pod
#   coredns  the cluster's DNS
#   demo     Debian, Python and demo.py, for check.sh; base/ beside it is the file system to put other layers on
#
# Needs root (debootstrap does) and a C compiler. They lie in the cache, under a name that changes with what goes in.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cd "$here"
bin=$(../build.sh c)
packages=python3,ca-certificates suite=bookworm
key=$({ echo $packages $suite; cat pause.c trim.sh oci.py build.sh demo.py; basename "$bin"; } | sha256sum | cut -c1-12)
for tool in debootstrap cc; do
  command -v $tool >/dev/null || { echo "$tool is missing; tests/cluster/packages.sh installs what a node takes" >&2; exit 1; }
done
out=${XDG_CACHE_HOME:-$HOME/.cache}/hexflow/images-$key
mkdir -p "$out"
exec 9>"$out/lock"
flock 9
if [ ! -e "$out/.done" ]; then
  work=$(mktemp -d "$out/work.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  image() { # NAME CONFIG LAYER...
    echo "assembling image $1" >&2
    "${PYTHON:-python3}" oci.py "$out/$1.tar" "localhost/$1:test" "$2" "${@:3}" >&2
  }
  mkdir -p "$work/pause" "$work/coredns" "$work/demo/app"
  cc -Os -static -s -o "$work/pause/pause" pause.c
  image pause '{"Entrypoint": ["/pause"], "User": "65535:65535"}' "$work/pause"
  cp "$bin/coredns" "$work/coredns/"
  image coredns '{"Entrypoint": ["/coredns"], "User": "65535:65535"}' "$work/coredns"
  if [ ! -d "$out/base" ]; then
    echo "bootstrapping a Debian with Python (45 s)" >&2
    debootstrap --variant=minbase --include=$packages $suite "$work/base" >"$out/debootstrap.log" 2>&1
    ./trim.sh "$work/base"
    mv "$work/base" "$out/base"
  fi
  cp demo.py "$work/demo/app/"
  image demo '{"Entrypoint": ["/usr/bin/python3", "/app/demo.py"], "User": "10001:10001",
    "Env": ["PATH=/usr/bin:/bin", "PYTHONUNBUFFERED=1"]}' "$out/base" "$work/demo"
  touch "$out/.done"
fi
echo "$out"
