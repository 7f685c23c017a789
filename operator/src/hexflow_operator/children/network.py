"""The Services, and the budget that keeps a pool serving while nodes are drained."""

from collections.abc import Sequence
from typing import Any

from hexflow_api import GPUPool
from hexflow_operator.children.metadata import child_of, child_of_all, engine_name, selector
from hexflow_operator.observed import ROUTER_NAME, Manifest

ROUTER_PORTS = {"http": (80, 8080), "admin": (8081, 8081)}
"""Ports of the router: name -> the Service's and the container's."""


def engine_service(pool: GPUPool, resource: Manifest, *, port: int) -> dict[str, Any]:
    """Return the Service of a pool, for people and monitoring: the router goes to the pods themselves."""
    metadata = child_of(resource, part="engine", name=engine_name(pool.name))
    return _service(metadata, selector("engine", pool.name), {"http": (port, port)})


def router_service(resources: Sequence[Manifest], *, namespace: str) -> dict[str, Any]:
    """Return the Service of the namespace's router: questions and calls at port 80, the admin port beside it."""
    metadata = child_of_all(resources, namespace=namespace)
    return _service(metadata, selector("router", ROUTER_NAME), ROUTER_PORTS)


def engine_budget(pool: GPUPool, resource: Manifest) -> dict[str, Any]:
    """Return the PodDisruptionBudget of a pool: one instance at a time; one that is not ready keeps no node."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": child_of(resource, part="engine", name=engine_name(pool.name)),
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": selector("engine", pool.name)},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


def _service(
    metadata: dict[str, Any], chosen: dict[str, str], ports: dict[str, tuple[int, int]]
) -> dict[str, Any]:
    listed = [
        {"name": name, "port": port, "targetPort": name, "protocol": "TCP"}
        for name, (port, _) in ports.items()
    ]
    spec = {"type": "ClusterIP", "selector": chosen, "ports": listed}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
