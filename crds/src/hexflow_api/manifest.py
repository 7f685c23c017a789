"""The v1 objects that may come in the same files as the resources, because the resources name them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """Hold a v1 Secret that came with the resources; its values are never shown."""

    name: str
    namespace: str = "default"
    data: Mapping[str, str] = field(repr=False)
    folder: Path = field(default_factory=Path)
    """Folder of the file that it came from; relative database paths start there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigMap:
    """Hold a v1 ConfigMap that came with the resources."""

    name: str
    namespace: str = "default"
    data: Mapping[str, str]
