"""Where the resources come from: files and folders on a laptop, the namespace's ConfigMap in a cluster.

A source says what it looks like now (to know whether it has changed), reads it, and names the folders in which a
change shows. Secrets are files in either case.
"""

import contextlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from hexflow_api import Problem, ResourceError, load_resources, write_secrets
from hexflow_api.handover import taken_over
from hexflow_router.configuration import Configuration, arrange


class Source(Protocol):
    """Hold resources. Every method may block."""

    def look(self) -> object:
        """Return something that differs once the resources, or their secrets, have changed. May raise OSError."""
        ...

    def read(self) -> Configuration:
        """Return what the resources say. Raises ResourceError, OSError."""
        ...

    def folders(self) -> list[Path]:
        """Return the folders whose files matter."""
        ...


class FileSource:
    """Read resources from files and folders.

    Without ``secrets_dir`` the Secrets among the resources are used. With it, as in a cluster, fields that only a
    newer version knows are passed over: a roll-back finds what that version wrote.
    """

    def __init__(self, paths: Sequence[Path], secrets_dir: Path | None) -> None:
        self._paths = tuple(paths)
        self._secrets_dir = secrets_dir

    def look(self) -> object:
        """Return the state of every file."""
        files: list[Path] = []
        for path in self._paths:
            files += [*path.glob("*.yaml"), *path.glob("*.yml")] if path.is_dir() else [path]
        return file_states([*files, *_secret_files(self._secrets_dir)])

    def read(self) -> Configuration:
        """Read the files."""
        if self._secrets_dir is not None:
            resources = load_resources(self._paths, secrets_elsewhere=True, lenient=True)
            return arrange(resources, self._secrets_dir)
        resources = load_resources(self._paths)
        with tempfile.TemporaryDirectory(prefix="hexflow-secrets-") as folder:
            write_secrets(resources, Path(folder))
            return arrange(resources, Path(folder))

    def folders(self) -> list[Path]:
        """Return the folders of the files."""
        folders = {path if path.is_dir() else path.parent for path in self._paths}
        return sorted(folders | _secret_folders(self._secrets_dir))


class ConfigMapSource:
    """Read resources from the ConfigMap that the operator writes; whoever watches it tells what it is now."""

    def __init__(self, name: str, secrets_dir: Path) -> None:
        self._name = name
        self._secrets_dir = secrets_dir
        self._config_map: Mapping[str, Any] | None = None
        self._told = False

    def tell(self, config_map: Mapping[str, Any] | None) -> None:
        """Take over the ConfigMap as it is now; None where there is none."""
        self._config_map, self._told = config_map, True

    def look(self) -> object:
        """Return the ConfigMap's version and the state of every secret's file; None while nothing was told."""
        if not self._told:
            return None
        metadata = (self._config_map or {}).get("metadata") or {}
        version = (metadata.get("uid"), metadata.get("resourceVersion"))
        return version, file_states(_secret_files(self._secrets_dir))

    def read(self) -> Configuration:
        """Read the ConfigMap; what cannot be read of it stops none of the others."""
        if self._config_map is None:
            message = "it is not there; the operator makes it while the namespace has a pool or a workflow"
            raise ResourceError([Problem(object=f"ConfigMap {self._name}", message=message)])
        resources, notes = taken_over(self._config_map)
        configuration = arrange(resources, self._secrets_dir)
        return replace(configuration, problems=(*configuration.problems, *notes))

    def folders(self) -> list[Path]:
        """Return the folders of the secrets."""
        return sorted(_secret_folders(self._secrets_dir))


def file_states(files: Sequence[Path]) -> object:
    """Return time, size and inode of each file that is there."""
    seen = []
    for file in sorted(files):
        with contextlib.suppress(OSError):
            found = file.stat()
            seen.append((str(file), found.st_mtime_ns, found.st_size, found.st_ino))
    return tuple(seen)


def _secret_files(secrets_dir: Path | None) -> list[Path]:
    return [*secrets_dir.glob("*/*")] if secrets_dir is not None else []


def _secret_folders(secrets_dir: Path | None) -> set[Path]:
    return {secrets_dir, *secrets_dir.glob("*/")} if secrets_dir is not None else set()
