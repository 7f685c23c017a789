"""Assemble an OCI image archive from folders, with no daemon and no registry.

    python3 oci.py OUT.tar NAME:TAG CONFIG-JSON LAYER-FOLDER…

The same folders give the same digest: entries are sorted and have no time; owners are kept. `ctr images import` and
`skopeo` read it.
"""

import hashlib
import io
import json
import os
import platform
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any, BinaryIO

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
LAYER = "application/vnd.oci.image.layer.v1.tar"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
DAWN = "1970-01-01T00:00:00Z"


class Archive:
    """Write blobs under their digests."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar

    def add(self, name: str, data: bytes) -> None:
        """Write a small file."""
        entry = tarfile.TarInfo(name)
        entry.size = len(data)
        self._tar.addfile(entry, io.BytesIO(data))

    def blob(self, content: bytes | BinaryIO, kind: str) -> dict[str, Any]:
        """Write a blob and return its descriptor."""
        stream = io.BytesIO(content) if isinstance(content, bytes) else content
        hashed = hashlib.sha256()
        while piece := stream.read(1 << 20):
            hashed.update(piece)
        digest = hashed.hexdigest()
        entry = tarfile.TarInfo(f"blobs/sha256/{digest}")
        entry.size = stream.tell()
        stream.seek(0)
        self._tar.addfile(entry, stream)
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": entry.size}


def pack(folder: Path, out: BinaryIO) -> None:
    """Write a folder as a layer."""

    def timeless(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.mtime = 0
        entry.uname = entry.gname = ""
        return entry

    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for parent, folders, files in os.walk(folder):
            folders.sort()
            for path in (Path(parent, name) for name in sorted(folders + files)):
                tar.add(path, arcname=str(path.relative_to(folder)), recursive=False, filter=timeless)
    out.seek(0)


def assemble(out: Path, name: str, config: dict[str, Any], folders: list[Path]) -> str:
    """Write the archive and return the image's digest."""
    with tarfile.open(out, "w") as tar:
        archive = Archive(tar)
        layers = []
        for folder in folders:
            with tempfile.TemporaryFile(dir=out.parent) as layer:
                pack(folder, layer)
                layers.append(archive.blob(layer, LAYER))
        image = {
            "created": DAWN,
            "architecture": ARCHITECTURE,
            "os": "linux",
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": [layer["digest"] for layer in layers]},
            "history": [{"created_by": folder.name} for folder in folders],
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": archive.blob(json.dumps(image).encode(), CONFIG),
            "layers": layers,
        }
        described = archive.blob(json.dumps(manifest).encode(), MANIFEST)
        described["annotations"] = {
            "io.containerd.image.name": name,
            "org.opencontainers.image.ref.name": name.rpartition(":")[2],
        }
        index = {"schemaVersion": 2, "manifests": [described]}
        archive.add("index.json", json.dumps(index).encode())
        archive.add("oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
    digest: str = described["digest"]
    return digest


if __name__ == "__main__":
    _, target, reference, settings, *given = sys.argv
    unfinished = Path(target + ".new")
    print(reference, assemble(unfinished, reference, json.loads(settings), [Path(each) for each in given]))  # noqa: T201
    unfinished.rename(target)
