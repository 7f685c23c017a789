#!/usr/bin/env bash
# Install what a node with real pods takes of the system: Debian's container runtime, CNI plug-ins and tools.
set -euo pipefail
packages=(containerd runc containernetworking-plugins iptables nftables conntrack ipset debootstrap gcc libc6-dev
  iproute2 curl openssl procps)
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[ ${#missing[@]} = 0 ] && exit
if [ "$(id -u)" != 0 ]; then echo "install these first: ${missing[*]}" >&2; exit 1; fi
echo "installing ${missing[*]}" >&2
install() { DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null; }
install 2>/dev/null || { apt-get update -q >/dev/null; install; }
