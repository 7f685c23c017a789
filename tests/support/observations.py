"""What an operator observes, for its unit tests: resources as the API server has them, Deployments, pods."""

from typing import Any

from hexflow_operator.defaults import Defaults
from hexflow_operator.observed import Key, Observed
from hexflow_operator.plan import Plan, plan

Object = dict[str, Any]
NOW = 1_796_000_000.0
THEN = "2026-11-30T07:00:00Z"


def stored(kind: str, name: str, spec: Object, **metadata: Any) -> Object:
    return {
        "apiVersion": "hexflow.dev/v1alpha1",
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"uid-{kind}-{name}",
            "generation": 1,
            "resourceVersion": "1",
            "creationTimestamp": THEN,
            **metadata,
        },
        "spec": spec,
    }


def a_pool(name: str = "a100", **spec: Any) -> Object:
    return stored(
        "GPUPool", name, {"gpuType": "A100-80GB", "model": {"name": "Qwen/Qwen2.5-Coder-7B-Instruct"}, **spec}
    )


def a_workflow(name: str = "shop", *, created: str = THEN, **spec: Any) -> Object:
    databases = [{"name": name, "dialect": "sqlite", "dsnSecretRef": {"name": name, "key": "dsn"}}]
    return stored("TextToSQLWorkflow", name, {"databases": databases, **spec}, creationTimestamp=created)


def a_condition(kind: str, status: str, **more: Any) -> Object:
    return {"type": kind, "status": status, "lastTransitionTime": THEN, "reason": "", "message": "", **more}


def a_deployment(
    name: str = "a100-engine", *, replicas: int = 1, ready: int = 0, failure: str = "", **metadata: Any
) -> Object:
    failures = [a_condition("ReplicaFailure", "True", message=failure)] if failure else []
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "team", "generation": 1, **metadata},
        "spec": {"replicas": replicas},
        "status": {
            "observedGeneration": 1,
            "replicas": replicas,
            "updatedReplicas": replicas,
            "readyReplicas": ready,
            "conditions": failures,
        },
    }


def a_pod(name: str = "a100-engine-x", *, ready: bool = False, ip: str = "10.1.0.1", **status: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "team"},
        "status": {
            "podIP": ip,
            "conditions": [
                a_condition("PodScheduled", "True"),
                a_condition("Ready", "True" if ready else "False"),
            ],
            **status,
        },
    }


def an_unscheduled_pod(name: str = "a100-engine-x", *, words: str, since: str = THEN) -> Object:
    scheduled = a_condition("PodScheduled", "False", message=words, lastTransitionTime=since)
    return a_pod(name, conditions=[scheduled])


def a_waiting_container(reason: str, message: str = "", **more: Any) -> Object:
    return {"containerStatuses": [{"state": {"waiting": {"reason": reason, "message": message}}, **more}]}


RUNNING: Object = {"containerStatuses": [{"state": {"running": {}}, "restartCount": 0}]}


def decide(primary: Object, *, now: float = NOW, **observed: Any) -> Plan:
    """Plan for ``primary``, which is among the pools or workflows of its namespace unless others are given."""
    field = "pools" if primary["kind"] == "GPUPool" else "workflows"
    key = Key(primary["kind"], "team", primary["metadata"]["name"])
    return plan(key, Observed(**{"primary": primary, field: (primary,), **observed}), Defaults(), now)


def condition_of(status: Any, kind: str = "Ready") -> tuple[str, str, str]:
    """Return a condition's status, reason and message."""
    assert status is not None, "no status is planned"
    (found,) = (each for each in status["conditions"] if each["type"] == kind)
    return found["status"], found["reason"], found["message"]
