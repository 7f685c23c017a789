"""What a reconcile has read, and the keys and labels by which it knew what to read.

The seam between what decides (`plan.py`, pure) and what acts (`reconcile.py`): plain manifests as the API server gave
them, nothing interpreted. This module knows no Kubernetes client.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from hexflow_api import label
from hexflow_api.report import Report, read_report

Manifest = Mapping[str, Any]
"""An object as the API server has it: plain dictionaries and lists. Never changed in place."""

Kind = Literal["GPUPool", "TextToSQLWorkflow", "Router"]
ROUTER_NAME: Final = "hexflow-router"
"""Name of all that the namespace's router is made of."""


class Key(NamedTuple):
    """Name what is reconciled: one pool, one workflow, or the router of a namespace (its name is ROUTER_NAME)."""

    kind: Kind
    namespace: str
    name: str


PART_LABEL: Final = label.PART
"""On everything that is made for a resource: engine, router, tuner or policy. A watch for this label alone sees all."""
POOL_LABEL: Final = label.POOL
"""On the children of a pool and their pods: the pool's name."""
WORKFLOW_LABEL: Final = label.WORKFLOW
"""On the children of a workflow, and on the tuner's ConfigMap: the workflow's name."""
GPU_TYPE_LABEL: Final = label.GPU_TYPE
"""On the pods of a pool: the key of the speed profile."""


def key_of_child(manifest: Manifest) -> Key | None:
    """Return the key that a child, or a pod of one, belongs to by its labels; None for an object of somebody else."""
    metadata = manifest.get("metadata") or {}
    labels, namespace = metadata.get("labels") or {}, metadata.get("namespace") or "default"
    if PART_LABEL not in labels:
        return None
    if pool := labels.get(POOL_LABEL):
        return Key("GPUPool", namespace, pool)
    if workflow := labels.get(WORKFLOW_LABEL):
        return Key("TextToSQLWorkflow", namespace, workflow)
    return Key("Router", namespace, ROUTER_NAME) if labels[PART_LABEL] == "router" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Hold what the API server said when it refused an object."""

    kind: str
    name: str
    reason: str
    """The reason of its Status: Forbidden, Invalid, NotFound (a kind that it does not know), Conflict."""
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterReport:
    """Hold what the namespace's router says of itself: `GET /v1/report` on its admin port (`hexflow_api.report`).

    Whoever asks does so at most once a minute, for what changes here is written to statuses.
    """

    at: float
    """When it was asked, in seconds since the epoch."""
    content: Manifest
    """The answer's JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Hold all that one reconcile has read of its namespace. What is not there is empty."""

    primary: Manifest | None = None
    """The GPUPool or TextToSQLWorkflow of the key, read live; None when it is gone, and always for a Router."""
    pools: tuple[Manifest, ...] = ()
    """Every GPUPool of the namespace, in any order, status included."""
    workflows: tuple[Manifest, ...] = ()
    """Every TextToSQLWorkflow of the namespace, in any order, status included."""
    children: tuple[Manifest, ...] = ()
    """Objects whose labels name this key (`key_of_child`), of every kind of `plan.CHILD_KINDS`; for a workflow its
    policy ConfigMap among them."""
    pods: tuple[Manifest, ...] = ()
    """Pods of the key: labelled for it, or matched by the `selector` of a pool that brings its own pods."""
    router: Manifest | None = None
    """The Deployment of the namespace's router; needed for a workflow."""
    router_pods: tuple[Manifest, ...] = ()
    """Pods of the router; needed for a workflow."""
    config_maps: tuple[Manifest, ...] = ()
    """ConfigMaps that a pool's `profile.configMapRef` names; needed for a pool and a Router."""
    report: RouterReport | None = None
    """What the namespace's router said last; None when nobody could ask it. Needed for a pool and a workflow."""
    refused: tuple[Refusal, ...] = ()
    """What the API server refused when this key, or for a pool and a workflow its namespace's router, was tried last."""

    @property
    def said(self) -> Report | None:
        """What the router says, understood."""
        return read_report(self.report.content) if self.report else None
