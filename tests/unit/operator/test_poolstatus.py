from typing import Any

import pytest

from hexflow_operator.conditions import timestamp
from hexflow_operator.observed import Refusal, RouterReport
from support.observations import (
    NOW,
    RUNNING,
    Object,
    a_deployment,
    a_pod,
    a_pool,
    a_waiting_container,
    an_unscheduled_pod,
    condition_of,
    decide,
)

QUOTA = 'pods "a100-engine-x" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=1'
NO_GPU = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."


def status_of(pool: Object, **observed: Any) -> Any:
    return decide(pool, **observed).status


def test_a_pool_whose_instances_are_all_ready_serves() -> None:
    pods = (a_pod("x", ready=True, ip="10.1.0.2"), a_pod("y", ready=True, ip="fd00::7"))
    status = status_of(a_pool(replicas=2), children=(a_deployment(replicas=2, ready=2),), pods=pods)
    assert condition_of(status) == ("True", "Serving", "2 of 2 instances are ready")
    assert condition_of(status, "Reconciling")[0] == "False"
    assert condition_of(status, "Stalled")[0] == "False"
    assert (status["ready"], status["replicas"], status["readyReplicas"]) == ("2/2", 2, 2)
    assert status["endpoints"] == ["http://10.1.0.2:8000", "http://[fd00::7]:8000"]
    assert status["selector"].startswith("app.kubernetes.io/name=hexflow,app.kubernetes.io/instance=a100")
    assert status["profile"] == "a100-80gb-qwen2.5-7b-tp1"


def test_a_pool_with_some_instances_serves_and_says_what_the_others_lack() -> None:
    pods = (a_pod("x", ready=True), a_pod("y", **RUNNING))
    status = status_of(a_pool(replicas=2), children=(a_deployment(replicas=2, ready=1),), pods=pods)
    assert condition_of(status)[:2] == ("True", "PartlyServing")
    assert "pod y: the engine runs and its model is not loaded" in condition_of(status)[2]
    assert condition_of(status, "Reconciling")[0] == "True"


CREATE_ERROR = "CreateContainerConfigError"


@pytest.mark.parametrize(
    ("pod", "ready", "reason", "words"),
    [
        (a_pod(**RUNNING), "Unknown", "ModelLoading", "not loaded yet"),
        (a_pod(), "Unknown", "Starting", "are being started"),
        (an_unscheduled_pod(words=NO_GPU), "False", "Unschedulable", NO_GPU),
        (
            a_pod(**a_waiting_container("ErrImagePull", "not found: vllm:nope")),
            "False",
            "ImageNotPulled",
            "vllm:nope",
        ),
        (
            a_pod(
                **a_waiting_container(
                    "ImagePullBackOff", 'Back-off pulling image "x": ErrImagePull: no such host'
                )
            ),
            "False",
            "ImageNotPulled",
            "pod a100-engine-x: no such host",
        ),
        (
            a_pod(**a_waiting_container(CREATE_ERROR, 'secret "hugging-face" not found')),
            "False",
            "SecretNotFound",
            'secret "hugging-face" not found',
        ),
        (
            a_pod(**a_waiting_container(CREATE_ERROR, 'configmap "proxies" not found')),
            "False",
            "ConfigMapNotFound",
            "proxies",
        ),
        (
            a_pod(
                **a_waiting_container(
                    "CrashLoopBackOff",
                    "back-off 40s restarting",
                    restartCount=3,
                    lastState={
                        "terminated": {"exitCode": 1, "reason": "Error", "message": "CUDA out of memory"}
                    },
                )
            ),
            "False",
            "ContainerFailed",
            "exit code 1 (Error); its last words: CUDA out of memory",
        ),
    ],
)
def test_a_pool_without_an_instance_says_why_in_the_words_of_who_knows(
    pod: Object, ready: str, reason: str, words: str
) -> None:
    status = status_of(a_pool(), children=(a_deployment(),), pods=(pod,))
    assert condition_of(status)[:2] == (ready, reason)
    assert words in condition_of(status)[2]


def test_a_container_that_ends_again_and_again_says_the_same_between_two_lives() -> None:
    last = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    waiting = a_pod(**a_waiting_container("CrashLoopBackOff", "x", restartCount=2, lastState=last))
    alive = {"state": {"running": {}}, "restartCount": 2, "lastState": last}
    running = a_pod(containerStatuses=[alive])
    told = [
        condition_of(status_of(a_pool(), children=(a_deployment(),), pods=(pod,)))
        for pod in (waiting, running)
    ]
    assert told[0] == told[1]
    assert "OOMKilled" in told[0][2]


def test_an_init_container_that_has_done_its_work_is_no_trouble() -> None:
    done = {"state": {"terminated": {"exitCode": 0}}, "restartCount": 1}
    pod = a_pod(initContainerStatuses=[done], **RUNNING)
    assert condition_of(status_of(a_pool(), children=(a_deployment(),), pods=(pod,)))[1] == "ModelLoading"


@pytest.mark.parametrize(
    ("words", "reason"), [(QUOTA, "QuotaExceeded"), ("violates PodSecurity", "PodsRefused")]
)
def test_pods_that_are_not_even_made_say_why(words: str, reason: str) -> None:
    status = status_of(a_pool(), children=(a_deployment(failure=words),))
    assert condition_of(status)[:2] == ("False", reason)
    assert words in condition_of(status)[2]
    assert condition_of(status, "Stalled")[:2] == ("True", reason)


def test_a_pod_that_no_node_takes_is_waited_for_before_the_pool_is_stalled() -> None:
    pool, children = a_pool(), (a_deployment(),)
    early = (an_unscheduled_pod(words=NO_GPU, since=timestamp(NOW - 60)),)
    late = (an_unscheduled_pod(words=NO_GPU, since=timestamp(NOW - 400)),)
    waited = decide(pool, children=children, pods=early)
    assert condition_of(waited.status, "Stalled")[0] == "False"
    assert condition_of(waited.status, "Reconciling")[0] == "True"
    assert waited.requeue_after == pytest.approx(240, abs=1)
    stalled = decide(pool, children=children, pods=late)
    assert condition_of(stalled.status, "Stalled")[:2] == ("True", "Unschedulable")
    assert condition_of(stalled.status, "Reconciling")[0] == "False"
    assert stalled.requeue_after is None


def test_of_several_troubles_the_gravest_is_told() -> None:
    pods = (a_pod("a", **RUNNING), an_unscheduled_pod("b", words=NO_GPU), a_pod("c"))
    status = status_of(a_pool(replicas=3), children=(a_deployment(replicas=3),), pods=pods)
    assert condition_of(status)[1] == "Unschedulable"


def test_a_pod_that_is_going_counts_for_nothing() -> None:
    pod = an_unscheduled_pod(words=NO_GPU)
    pod["metadata"]["deletionTimestamp"] = "2026-11-30T07:00:00Z"
    assert condition_of(status_of(a_pool(), children=(a_deployment(),), pods=(pod,)))[1] == "Progressing"


def test_a_suspended_pool_says_so_and_is_at_rest() -> None:
    status = status_of(a_pool(suspend=True, replicas=3), children=(a_deployment(replicas=0),))
    assert condition_of(status)[:2] == ("False", "Suspended")
    assert condition_of(status, "Reconciling")[0] == condition_of(status, "Stalled")[0] == "False"
    assert status["ready"] == "0/0"


def test_a_pool_that_is_scaled_to_zero_says_so() -> None:
    assert (
        condition_of(status_of(a_pool(replicas=0), children=(a_deployment(replicas=0),)))[1] == "ScaledToZero"
    )


def test_a_roll_out_is_on_its_way_until_every_pod_is_new() -> None:
    deployment = a_deployment(replicas=2, ready=2)
    deployment["status"]["updatedReplicas"] = 1
    status = status_of(a_pool(replicas=2), children=(deployment,))
    assert (condition_of(status)[0], condition_of(status, "Reconciling")[0]) == ("True", "True")


def test_a_deployment_whose_change_the_controller_has_not_seen_is_on_its_way() -> None:
    deployment = a_deployment(ready=1, generation=2)
    assert condition_of(status_of(a_pool(), children=(deployment,)), "Reconciling")[0] == "True"


def test_pods_of_ones_own_are_counted_and_missed() -> None:
    pool = a_pool(selector={"matchLabels": {"app": "vllm"}}, engine={"port": 9000})
    status = status_of(pool, pods=(a_pod("x", ready=True), a_pod("y", **RUNNING)))
    assert condition_of(status)[:2] == ("True", "PartlyServing")
    assert (status["ready"], status["endpoints"]) == ("1/2", ["http://10.1.0.1:9000"])
    assert "selector" not in status
    assert condition_of(status_of(pool))[:2] == ("False", "NoPodsSelected")


def report(**content: Any) -> RouterReport:
    return RouterReport(at=NOW, content=content)


def test_endpoints_are_as_the_router_says() -> None:
    pool = a_pool(endpoints=[{"url": "http://10.0.0.7:8000"}, {"url": "http://10.0.0.8:8000"}])
    assert condition_of(status_of(pool))[:2] == ("Unknown", "RouterNotReady")
    one = {"url": "http://10.0.0.7:8000", "ready": True}
    two = {"url": "http://10.0.0.8:8000", "ready": False, "message": "connection refused"}
    for instances, told in (
        ([one, {**two, "ready": True}], ("True", "Serving")),
        ([one, two], ("True", "PartlyServing")),
        ([two], ("False", "EngineUnreachable")),
    ):
        status = status_of(pool, report=report(pools={"a100": {"instances": instances}}))
        assert condition_of(status)[:2] == told
    assert "10.0.0.7:8000: the router does not know it yet" in condition_of(status)[2]
    again = status_of(pool | {"status": status})
    assert condition_of(again or status)[:2] == told, "an operator that has just started has not asked yet"


def test_a_secret_that_the_router_misses_is_told_at_the_pool() -> None:
    pool = a_pool(
        endpoints=[{"url": "http://10.0.0.7:8000", "apiKeySecretRef": {"name": "keys", "key": "a"}}]
    )
    problem = {"kind": "GPUPool", "name": "a100", "reason": "SecretNotFound", "message": "keys has no key a"}
    status = status_of(pool, report=report(problems=[problem]))
    assert condition_of(status)[:2] == ("False", "SecretNotFound")


def test_a_name_that_is_taken_does_not_hide_that_the_pool_serves() -> None:
    refusal = Refusal(kind="Service", name="a100-engine", reason="NameTaken", message="rename or delete it")
    status = status_of(a_pool(), refused=(refusal,))
    assert condition_of(status)[:2] == ("False", "NameTaken")
    serving = status_of(a_pool(), children=(a_deployment(ready=1),), refused=(refusal,))
    assert condition_of(serving)[:2] == ("True", "Serving")
    stalled = condition_of(serving, "Stalled")
    assert stalled == ("True", "NameTaken", "Service a100-engine: rename or delete it")


def test_what_the_api_server_refuses_is_told_in_its_words() -> None:
    refusal = Refusal(
        kind="Deployment", name="a100-engine", reason="Forbidden", message="cannot patch resource"
    )
    status = status_of(a_pool(), refused=(refusal,))
    assert condition_of(status)[:2] == ("False", "Forbidden")
    assert condition_of(status, "Stalled")[2] == "Deployment a100-engine: cannot patch resource"


@pytest.mark.parametrize(
    ("profile", "reason"),
    [
        ({"configMapRef": {"name": "speeds", "key": "a100"}}, "ConfigMapNotFound"),
        ({"builtin": "nope"}, "ProfileNotFound"),
    ],
)
def test_a_profile_that_is_not_there_stops_changes_and_takes_nothing_down(
    profile: Object, reason: str
) -> None:
    plan = decide(a_pool(profile=profile), children=(a_deployment(ready=1),))
    assert condition_of(plan.status)[:2] == ("False", reason)
    assert (plan.apply, plan.delete) == ((), ())


def test_an_object_that_breaks_a_newer_rule_is_left_alone_and_told() -> None:
    pool = a_pool(replicas=-1)
    pool["status"] = {"ready": "2/2", "conditions": []}
    plan = decide(pool, children=(a_deployment(ready=1),))
    assert (plan.apply, plan.delete) == ((), ())
    assert condition_of(plan.status)[:2] == ("False", "InvalidSpec")
    assert plan.status is not None
    assert plan.status["ready"] == "2/2"


def test_fields_of_a_newer_operator_are_passed_over_and_named() -> None:
    plan = decide(a_pool(futureField=1, engine={"newer": True}))
    assert len(plan.apply) == 3
    assert condition_of(plan.status, "Stalled") == (
        "True",
        "UnknownFields",
        "passed over: spec.engine.newer, spec.futureField",
    )


def test_a_message_that_is_too_long_is_cut() -> None:
    status = status_of(a_pool(), children=(a_deployment(),), pods=(an_unscheduled_pod(words="x" * 5000),))
    assert len(condition_of(status)[2]) == 4096


def test_what_stands_in_the_way_of_a_change_does_not_hide_that_a_pool_serves() -> None:
    refusal = Refusal(
        kind="PodDisruptionBudget", name="a100-engine", reason="Forbidden", message="cannot patch"
    )
    serving = (a_deployment(ready=1),)
    for status in (
        status_of(a_pool(), children=serving, refused=(refusal,)),
        status_of(a_pool(newer=1), children=serving),
    ):
        assert condition_of(status)[:2] == ("True", "Serving")
        assert condition_of(status, "Stalled")[0] == "True"


def test_a_container_that_could_not_even_begin_is_told() -> None:
    for waiting in ("CrashLoopBackOff", "RunContainerError"):
        pod = a_pod(**a_waiting_container(waiting, "exec: vllm: not found"))
        told = condition_of(status_of(a_pool(), children=(a_deployment(),), pods=(pod,)))
        assert told[:2] == ("False", "ContainerFailed")
        assert "vllm: not found" in told[2]
