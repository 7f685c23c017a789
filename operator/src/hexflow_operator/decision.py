"""What `plan` answers: objects to delete and to apply, a status, events, and when to look again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hexflow_operator.observed import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Point at one object."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str | None = None
    """Given: this very object, not a later one of the same name (a precondition of a delete)."""


def reference_to(manifest: Manifest) -> Reference:
    """Return the reference to an object that was read."""
    metadata = manifest["metadata"]
    return Reference(
        api_version=manifest["apiVersion"],
        kind=manifest["kind"],
        namespace=metadata.get("namespace", "default"),
        name=metadata["name"],
        uid=metadata.get("uid"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Tell a person of a transition, as a Kubernetes event."""

    regarding: Reference
    type: Literal["Normal", "Warning"]
    reason: str
    """CamelCase, one of `hexflow_api`'s reasons."""
    action: str
    """CamelCase, what was being done."""
    note: str
    """A sentence, at most 1,024 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Say what has to be done now; empty when all is as it should be."""

    delete: tuple[Reference, ...] = ()
    """Objects to delete first."""
    apply: tuple[dict[str, Any], ...] = ()
    """Manifests for server-side apply with force, in this order; each holds just the fields that we own."""
    status: Mapping[str, Any] | None = None
    """The primary's whole status, for server-side apply to its status subresource; None: as it is."""
    events: tuple[Event, ...] = ()
    """Emit these only after the status was written, so that a failed write does not repeat them."""
    requeue_after: float | None = None
    """Seconds after which to look again though nothing has changed; None: the resync is enough."""
