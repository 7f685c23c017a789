from typing import Any

import pytest

from hexflow_router.discovery import Listed
from hexflow_router.fleet import PodSource
from hexflow_router.pods import listed_pods
from hexflow_router.watch import Hold
from support.datapath import a_pool

MADE = "hexflow.dev/pool"


def a_pod(
    name: str = "pod", *, pool: str | None = "a100", uid: str = "12345678-9", **given: Any
) -> dict[str, Any]:
    """Return a pod that is ready; ``given`` changes its status, ``labels`` and ``deleted`` the rest."""
    labels = given.pop("labels", {MADE: pool} if pool else {})
    deleted = {"deletionTimestamp": "2026-11-30T07:00:00Z"} if given.pop("deleted", False) else {}
    containers = given.pop("containers", [{"name": "engine"}])
    status = {
        "phase": "Running",
        "podIP": "10.0.0.1",
        "conditions": [{"type": "Ready", "status": "True"}],
    } | given
    return {
        "metadata": {"name": name, "uid": uid, "labels": labels, **deleted},
        "spec": {"containers": containers},
        "status": {key: value for key, value in status.items() if value is not None},
    }


def listed(*pods: dict[str, Any], **pool: Any) -> tuple[Listed, ...]:
    return listed_pods([a_pool(**pool)], {MADE: pods})


def test_a_pod_that_is_ready_is_an_instance_known_by_its_uid() -> None:
    (found,) = listed(a_pod(labels={MADE: "a100", "hexflow.dev/gpu-type": "A100-80GB"}))
    assert found == Listed(
        id="pod.12345678", pool="a100", url="http://10.0.0.1:8000", gpu_type="A100-80GB", hold=None
    )


def test_an_address_of_ipv6_stands_in_brackets() -> None:
    (found,) = listed(a_pod(podIP="fd00::7"), pods=PodSource(port=9000))
    assert found.url == "http://[fd00::7]:9000"


@pytest.mark.parametrize(
    ("pod", "hold"),
    [
        (a_pod(conditions=[{"type": "Ready", "status": "False"}]), Hold.POD_NOT_READY),
        (a_pod(conditions=[{"type": "Ready", "status": "Unknown"}]), Hold.POD_NOT_READY),
        (a_pod(conditions=None), Hold.POD_NOT_READY),
        (a_pod(deleted=True), Hold.TERMINATING),
        (a_pod(deleted=True, conditions=None), Hold.TERMINATING),
    ],
)
def test_a_pod_that_is_not_ready_or_told_to_end_is_held_back(pod: dict[str, Any], hold: Hold) -> None:
    assert [each.hold for each in listed(pod)] == [hold]


def test_pods_of_a_suspended_pool_may_finish_what_they_run() -> None:
    assert [each.hold for each in listed(a_pod(), suspended=True)] == [Hold.SUSPENDED]


@pytest.mark.parametrize("status", [{"podIP": None}, {"phase": "Failed"}, {"phase": "Succeeded"}])
def test_a_pod_without_an_address_or_at_its_end_is_no_instance(status: dict[str, Any]) -> None:
    assert listed(a_pod(**status)) == ()


def test_an_engine_that_was_started_again_is_another_instance_and_a_sidecar_is_not() -> None:
    containers = [{"name": "sidecar"}, {"name": "engine"}]
    statuses = [{"name": "sidecar", "restartCount": 4}, {"name": "engine", "restartCount": 2}]
    (found,) = listed(a_pod(containers=containers, containerStatuses=statuses))
    assert found.id == "pod.12345678.2"
    own = [
        {"name": "mesh", "ports": [{"containerPort": 15001}]},
        {"name": "vllm", "ports": [{"containerPort": 8000}]},
    ]
    statuses = [{"name": "mesh", "restartCount": 4}, {"name": "vllm", "restartCount": 1}]
    (found,) = listed(a_pod(containers=own, containerStatuses=statuses))
    assert found.id == "pod.12345678.1"
    unclear = [{"name": "mesh"}, {"name": "vllm"}]
    (found,) = listed(a_pod(containers=unclear, containerStatuses=statuses))
    assert found.id == "pod.12345678"


def test_a_pod_belongs_to_one_pool_the_one_it_was_made_for_first() -> None:
    ours, theirs = a_pod("ours", uid="1"), a_pod("theirs", uid="2", pool=None, labels={"app": "vllm"})
    pools = [
        a_pool("own", pods=PodSource(labels="app=vllm")),
        a_pool("own-too", pods=PodSource(labels="app=vllm")),
        a_pool("a100"),
    ]
    found = listed_pods(pools, {"app=vllm": [ours, theirs], MADE: [ours]})
    assert {each.id: each.pool for each in found} == {"theirs.2": "own", "ours.1": "a100"}


def test_a_pod_of_a_pool_that_is_not_there_is_no_instance() -> None:
    assert listed(a_pod(pool="gone")) == ()
