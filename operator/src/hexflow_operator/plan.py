"""From what was observed to what has to be done: pure, the same answer for the same question.

`plan` computes everything that should be there and returns what differs from what is there (`difference.py`), so
that a cluster at rest is left alone. No I/O, no clock, no Kubernetes client.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from hexflow_api import GPUPool, ResourceError, Resources, TextToSQLWorkflow, profile_of
from hexflow_api.condition import ConditionType, Reason
from hexflow_api.handover import MOST_BYTES, handed_over, oldest_first, packed
from hexflow_api.status import ResourceStatus
from hexflow_api.tuned import read_tuned
from hexflow_operator.children.account import role_binding, service_account
from hexflow_operator.children.configmap import router_config_map
from hexflow_operator.children.engine import REPLICAS_ANNOTATION, engine_deployment, port_of
from hexflow_operator.children.metadata import (
    MANAGER,
    child_of,
    child_of_all,
    engine_name,
    policy_name,
    tuner_name,
)
from hexflow_operator.children.network import engine_budget, engine_service, router_service
from hexflow_operator.children.router import mounted_secrets, router_deployment, service_monitor
from hexflow_operator.children.tuner import tuner_cron_job
from hexflow_operator.conditions import Finding, Obstacles, conditions, reconciling, transitions
from hexflow_operator.decision import Event, Plan, Reference, reference_to
from hexflow_operator.defaults import Defaults
from hexflow_operator.difference import covers, identity, to_apply
from hexflow_operator.observed import ROUTER_NAME, Key, Manifest, Observed
from hexflow_operator.poolstatus import pool_status
from hexflow_operator.reading import alive, config_maps_of, read, readable
from hexflow_operator.workflowstatus import workflow_status

__all__ = ["CHILD_KINDS", "MONITOR_KIND", "Event", "Plan", "Reference", "plan"]

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


def plan(key: Key, observed: Observed, defaults: Defaults, now: float) -> Plan:
    """Return what has to be done for ``key``. ``now`` is seconds since the epoch."""
    if key.kind == "Router":
        return _plan_router(key.namespace, observed, defaults)
    if observed.primary is None or observed.primary["metadata"].get("deletionTimestamp"):
        return Plan()  # its children have it as owner and go by themselves
    resource, reading = observed.primary, read(observed.primary)
    obstacles = Obstacles(
        blocked=_too_large(observed), refused=observed.refused, passed_over=reading.passed_over
    )
    if isinstance(reading.resource, GPUPool):
        return _plan_pool(reading.resource, resource, observed, obstacles, defaults=defaults, now=now)
    if isinstance(reading.resource, TextToSQLWorkflow):
        return _plan_workflow(reading.resource, resource, observed, obstacles, defaults=defaults, now=now)
    return _plan_unreadable(resource, reading.problem, now)


def _plan_pool(
    pool: GPUPool,
    resource: Manifest,
    observed: Observed,
    obstacles: Obstacles,
    *,
    defaults: Defaults,
    now: float,
) -> Plan:
    deployment = _child(observed, "Deployment", engine_name(pool.name))
    wanted = _replicas(pool, deployment)
    desired: list[dict[str, Any]] = []
    name = None
    try:
        profile = profile_of(pool, Resources(config_maps=config_maps_of(observed.config_maps)))
        name = profile.name
        if pool.spec.source in ("Pods", "Emulated"):
            desired = [
                engine_service(pool, resource, port=port_of(pool)),
                engine_budget(pool, resource),
                engine_deployment(pool, resource, profile=profile, replicas=wanted, defaults=defaults),
            ]
    except ResourceError as error:
        obstacles = replace(obstacles, blocked=_profile_finding(error))
    status, events, again_after = pool_status(
        pool,
        resource,
        observed,
        deployment=deployment,
        wanted=wanted,
        profile=name,
        obstacles=obstacles,
        now=now,
    )
    return Plan(
        delete=_superfluous(observed, desired)
        if name
        else (),  # where nothing is known nothing is taken down
        apply=to_apply(desired, observed.children),
        status=_changed(resource, status),
        events=events,
        requeue_after=again_after,
    )


def _replicas(pool: GPUPool, deployment: Manifest | None) -> int | None:
    """Return the count to apply, None to leave it to others.

    Who stops applying a field gives it up, and the API server would set the count to one. So when a pool stops saying
    a count we go on saying ours, until somebody else has set another.
    """
    if pool.spec.suspend or pool.spec.replicas is not None:
        return 0 if pool.spec.suspend else pool.spec.replicas
    if deployment is None:
        return None
    count = deployment["spec"].get("replicas")
    ours = (deployment["metadata"].get("annotations") or {}).get(REPLICAS_ANNOTATION)
    return count or None if str(count) == ours else None


def _plan_workflow(
    workflow: TextToSQLWorkflow,
    resource: Manifest,
    observed: Observed,
    obstacles: Obstacles,
    *,
    defaults: Defaults,
    now: float,
) -> Plan:
    desired: list[dict[str, Any]] = []
    if workflow.spec.tuning is not None and workflow.spec.tuning.mode != "Off":
        metadata = child_of(resource, part="tuner", name=tuner_name(workflow.name))
        desired = [
            service_account(metadata),
            role_binding(metadata, cluster_role=defaults.tuner_cluster_role),
            tuner_cron_job(workflow, resource, defaults=defaults),
        ]
    elders = readable(oldest_first(alive(observed.workflows)), TextToSQLWorkflow) or [workflow]
    status, events = workflow_status(
        workflow,
        resource,
        observed,
        leading=elders[0],
        settings=_settings(elders),
        cron_job=_child(observed, "CronJob", tuner_name(workflow.name)),
        tuned=read_tuned(_child(observed, "ConfigMap", policy_name(workflow.name))),
        obstacles=obstacles,
        now=now,
    )
    return Plan(
        delete=_superfluous(observed, desired),
        apply=to_apply(desired, observed.children),
        status=_changed(resource, status),
        events=events,
    )


def _settings(elders: Sequence[TextToSQLWorkflow]) -> TextToSQLWorkflow | None:
    """Return the workflow whose router settings are in force: the oldest that has some."""
    return next((each for each in elders if each.spec.router is not None), None)


def _plan_router(namespace: str, observed: Observed, defaults: Defaults) -> Plan:
    pools, workflows = alive(observed.pools), oldest_first(alive(observed.workflows))
    resources = [*pools, *workflows]
    if not resources:
        return Plan()  # the last one was the last owner, and what is made for the router goes with it
    elders = readable(workflows, TextToSQLWorkflow)
    chosen = _settings(elders)
    settings = chosen.spec.router if chosen else None
    metadata = child_of_all(resources, namespace=namespace)
    desired = [
        service_account(metadata),
        role_binding(metadata, cluster_role=defaults.router_cluster_role),
        router_service(resources, namespace=namespace),
        router_deployment(
            resources,
            namespace=namespace,
            settings=settings,
            secrets=mounted_secrets(readable(pools, GPUPool), elders),
            defaults=defaults,
        ),
    ]
    text = handed_over(pools, workflows, observed.config_maps)
    last = _child(observed, "ConfigMap", ROUTER_NAME)
    if config_map := router_config_map(resources, text, namespace=namespace, last=last):
        desired.insert(0, config_map)
    if settings and settings.service_monitor:
        desired.append(service_monitor(resources, namespace=namespace))
    return Plan(delete=_superfluous(observed, desired), apply=to_apply(desired, observed.children))


def _plan_unreadable(resource: Manifest, problem: str, now: float) -> Plan:
    """Leave everything as it is, and say why: a roll-back must not take down what a newer operator has made."""
    finding = Finding("False", Reason.INVALID_SPEC, problem)
    findings = {
        ConditionType.READY: finding,
        ConditionType.RECONCILING: reconciling(None),
        ConditionType.STALLED: Obstacles(blocked=finding).stalled(None),
    }
    status = {
        **(resource.get("status") or {}),
        "observedGeneration": resource["metadata"].get("generation", 0),
        "conditions": conditions(findings, resource, now=now),
    }
    return Plan(
        status=None if status == resource.get("status") else status, events=transitions(findings, resource)
    )


def _too_large(observed: Observed) -> Finding | None:
    text = handed_over(alive(observed.pools), alive(observed.workflows), observed.config_maps)
    if len(text) <= MOST_BYTES or packed(text):
        return None
    message = f"the namespace's resources take {len(text) / 1024:.0f} kB, and packed still more than 1024"
    return Finding("False", Reason.TOO_LARGE, f"{message}; the router keeps what it had")


def _profile_finding(error: ResourceError) -> Finding:
    problem = error.problems[0]
    missing = problem.message.startswith("there is no ConfigMap")
    reason = Reason.CONFIG_MAP_NOT_FOUND if missing else Reason.PROFILE_NOT_FOUND
    return Finding("False", reason, f"{problem.path}: {problem.message}")


def _child(observed: Observed, kind: str, name: str) -> Manifest | None:
    found = (each for each in observed.children if (each["kind"], each["metadata"]["name"]) == (kind, name))
    return next(found, None)


def _superfluous(observed: Observed, desired: Sequence[Manifest]) -> tuple[Reference, ...]:
    """Return the children that nothing asks for any more, and those that only a new one can replace."""
    wanted = {identity(each): each for each in desired}
    return tuple(
        reference_to(each)
        for each in observed.children
        if (each["metadata"].get("labels") or {}).get("app.kubernetes.io/managed-by") == MANAGER
        and not each["metadata"].get("deletionTimestamp")
        and (identity(each) not in wanted or _is_fixed(each, wanted[identity(each)]))
    )


def _is_fixed(there: Manifest, desired: Manifest) -> bool:
    """Tell whether a child differs where Kubernetes allows no change: to whom a RoleBinding gives what."""
    return there["kind"] == "RoleBinding" and not covers(there.get("roleRef"), desired["roleRef"])


def _changed(resource: Manifest, status: ResourceStatus) -> dict[str, Any] | None:
    written = status.as_written()
    return None if written == (resource.get("status") or {}) else written
