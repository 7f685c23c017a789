"""From what was observed to what has to be done: pure, the same answer for the same question.

`plan` computes everything that should be there and returns what differs from what is there (`difference.py`), so
that a cluster at rest is left alone. No I/O, no clock, no Kubernetes client.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from hexflow_operator.defaults import Defaults
from hexflow_operator.observed import Key, Observed

CHILD_KINDS: Final = (
    ("v1", "ConfigMap"),
    ("v1", "Service"),
    ("v1", "ServiceAccount"),
    ("apps/v1", "Deployment"),
    ("batch/v1", "CronJob"),
    ("policy/v1", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
)
"""apiVersion and kind of every child, whatever it is made for."""
MONITOR_KIND: Final = ("monitoring.coreos.com/v1", "ServiceMonitor")
"""Made where a workflow asks for it; the cluster may not know the kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Point at one object."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str | None = None
    """Given: this very object, not a later one of the same name (a precondition of a delete)."""


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


def plan(key: Key, observed: Observed, defaults: Defaults, now: float) -> Plan:
    """Return what has to be done for ``key``. ``now`` is seconds since the epoch."""
    raise NotImplementedError
