"""Where the binaries of the test Kubernetes are: a folder of the developer's own, or what `make cluster` built."""

import os
import shutil
import subprocess
from pathlib import Path

BUILD = Path(__file__).parents[1] / "cluster" / "build.sh"
NEEDED = {
    "a": ("etcd", "kube-apiserver", "kubectl"),
    "b": ("etcd", "kube-apiserver", "kubectl", "kube-controller-manager", "kube-scheduler"),
}
"""Tier -> the binaries that it takes."""


class BinariesMissing(Exception):
    """Some are not there; the text says which, and how to get them."""


def binaries(tier: str) -> Path:
    """Return the folder with the binaries of a tier."""
    if shutil.which("openssl") is None:
        raise BinariesMissing("openssl is not installed; it makes the key that tokens are signed with")
    where = subprocess.run([BUILD, "--where"], check=True, text=True, stdout=subprocess.PIPE)
    folder = Path(where.stdout.strip())
    missing = [name for name in NEEDED[tier] if not os.access(folder / name, os.X_OK)]
    if not missing:
        return folder
    if os.environ.get("KUBEBUILDER_ASSETS"):
        raise BinariesMissing(
            f"KUBEBUILDER_ASSETS has no {', '.join(missing)}; unset it, and `make cluster` builds all"
        )
    raise BinariesMissing("no Kubernetes is built; `make cluster` builds it")
