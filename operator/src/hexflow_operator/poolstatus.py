"""The status of a GPUPool: how many instances serve, and why the others do not."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hexflow_api import GPUPool
from hexflow_api.condition import Condition, ConditionType, Reason
from hexflow_api.report import Report, ReportedInstance
from hexflow_api.status import GPUPoolStatus
from hexflow_operator.children.engine import port_of
from hexflow_operator.children.metadata import selector, selector_text
from hexflow_operator.conditions import (
    Finding,
    Obstacles,
    Truth,
    conditions,
    last_finding,
    reconciling,
    transitions,
    truth,
)
from hexflow_operator.decision import Event
from hexflow_operator.observed import Manifest, Observed
from hexflow_operator.pods import PATIENT, Trouble, is_ready, troubles

MOST_ENDPOINTS: Final = 256
UNSCHEDULABLE_SECONDS: Final = 300.0
"""Time in which a node may still come: a pod that ends holds its GPU while it drains, an autoscaler needs minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instances:
    """Count the pool's instances, and say what is wrong with those that are not ready."""

    wanted: int
    there: int
    ready: int
    endpoints: tuple[str, ...] = ()
    troubles: Sequence[Trouble] = ()
    changing: bool = False
    """Whether a roll-out is on its way."""

    @property
    def counted(self) -> str:
        """How many are ready, in words."""
        return f"{self.ready} of {self.wanted} instances are ready"


def pool_status(
    pool: GPUPool,
    resource: Manifest,
    observed: Observed,
    *,
    deployment: Manifest | None,
    wanted: int | None,
    profile: str | None,
    obstacles: Obstacles,
    now: float,
) -> tuple[GPUPoolStatus, tuple[Event, ...], float | None]:
    """Return the status of a pool, the events of its transitions, and the seconds after which time alone changes it.

    ``wanted`` is the count that was just decided (None: the Deployment's own).
    """
    instances = _instances(pool, observed, deployment, wanted)
    patience = _patience(instances.troubles, now)
    stalled = obstacles.stalled(_stalled(instances, patience))
    under_way = instances.changing or instances.ready < instances.wanted
    findings = {
        ConditionType.READY: obstacles.ready(
            _suspended(pool, instances) or _ready(pool, observed, instances)
        ),
        ConditionType.RECONCILING: reconciling(
            instances.counted if under_way and stalled.status == "False" else None
        ),
        ConditionType.STALLED: stalled,
    }
    made = pool.spec.source in ("Pods", "Emulated")
    status = GPUPoolStatus(
        observed_generation=resource["metadata"].get("generation", 0),
        conditions=tuple(map(Condition.model_validate, conditions(findings, resource, now=now))),
        replicas=instances.there,
        ready_replicas=instances.ready,
        ready=f"{instances.ready}/{instances.wanted}",
        selector=selector_text(selector("engine", pool.name)) if made else None,
        endpoints=instances.endpoints[:MOST_ENDPOINTS],
        profile=profile,
    )
    return status, transitions(findings, resource), patience


def _instances(
    pool: GPUPool, observed: Observed, deployment: Manifest | None, wanted: int | None
) -> Instances:
    if pool.spec.source == "Endpoints":
        return _of_endpoints(pool, observed)
    ready = [pod for pod in observed.pods if is_ready(pod)]
    addresses = tuple(sorted(_address(pod, port_of(pool)) for pod in ready))
    if pool.spec.source == "Selector":
        staying = [pod for pod in observed.pods if not pod["metadata"].get("deletionTimestamp")]
        if pool.spec.suspend:
            return Instances(wanted=0, there=0, ready=0)
        return Instances(
            wanted=len(staying),
            there=len(staying),
            ready=len(ready),
            endpoints=addresses,
            troubles=troubles(staying, None),
        )
    return _of_deployment(observed, deployment, wanted, addresses)


def _of_deployment(
    observed: Observed, deployment: Manifest | None, wanted: int | None, addresses: tuple[str, ...]
) -> Instances:
    spec, status = (deployment or {}).get("spec") or {}, (deployment or {}).get("status") or {}
    count = int(spec.get("replicas", 1)) if wanted is None else wanted
    there, ready = int(status.get("replicas", 0)), int(status.get("readyReplicas", 0))
    seen = status.get("observedGeneration", 0) >= ((deployment or {}).get("metadata") or {}).get(
        "generation", 1
    )
    rolled_out = seen and status.get("updatedReplicas", 0) == there == count
    return Instances(
        wanted=count,
        there=there,
        ready=ready,
        endpoints=addresses,
        troubles=troubles(observed.pods, deployment),
        changing=not rolled_out,
    )


def _of_endpoints(pool: GPUPool, observed: Observed) -> Instances:
    urls = () if pool.spec.suspend else tuple(endpoint.url for endpoint in pool.spec.endpoints or ())
    reported = _reported(pool, observed.said)
    ready = sum(1 for url in urls if url in reported and reported[url].ready)
    return Instances(wanted=len(urls), there=len(urls), ready=ready, endpoints=urls)


def _reported(pool: GPUPool, report: Report | None) -> dict[str, ReportedInstance]:
    said = report.pools.get(pool.name) if report else None
    return {each.url: each for each in (said.instances if said else ())}


def _address(pod: Manifest, port: int) -> str:
    ip = str((pod.get("status") or {}).get("podIP", ""))
    return f"http://[{ip}]:{port}" if ":" in ip else f"http://{ip}:{port}"


def _suspended(pool: GPUPool, instances: Instances) -> Finding | None:
    if pool.spec.suspend:
        return Finding("False", Reason.SUSPENDED, "the pool is suspended")
    if instances.wanted == 0 and pool.spec.source in ("Pods", "Emulated"):
        return Finding("False", Reason.SCALED_TO_ZERO, "no instance is wanted")
    return None


def _ready(pool: GPUPool, observed: Observed, instances: Instances) -> Finding:
    if pool.spec.source == "Endpoints":
        return _ready_endpoints(pool, observed, instances)
    if pool.spec.source == "Selector" and instances.there == 0:
        return Finding("False", Reason.NO_PODS_SELECTED, "no pod has the labels of spec.selector")
    if instances.ready >= instances.wanted:
        return Finding("True", Reason.SERVING, instances.counted)
    trouble = instances.troubles[0] if instances.troubles else None
    message = f"{instances.counted}; {trouble.message}" if trouble else instances.counted
    if instances.ready:
        return Finding("True", Reason.PARTLY_SERVING, message)
    if trouble is None:
        return Finding("Unknown", Reason.PROGRESSING, message)
    status: Truth = "Unknown" if trouble.reason in PATIENT else "False"
    return Finding(status, trouble.reason, message)


def _ready_endpoints(pool: GPUPool, observed: Observed, instances: Instances) -> Finding:
    if (report := observed.said) is None:
        silent = "the router has not said whether they answer"
        known = last_finding(observed.primary, ConditionType.READY) if observed.primary else None
        return known or Finding("Unknown", Reason.ROUTER_NOT_READY, silent)
    counted = f"{instances.ready} of {instances.wanted} endpoints answer"
    if instances.ready == instances.wanted:
        return Finding("True", Reason.SERVING, counted)
    missing = [
        each.message
        for each in report.problems
        if (each.kind, each.name, each.reason) == ("GPUPool", pool.name, Reason.SECRET_NOT_FOUND.value)
    ]
    reason, words = Reason.SECRET_NOT_FOUND, "; ".join(missing)
    if not missing:
        reported = _reported(pool, report)
        down = next(url for url in instances.endpoints if url not in reported or not reported[url].ready)
        why = reported[down].message if down in reported else "the router does not know it yet"
        reason, words = Reason.ENGINE_UNREACHABLE, f"{down}: {why}"
    if instances.ready:
        reason = Reason.PARTLY_SERVING
    return Finding(truth(instances.ready > 0), reason, f"{counted}; {words}")


def _patience(found: Sequence[Trouble], now: float) -> float | None:
    """Return the seconds for which the pods that no node takes may still be waited for; None when it is no matter."""
    if not found or found[0].reason is not Reason.UNSCHEDULABLE:
        return None
    begun = min((each.since for each in found if each.since is not None), default=now)
    left = begun + UNSCHEDULABLE_SECONDS - now
    return left if left > 0 else None


def _stalled(instances: Instances, patience: float | None) -> Finding | None:
    if not instances.troubles or instances.ready >= instances.wanted or patience is not None:
        return None
    trouble = instances.troubles[0]
    if trouble.reason in PATIENT:
        return None
    return Finding("True", trouble.reason, trouble.message)
