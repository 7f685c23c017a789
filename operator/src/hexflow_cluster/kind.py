"""What kinds of objects are called, and the paths under which the API server has them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

Manifest = dict[str, Any]
"""An object as the API server has it: plain dictionaries and lists."""


class Kind(NamedTuple):
    """Name a kind as manifests do."""

    api_version: str
    """Group and version, such as apps/v1; v1 for the core group."""
    kind: str
    """Such as Deployment."""

    @property
    def group_path(self) -> str:
        """The path of the kind's group and version."""
        return f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"


def kind_of(manifest: Manifest) -> Kind:
    """Return the kind that a manifest says it is."""
    return Kind(manifest["apiVersion"], manifest["kind"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """Hold what the API server says of a kind: how its path is written."""

    kind: Kind
    plural: str
    namespaced: bool

    def path(
        self, *, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> str:
        """Return the path of one object, or of all of them in a namespace or the cluster."""
        parts = [self.kind.group_path]
        if self.namespaced and namespace:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        if name:
            parts.append(quote(name, safe=""))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


def selector_text(selector: Mapping[str, Any]) -> str:
    """Return a label selector (matchLabels, matchExpressions) in the notation of the API server's queries."""
    parts = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    for asked in selector.get("matchExpressions") or ():
        key, values = asked["key"], ",".join(asked.get("values") or ())
        parts.append(
            {
                "In": f"{key} in ({values})",
                "NotIn": f"{key} notin ({values})",
                "Exists": key,
                "DoesNotExist": f"!{key}",
            }[asked["operator"]]
        )
    return ",".join(parts)
