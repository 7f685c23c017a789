"""Names, labels and owners of what is made. Selectors are frozen: Kubernetes does not let a Deployment's change.

The labels of a resource are never copied to its children: a GitOps tool tracks what it has applied by labels and
would take the children for its own, and prune them.
"""

from collections.abc import Iterable
from typing import Any, Final, Literal

from hexflow_operator.observed import PART_LABEL, POOL_LABEL, ROUTER_NAME, WORKFLOW_LABEL, Manifest

Part = Literal["engine", "router", "tuner"]
MANAGER: Final = "hexflow-operator"
"""Field manager of server-side apply, and the value of app.kubernetes.io/managed-by."""
API_VERSION: Final = "hexflow.dev/v1alpha1"


def engine_name(pool: str) -> str:
    """Return the name of a pool's Deployment, Service and PodDisruptionBudget."""
    return f"{pool}-engine"


def tuner_name(workflow: str) -> str:
    """Return the name of a workflow's CronJob and of its rights."""
    return f"{workflow}-tuner"


def policy_name(workflow: str) -> str:
    """Return the name of the ConfigMap that a workflow's tuner writes."""
    return f"{workflow}-policy"


def selector(part: Part, instance: str) -> dict[str, str]:
    """Return the labels that select the pods of one child. They may never change."""
    return {
        "app.kubernetes.io/name": "hexflow",
        "app.kubernetes.io/instance": instance,
        "app.kubernetes.io/component": part,
    }


def selector_text(labels: Manifest) -> str:
    """Return ``labels`` as the one line that `kubectl -l` and an autoscaler take."""
    return ",".join(f"{key}={value}" for key, value in labels.items())


def labels(part: Part, instance: str) -> dict[str, str]:
    """Return the labels of a child and of its pods."""
    own = {"engine": {POOL_LABEL: instance}, "tuner": {WORKFLOW_LABEL: instance}, "router": {}}[part]
    return {**selector(part, instance), "app.kubernetes.io/managed-by": MANAGER, PART_LABEL: part, **own}


def owner(resource: Manifest, *, controller: bool) -> dict[str, Any]:
    """Return the reference by which a child goes when ``resource`` goes."""
    metadata = resource["metadata"]
    reference = {
        "apiVersion": API_VERSION,
        "kind": resource["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    return {**reference, "controller": True} if controller else reference


def child_of(resource: Manifest, *, part: Part, name: str) -> dict[str, Any]:
    """Return the metadata of a child that one resource owns."""
    metadata = resource["metadata"]
    return {
        "name": name,
        "namespace": metadata["namespace"],
        "labels": labels(part, metadata["name"]),
        "ownerReferences": [owner(resource, controller=True)],
    }


def child_of_all(resources: Iterable[Manifest], *, namespace: str) -> dict[str, Any]:
    """Return the metadata of what the router is made of: it goes with the last of the resources."""
    owners = [owner(resource, controller=False) for resource in resources]
    return {
        "name": ROUTER_NAME,
        "namespace": namespace,
        "labels": labels("router", ROUTER_NAME),
        "ownerReferences": sorted(owners, key=lambda each: (each["kind"], each["name"], each["uid"])),
    }
