"""Manifests as the models of `hexflow_api`: read once for each version of an object, and leniently."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from hexflow_api import ConfigMap, GPUPool, ResourceError, TextToSQLWorkflow
from hexflow_api.lenient import parse_leniently
from hexflow_operator.observed import Manifest

_Resource = TypeVar("_Resource", GPUPool, TextToSQLWorkflow)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Hold what an object says, or why it cannot be read."""

    resource: GPUPool | TextToSQLWorkflow | None = None
    problem: str = ""
    passed_over: tuple[str, ...] = ()
    """Fields that only a newer operator knows."""


class _Version:
    """One version of one object, with a hash that is cheap."""

    __slots__ = ("manifest", "version")

    def __init__(self, manifest: Manifest) -> None:
        metadata = manifest["metadata"]
        self.manifest = manifest
        self.version = (metadata.get("uid"), metadata.get("resourceVersion"), metadata["name"])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Version) and self.version == other.version and self.manifest == other.manifest
        )

    def __hash__(self) -> int:
        return hash(self.version)


def read(manifest: Manifest) -> Reading:
    """Return what ``manifest`` says."""
    return _remembered(_Version(manifest))


@lru_cache(maxsize=4096)
def _remembered(version: _Version) -> Reading:
    return _read(version.manifest)


def _read(manifest: Manifest) -> Reading:
    try:
        resource, passed_over = parse_leniently({key: manifest[key] for key in manifest if key != "status"})
    except ResourceError as error:
        problems = (f"{problem.path}: {problem.message}" for problem in error.problems)
        return Reading(problem="; ".join(problems))
    return Reading(resource=resource, passed_over=passed_over)


def alive(manifests: Iterable[Manifest]) -> list[Manifest]:
    """Return those that are not being deleted."""
    return [each for each in manifests if not each["metadata"].get("deletionTimestamp")]


def readable(manifests: Iterable[Manifest], model: type[_Resource]) -> list[_Resource]:
    """Return the resources of one kind that can be read."""
    found = (read(each).resource for each in manifests)
    return [each for each in found if isinstance(each, model)]


def config_maps_of(manifests: Sequence[Manifest]) -> tuple[ConfigMap, ...]:
    """Return ConfigMaps as the resources' look-ups take them."""
    return tuple(
        ConfigMap(
            name=each["metadata"]["name"],
            namespace=each["metadata"]["namespace"],
            data=each.get("data") or {},
        )
        for each in manifests
    )
