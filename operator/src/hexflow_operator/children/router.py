"""The Deployment of the namespace's router, and the ServiceMonitor for it.

What the process is told: `--config-map` names its ConfigMap, which it watches through the API (a mounted one may lag a
minute), along with the pods of its pools and the `<workflow>-policy` ConfigMaps, all in its own namespace.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from hexflow_api import GPUPool, SecretKeyRef, TextToSQLWorkflow, secret_refs
from hexflow_api.workflow import Router
from hexflow_operator.children.metadata import child_of_all, labels, selector
from hexflow_operator.children.network import ROUTER_PORTS
from hexflow_operator.children.pod import (
    OUT_OF_ROTATION_SECONDS,
    container_security,
    http_probe,
    placed,
    pod_security,
    prestop,
    variables,
)
from hexflow_operator.defaults import Defaults
from hexflow_operator.observed import ROUTER_NAME, Manifest

GRACE_SECONDS: Final = 120
"""Seconds that running questions get to end when a router is replaced. The same for all, for a change rolls it."""
DATA_PATH: Final = "/data"
SECRETS_PATH: Final = "/secrets"
RESOURCES: Final = {"requests": {"cpu": "250m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}}


def mounted_secrets(pools: Iterable[GPUPool], workflows: Iterable[TextToSQLWorkflow]) -> list[SecretKeyRef]:
    """Return each Secret's key that the router reads, in order; tokens for weights are the engines' business."""
    found = {
        (ref.name, ref.key)
        for resource in (*pools, *workflows)
        for place, ref in secret_refs(resource)
        if not place.endswith("hfTokenSecretRef")
    }
    return [SecretKeyRef(name=name, key=key) for name, key in sorted(found)]


def router_deployment(
    resources: Sequence[Manifest],
    *,
    namespace: str,
    settings: Router | None,
    secrets: Sequence[SecretKeyRef],
    defaults: Defaults,
) -> dict[str, Any]:
    """Return the router's Deployment; ``settings`` are those of the oldest workflow that has some."""
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": selector("router", ROUTER_NAME)},
        # two for a moment are harmless: each schedules its own calls
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "revisionHistoryLimit": 3,
        "template": {
            "metadata": {"labels": labels("router", ROUTER_NAME)},
            "spec": {
                "serviceAccountName": ROUTER_NAME,
                "automountServiceAccountToken": True,
                "enableServiceLinks": False,
                "securityContext": pod_security(),
                "terminationGracePeriodSeconds": OUT_OF_ROTATION_SECONDS + GRACE_SECONDS + 15,
                "containers": [_container(settings, defaults)],
                "volumes": [
                    {"name": "data", "emptyDir": {}},
                    {"name": "tmp", "emptyDir": {}},
                    {"name": "secrets", **_projected(secrets)},
                ],
                **placed(settings.placement if settings else None, defaults),
            },
        },
    }
    metadata = child_of_all(resources, namespace=namespace)
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def service_monitor(resources: Sequence[Manifest], *, namespace: str) -> dict[str, Any]:
    """Return the ServiceMonitor by which Prometheus' operator finds the router's metrics."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": child_of_all(resources, namespace=namespace),
        "spec": {
            "selector": {"matchLabels": selector("router", ROUTER_NAME)},
            "endpoints": [{"port": "admin", "path": "/metrics"}],
        },
    }


def _container(settings: Router | None, defaults: Defaults) -> dict[str, Any]:
    ports = {name: port for name, (_, port) in ROUTER_PORTS.items()}
    arguments = ["--config-map", ROUTER_NAME, "--secrets-dir", SECRETS_PATH]
    arguments += ["--host", "0.0.0.0", "--port", str(ports["http"])]  # noqa: S104 - a pod has an address of its own
    arguments += ["--admin-host", "0.0.0.0", "--admin-port", str(ports["admin"])]  # noqa: S104
    arguments += ["--event-log", f"{DATA_PATH}/events.jsonl", "--journal", f"{DATA_PATH}/journal.sqlite"]
    arguments += ["--grace-seconds", str(GRACE_SECONDS)]
    namespace = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    return {
        "name": "router",
        "image": (settings.image if settings else None) or defaults.router_image,
        "imagePullPolicy": defaults.image_pull_policy,
        "command": ["python", "-m", "hexflow_router"],
        "args": arguments,
        "env": [*variables({"HOME": "/tmp"}), {"name": "HEXFLOW_NAMESPACE", "valueFrom": namespace}],  # noqa: S108
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports.items()],
        "lifecycle": prestop(),
        "startupProbe": http_probe("/healthz", period=1, failures=60),
        # ready without any instance too: who asks then is told why, instead of finding nobody
        "readinessProbe": http_probe("/readyz?exclude=instances", period=5, failures=2),
        "livenessProbe": http_probe("/healthz", period=10, failures=3),
        "resources": (settings.resources if settings else None) or RESOURCES,
        "securityContext": container_security(read_only=True),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "data", "mountPath": DATA_PATH},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - a folder of the pod's own
            {"name": "secrets", "mountPath": SECRETS_PATH, "readOnly": True},
        ],
    }


def _projected(secrets: Sequence[SecretKeyRef]) -> dict[str, Any]:
    """Return the volume with ``<secret>/<key>`` for each key. What is missing keeps no router from starting."""
    keys: dict[str, list[str]] = {}
    for ref in secrets:
        keys.setdefault(ref.name, []).append(ref.key)
    sources = [
        {
            "secret": {
                "name": name,
                "optional": True,
                "items": [{"key": key, "path": f"{name}/{key}"} for key in found],
            }
        }
        for name, found in keys.items()
    ]
    return {"projected": {"sources": sources}} if sources else {"emptyDir": {}}
