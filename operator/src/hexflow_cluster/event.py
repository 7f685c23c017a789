"""Kubernetes events: what a person reads under `kubectl describe`."""

from dataclasses import dataclass
from itertools import count
from typing import Final, Literal

from hexflow_cluster.kind import Kind, Manifest
from hexflow_cluster.lease import micro_time

EVENT: Final = Kind("events.k8s.io/v1", "Event")
MAX_NOTE: Final = 1024
_numbers = count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Say what happened."""

    type: Literal["Normal", "Warning"]
    reason: str
    """CamelCase, why."""
    action: str
    """CamelCase, what was being done."""
    note: str
    """A sentence; what is beyond 1,024 characters is cut off."""


def event_about(regarding: Manifest, told: Told, *, at: float, controller: str, instance: str) -> Manifest:
    """Return the event to create: ``regarding`` is a reference with namespace and name, ``at`` seconds since the epoch.

    ``controller`` is who tells it (a domain and a name), ``instance`` which process of it.
    """
    name = f"{regarding['name']}.{int(at * 1e6):x}{next(_numbers) % 4096:03x}"
    return {
        "apiVersion": EVENT.api_version,
        "kind": EVENT.kind,
        "metadata": {"name": name, "namespace": regarding["namespace"]},
        "eventTime": micro_time(at),
        "reportingController": controller,
        "reportingInstance": instance[:128],
        "type": told.type,
        "reason": told.reason,
        "action": told.action,
        "note": told.note[:MAX_NOTE],
        "regarding": regarding,
    }
