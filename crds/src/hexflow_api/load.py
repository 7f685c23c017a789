"""Files and folders of YAML in; resources out, or everything that is wrong with them.

The same files that `kubectl apply` takes. Objects of other kinds are passed over with a note, except the
v1 Secrets and ConfigMaps that the resources name.
"""

import base64
import binascii
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

from pydantic import BaseModel, ValidationError

from hexflow_api.document import Document, Place, field_path, read_documents
from hexflow_api.explain import did_you_mean, explain, place_of, shown
from hexflow_api.gpupool import GPUPool
from hexflow_api.manifest import ConfigMap, Secret
from hexflow_api.meta import API_GROUP, API_VERSION, ObjectMeta, PlainObjectMeta
from hexflow_api.problem import Problem, ResourceError
from hexflow_api.reference import dangling
from hexflow_api.resources import Resources
from hexflow_api.unknown import as_served, without_unknown_fields
from hexflow_api.workflow import TextToSQLWorkflow

MAX_FILE_BYTES: Final = 3 * 1024 * 1024
"""Largest file that is read: etcd takes objects of half that."""

_KINDS: Final[dict[str, type[GPUPool] | type[TextToSQLWorkflow]]] = {
    "GPUPool": GPUPool,
    "TextToSQLWorkflow": TextToSQLWorkflow,
}
_PathLike = str | os.PathLike[str]


def load_resources(
    paths: _PathLike | Iterable[_PathLike],
    *,
    secrets_elsewhere: bool = False,
    lenient: bool = False,
    stdin: BinaryIO | None = None,
) -> Resources:
    """Return the resources in ``paths``: YAML files, or folders of ``*.yaml`` and ``*.yml`` (not below them).

    Raises ResourceError with all problems found. ``secrets_elsewhere`` allows Secrets that are not among the
    files, as in a cluster, where they are mounted. ``lenient`` passes over fields that are not known and names them,
    as whoever reads what a newer version has written must. Where ``stdin`` is given, the path ``-`` stands for it.
    """
    loader = _Loader(lenient=lenient)
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if stdin is not None and "-" in map(str, given):
        loader.read_stream(stdin, file="<stdin>", folder=Path())
        given = [path for path in given if str(path) != "-"]
    for file in _files(given, loader.problems):
        loader.read(file)
    return loader.finish(secrets_elsewhere=secrets_elsewhere)


def load_text(
    text: str, *, name: str = "<text>", secrets_elsewhere: bool = False, lenient: bool = False
) -> Resources:
    """Return the resources in YAML ``text``, as `load_resources` does for files."""
    loader = _Loader(lenient=lenient)
    loader.take(text, file=name, folder=Path())
    return loader.finish(secrets_elsewhere=secrets_elsewhere)


def _files(paths: Iterable[_PathLike], problems: list[Problem]) -> Iterator[Path]:
    seen = set()
    for path in map(Path, paths):
        for file in _files_of(path, problems):
            if (resolved := file.resolve()) not in seen:
                seen.add(resolved)
                yield file


def _files_of(path: Path, problems: list[Problem]) -> list[Path]:
    if path.is_dir():
        try:
            files = sorted(
                each for each in path.iterdir() if each.suffix in (".yaml", ".yml") and each.is_file()
            )
        except OSError as error:
            problems.append(Problem(file=str(path), message=f"cannot be read: {error.strerror}"))
            return []
        if not files:
            problems.append(
                Problem(file=str(path), message="this folder holds no .yaml file; give one that does")
            )
        return files
    if path.is_file():
        return [path]
    what = "is neither a file nor a folder" if path.exists() else "there is no such file or folder"
    problems.append(Problem(file=str(path), message=what))
    return []


@dataclass(slots=True, kw_only=True)
class _Origin:
    """Where an object was written."""

    document: Document
    base: Place

    def problem(self, *, object: str, place: Place, message: str, path: str | None = None) -> Problem:
        return Problem(
            file=self.document.file,
            line=self.document.line((*self.base, *place)),
            object=object,
            path=field_path(place) if path is None else path,
            message=message,
        )


_Key = tuple[str, str, str]
"""Kind, namespace, name."""


@dataclass(slots=True)
class _Loader:
    lenient: bool = False
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unknown_fields: list[str] = field(default_factory=list)
    sources: list[Path] = field(default_factory=list)
    pools: list[GPUPool] = field(default_factory=list)
    workflows: list[TextToSQLWorkflow] = field(default_factory=list)
    secrets: list[Secret] = field(default_factory=list)
    config_maps: list[ConfigMap] = field(default_factory=list)
    origins: dict[_Key, _Origin] = field(default_factory=dict)

    def read(self, file: Path) -> None:
        self.sources.append(file)
        try:
            with file.open("rb") as stream:
                self.read_stream(stream, file=str(file), folder=file.parent)
        except OSError as error:
            self.problems.append(Problem(file=str(file), message=f"cannot be read: {error.strerror}"))

    def read_stream(self, stream: BinaryIO, *, file: str, folder: Path) -> None:
        raw = stream.read(MAX_FILE_BYTES + 1)
        if len(raw) > MAX_FILE_BYTES:
            self.problems.append(
                Problem(file=file, message="is larger than 3 MB; split it, or is it no YAML at all?")
            )
            return
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = raw[: error.start].count(b"\n") + 1
            self.problems.append(
                Problem(
                    file=file,
                    line=line,
                    message=f"is not UTF-8 text (byte {error.start}); save it as UTF-8",
                )
            )
            return
        self.take(text, file=file, folder=folder)

    def take(self, text: str, *, file: str, folder: Path) -> None:
        for document in read_documents(text, file=file, problems=self.problems):
            self._object(document.data, _Origin(document=document, base=()), folder)

    def _object(self, data: Any, origin: _Origin, folder: Path) -> None:
        if not isinstance(data, dict):
            self._say(origin, "", (), "is no resource; one begins with apiVersion, kind, metadata and spec")
            return
        version, kind = data.get("apiVersion"), data.get("kind")
        if version == "v1" and kind == "List" and isinstance(data.get("items"), list):
            for index, item in enumerate(data["items"]):
                base = (*origin.base, "items", index)
                self._object(item, _Origin(document=origin.document, base=base), folder)
        elif version == "v1" and kind in ("Secret", "ConfigMap"):
            self._plain(data, origin, folder)
        elif self._is_ours(version, kind, origin):
            self._resource(data, origin)

    def _is_ours(self, version: Any, kind: Any, origin: _Origin) -> bool:
        for name, value in (("apiVersion", version), ("kind", kind)):
            if value is None:
                hint = f": write {API_VERSION}" if name == "apiVersion" and kind in list(_KINDS) else ""
                self._say(origin, "", (), f"'{name}' is missing{hint}")
                return False
            if not isinstance(value, str):
                self._say(origin, "", (name,), f"must be text, not {shown(value)}")
                return False
        if version == API_VERSION and kind in _KINDS:
            return True
        if kind in _KINDS:
            self._say(origin, str(kind), ("apiVersion",), f"must be {API_VERSION}, not '{version}'")
        elif str(version).startswith(f"{API_GROUP}/"):
            hint = did_you_mean(str(kind), list(_KINDS))
            self._say(origin, "", ("kind",), f"must be GPUPool or TextToSQLWorkflow, not '{kind}'{hint}")
        else:
            line = origin.document.line(origin.base)
            self.notes.append(f"{origin.document.file}:{line}: passed over a {kind} ({version})")
        return False

    def _resource(self, data: dict[str, Any], origin: _Origin) -> None:
        kind = str(data["kind"])
        model = _KINDS[kind]
        given: Any = as_served(data, model)
        if self.lenient:
            given, unknown = without_unknown_fields(given, model)
            self.unknown_fields += [
                str(
                    origin.problem(
                        object=_title(kind, data),
                        place=place,
                        message="there is no such field in this version; it is passed over",
                    )
                )
                for place in unknown
            ]
        try:
            resource = model.model_validate(given, by_name=False, by_alias=True)
        except ValidationError as error:
            for place, message in explain(error, model):
                self._say(origin, _title(kind, data), place, message)
            return
        if not self._first(kind, resource.metadata, origin):
            return
        if isinstance(resource, GPUPool):
            self.pools.append(resource)
        else:
            self.workflows.append(resource)

    def _first(self, kind: str, metadata: ObjectMeta | PlainObjectMeta, origin: _Origin) -> bool:
        key = (kind, metadata.namespace, metadata.name)
        other = self.origins.setdefault(key, origin)
        if other is origin:
            return True
        where = f"{other.document.file}:{other.document.line(other.base)}"
        self._say(
            origin,
            f"{kind} {metadata.name}",
            ("metadata", "name"),
            f"there are two {kind}s of this name, the other at {where}; rename or remove one",
        )
        return False

    def _plain(self, data: dict[str, Any], origin: _Origin, folder: Path) -> None:
        """Take a Secret or a ConfigMap, of which only the text matters."""
        kind = str(data["kind"])
        try:
            metadata = PlainObjectMeta.model_validate(data.get("metadata"))
        except ValidationError as error:
            for place, message in explain(error, PlainObjectMeta):
                self._say(origin, kind, ("metadata", *place), message)
            return
        values: dict[str, str] = {}
        for section in ("data", "stringData") if kind == "Secret" else ("data",):
            given = data.get(section)
            if given is None:
                continue
            if not isinstance(given, dict):
                self._say(origin, f"{kind} {metadata.name}", (section,), "must be a group of keys and texts")
                continue
            for key, value in given.items():
                message = _fault_of_entry(key, value, encoded=kind == "Secret" and section == "data")
                if message:
                    self._say(origin, f"{kind} {metadata.name}", (section, key), message)
                elif kind == "Secret" and section == "data":
                    values[key] = base64.b64decode(value).decode()
                else:
                    values[key] = value
        if not self._first(kind, metadata, origin):
            return
        if kind == "Secret":
            secret = Secret(
                name=metadata.name, namespace=metadata.namespace, data=values, folder=folder.resolve()
            )
            self.secrets.append(secret)
        else:
            self.config_maps.append(ConfigMap(name=metadata.name, namespace=metadata.namespace, data=values))

    def _say(self, origin: _Origin, object: str, place: Place, message: str) -> None:
        self.problems.append(origin.problem(object=object, place=place, message=message))

    def finish(self, *, secrets_elsewhere: bool) -> Resources:
        resources = Resources(
            pools=tuple(self.pools),
            workflows=tuple(self.workflows),
            secrets=tuple(self.secrets),
            config_maps=tuple(self.config_maps),
            sources=tuple(self.sources),
            notes=tuple(self.notes),
            unknown_fields=tuple(self.unknown_fields),
        )
        if not self.problems:
            # names are checked only when every object could be read: else one mistake is told many times
            for resource, path, message in dangling(resources, secrets_elsewhere=secrets_elsewhere):
                metadata = resource.metadata
                origin = self.origins[resource.kind, metadata.namespace, metadata.name]
                title = f"{resource.kind} {metadata.name}"
                self.problems.append(
                    origin.problem(object=title, place=place_of(path), path=path, message=message)
                )
        if not self.problems and not (self.pools or self.workflows):
            where = ", ".join(map(str, self.sources)) or "the text"
            self.problems.append(
                Problem(
                    message=f"there is no GPUPool and no TextToSQLWorkflow in {where}; see examples/laptop"
                )
            )
        if self.problems:
            raise ResourceError(sorted(self.problems, key=lambda each: (each.file, each.line or 0)))
        return resources


def _fault_of_entry(key: str, value: Any, *, encoded: bool) -> str:
    """Return what is wrong with one entry of a Secret or ConfigMap, never its value."""
    if (
        key in (".", "..")
        or key.startswith("..")
        or not all(c.isalnum() or c in "-_." for c in key)
        or not key.isascii()
    ):
        return "a key may hold letters, digits, '-', '_' and '.', and does not begin with '..'"
    if not isinstance(value, str):
        return "must be text; put it in quotes"
    if encoded:
        try:
            base64.b64decode(value, validate=True).decode()
        except (binascii.Error, ValueError):
            return "must be UTF-8 text in base64; or write it plainly under stringData"
    return ""


def _title(kind: str, data: Mapping[str, Any]) -> str:
    metadata = data.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{kind} {name}" if isinstance(name, str) else kind


def parse_resource(data: Mapping[str, Any]) -> GPUPool | TextToSQLWorkflow:
    """Return the resource in ``data``, one object as the API server or a JSON file has it. Raises ResourceError."""
    loader = _Loader()
    document = Document(data=dict(data), file="", lines={})
    loader._object(document.data, _Origin(document=document, base=()), Path())
    found: list[BaseModel] = [*loader.pools, *loader.workflows]
    if loader.problems or not found:
        raise ResourceError(loader.problems or [Problem(message=f"must be a {' or a '.join(_KINDS)}")])
    return loader.pools[0] if loader.pools else loader.workflows[0]
