"""Secrets as files, the way Kubernetes projects them: ``<directory>/<secret's name>/<key>``.

Everybody reads secrets from such a folder only; on a laptop `hexflow up` writes it, in a cluster the kubelet does.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from hexflow_api.meta import SecretKeyRef
from hexflow_api.resources import Resources

MAX_SECRET_BYTES: Final = 1024 * 1024
"""What Kubernetes lets a Secret hold."""


class SecretMissing(LookupError):
    """A secret that a resource names is not there or cannot be read."""


def secret_refs(resource: BaseModel) -> Iterator[tuple[str, SecretKeyRef]]:
    """Yield every Secret's key that ``resource`` names, with the field that names it."""
    yield from _refs(resource, "")


def _refs(value: Any, path: str) -> Iterator[tuple[str, SecretKeyRef]]:
    if isinstance(value, SecretKeyRef):
        yield path, value
    elif isinstance(value, BaseModel):
        for name, field_info in type(value).model_fields.items():
            alias = field_info.alias or name
            yield from _refs(getattr(value, name), f"{path}.{alias}" if path else alias)
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _refs(item, f"{path}[{index}]")


def read_secret(directory: str | os.PathLike[str], ref: SecretKeyRef) -> str:
    """Return the value that ``ref`` names, without a newline at its end.

    Raises SecretMissing, which says what to add and never shows a value.
    """
    file = Path(directory) / ref.name / ref.key
    try:
        raw = file.read_bytes()[: MAX_SECRET_BYTES + 1]
    except FileNotFoundError:
        raise SecretMissing(
            f"Secret {ref.name} has no key {ref.key}: add a v1 Secret of that name with this key to the resources (looked for {file})"
        ) from None
    except OSError as error:
        raise SecretMissing(
            f"key {ref.key} of Secret {ref.name} cannot be read: {error.strerror or error} ({file})"
        ) from None
    try:
        value = raw.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise SecretMissing(
            f"key {ref.key} of Secret {ref.name} is not UTF-8 text: write it anew ({file})"
        ) from None
    if not value or len(raw) > MAX_SECRET_BYTES:
        raise SecretMissing(
            f"key {ref.key} of Secret {ref.name} is {'empty' if not value else 'over 1 MiB'} ({file})"
        )
    return value


def write_secrets(resources: Resources, directory: str | os.PathLike[str]) -> None:
    """Lay out the Secrets of the resources' namespace below ``directory``, for the owner's eyes only.

    A SQLite address with a relative path is written absolute, for it is meant relative to the folder of the
    file that holds the Secret, which the reader does not know.
    """
    top = Path(directory)
    _private_folder(top)
    namespace = resources.namespace
    addresses = {
        (database.dsn_secret_ref.name, database.dsn_secret_ref.key)
        for workflow in resources.workflows
        for database in workflow.spec.databases
    }
    for secret in (each for each in resources.secrets if each.namespace == namespace):
        folder = top / secret.name
        _private_folder(folder)
        for key, value in secret.data.items():
            is_address = (secret.name, key) in addresses
            _private_file(folder / key, absolute_dsn(value, folder=secret.folder) if is_address else value)


SQLITE_SCHEME: Final = "sqlite:///"


def absolute_dsn(dsn: str, *, folder: Path) -> str:
    """Return a SQLite address with its path made absolute from ``folder``; any other address as it is."""
    path = dsn.strip().removeprefix(SQLITE_SCHEME)
    if path == dsn.strip() or path in ("", ":memory:") or path.startswith("file:"):
        return dsn
    return SQLITE_SCHEME + str((folder / path).resolve())


def _private_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)


def _private_file(file: Path, text: str) -> None:
    """Write and then rename, so that a reader sees the old value or the new one."""
    half = file.with_name(f".{file.name}.new")
    half.unlink(missing_ok=True)
    with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        out.write(text)
    half.replace(file)
