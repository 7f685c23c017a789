"""From pods, as the API server has them, to the instances that they are. Pure.

An instance is a pod's life: its UID, and how often its engine was started again, are in its identity, so that
nothing is expected of a new one that an old one had. A pod that is being deleted gets nothing new while what runs
there ends; one that is gone is listed no more.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from hexflow_api.label import GPU_TYPE, POOL
from hexflow_router.discovery import Listed
from hexflow_router.fleet import PoolSetup
from hexflow_router.watch import Hold

Pod = Mapping[str, Any]

ENGINE_CONTAINER: Final = "engine"
"""Name of the engine's container in pods that the operator makes."""
_LONGEST_NAME: Final = 200


def listed_pods(pools: Sequence[PoolSetup], pods: Mapping[str, Iterable[Pod]]) -> tuple[Listed, ...]:
    """Return the instances of ``pools`` among ``pods``, which are given by the selector that found them.

    A pod that several pools select is the first one's; one that the operator made is that pool's, and no other's.
    """
    found: dict[str, Listed] = {}
    for pool in pools:
        made_for = {pool.name} if pool.pods.labels == POOL else {pool.name, None}
        for pod in pods.get(pool.pods.labels, ()):
            uid = pod["metadata"]["uid"]
            if uid in found or _labels(pod).get(POOL) not in made_for:
                continue
            if listed := _listed(pool, pod):
                found[uid] = listed
    return tuple(found.values())


def _listed(pool: PoolSetup, pod: Pod) -> Listed | None:
    metadata, status = pod["metadata"], pod.get("status") or {}
    address = str(status.get("podIP") or "")
    if not address or status.get("phase") in ("Succeeded", "Failed"):
        return None
    restarts = _restarts(pod, pool.pods.port)
    name = f"{metadata['name'][:_LONGEST_NAME]}.{metadata['uid'][:8]}"
    return Listed(
        id=f"{name}.{restarts}" if restarts else name,
        pool=pool.name,
        url=f"http://[{address}]:{pool.pods.port}"
        if ":" in address
        else f"http://{address}:{pool.pods.port}",
        gpu_type=_labels(pod).get(GPU_TYPE),
        hold=_hold(pool, pod),
    )


def _hold(pool: PoolSetup, pod: Pod) -> Hold | None:
    if pod["metadata"].get("deletionTimestamp"):
        return Hold.TERMINATING
    if pool.suspended:
        return Hold.SUSPENDED
    conditions = (pod.get("status") or {}).get("conditions") or ()
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return None if ready else Hold.POD_NOT_READY


def _restarts(pod: Pod, port: int) -> int:
    """Return how often the engine was started again; 0 where it cannot be told which container that is."""
    containers = (pod.get("spec") or {}).get("containers") or ()
    names = [each["name"] for each in containers]
    if ENGINE_CONTAINER in names:
        engine = ENGINE_CONTAINER
    else:
        serving = [
            each["name"]
            for each in containers
            if any(open_["containerPort"] == port for open_ in each.get("ports") or ())
        ]
        engine = (serving or names or [""])[0] if len(serving or names) == 1 else ""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return next((int(each.get("restartCount") or 0) for each in statuses if each["name"] == engine), 0)


def _labels(pod: Pod) -> Mapping[str, str]:
    return pod["metadata"].get("labels") or {}
