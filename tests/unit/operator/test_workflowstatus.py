from copy import deepcopy
from typing import Any

import pytest

from hexflow_operator.conditions import timestamp
from hexflow_operator.observed import RouterReport
from support.observations import (
    NOW,
    RUNNING,
    THEN,
    Object,
    a_condition,
    a_deployment,
    a_pod,
    a_pool,
    a_workflow,
    an_unscheduled_pod,
    condition_of,
    decide,
)

ROUTER = a_deployment("hexflow-router", ready=1)


def a_ready_pool(name: str = "a100", *, status: str = "True", reason: str = "Serving", **spec: Any) -> Object:
    ready = a_condition("Ready", status, reason=reason)
    return a_pool(name, **spec) | {"status": {"conditions": [ready]}}


def status_of(workflow: Object, **observed: Any) -> Any:
    given = {"router": ROUTER, "pools": (a_ready_pool(),), **observed}
    return decide(workflow, **given).status


def report(**content: Any) -> RouterReport:
    return RouterReport(at=NOW, content=content)


def test_a_workflow_with_a_router_and_a_pool_serves() -> None:
    status = status_of(a_workflow())
    assert condition_of(status)[:2] == ("True", "Serving")
    assert condition_of(status, "Reconciling")[0] == condition_of(status, "Stalled")[0] == "False"
    assert status["url"] == "http://hexflow-router.team.svc/v1/workflows/shop/queries"


@pytest.mark.parametrize(
    ("spec", "pools", "reason", "words"),
    [
        ({}, (), "NoPool", "there is no GPUPool"),
        (
            {"pools": {"names": ["a10"]}},
            (a_ready_pool(),),
            "PoolNotFound",
            "spec.pools.names[0]: there is no GPUPool 'a10'",
        ),
        (
            {"pools": {"selector": {"matchLabels": {"a": "b"}}}},
            (a_ready_pool(),),
            "NoPool",
            "has these labels",
        ),
        (
            {},
            (a_ready_pool(), a_ready_pool("other", model={"name": "other/model"})),
            "ModelAmbiguous",
            "several models",
        ),
        (
            {"stages": [{"name": "a", "kind": "CandidateGeneration", "model": "nobody/serves"}]},
            (a_ready_pool(),),
            "ModelNotServed",
            "nobody/serves",
        ),
        (
            {"stages": [{"name": "a", "kind": "CandidateGeneration", "pools": ["nope"]}]},
            (a_ready_pool(),),
            "PoolNotFound",
            "nope",
        ),
    ],
)
def test_what_a_workflow_names_and_is_not_there_is_said(
    spec: Object, pools: tuple[Object, ...], reason: str, words: str
) -> None:
    status = status_of(a_workflow(**spec), pools=pools)
    assert condition_of(status)[:2] == ("False", reason)
    assert words in condition_of(status)[2]
    assert condition_of(status, "Stalled")[:2] == ("True", reason)


def test_a_pool_that_is_being_deleted_is_not_there() -> None:
    pool = a_ready_pool()
    pool["metadata"]["deletionTimestamp"] = THEN
    assert condition_of(status_of(a_workflow(), pools=(pool,)))[1] == "NoPool"


@pytest.mark.parametrize(
    ("states", "ready", "words"),
    [
        ([("False", "Unschedulable"), ("False", "Suspended")], "False", "a: Unschedulable; b: Suspended"),
        ([("Unknown", "ModelLoading"), ("False", "Unschedulable")], "Unknown", "a: ModelLoading"),
    ],
)
def test_pools_that_are_not_ready_are_named_with_their_reasons(
    states: list[tuple[str, str]], ready: str, words: str
) -> None:
    pools = tuple(
        a_ready_pool(name, status=status, reason=reason)
        for name, (status, reason) in zip("ab", states, strict=True)
    )
    status = status_of(a_workflow(), pools=pools)
    assert condition_of(status)[:2] == (ready, "PoolsNotReady")
    assert words in condition_of(status)[2]


def test_a_router_without_a_ready_pod_says_why() -> None:
    router = a_deployment("hexflow-router")
    told = [
        condition_of(status_of(a_workflow(), router=there, router_pods=pods))
        for there, pods in (
            (None, ()),
            (router, ()),
            (router, (a_pod("r", **RUNNING),)),
            (router, (an_unscheduled_pod("r", words="0/3 nodes"),)),
        )
    ]
    assert [each[:2] for each in told] == [
        ("Unknown", "RouterNotReady"),
        ("Unknown", "RouterNotReady"),
        ("Unknown", "RouterNotReady"),
        ("False", "Unschedulable"),
    ]
    assert told[3][2] == "router: pod r: 0/3 nodes"


def test_a_secret_that_the_router_misses_is_told() -> None:
    problem = {
        "kind": "TextToSQLWorkflow",
        "name": "shop",
        "reason": "SecretNotFound",
        "message": "no key dsn",
    }
    other = {**problem, "name": "other"}
    status = status_of(a_workflow(), report=report(problems=[other, problem]))
    assert condition_of(status) == ("False", "SecretNotFound", "no key dsn")
    assert condition_of(status_of(a_workflow(), report=report(problems=[other])))[0] == "True"


def test_measurements_are_copied_rounded_and_kept_while_nobody_can_ask() -> None:
    measured = {"p95Seconds": 12.3456, "attainment": 0.97512}
    status = status_of(a_workflow(), report=report(workflows={"shop": measured}))
    assert (status["p95Seconds"], status["attainment"], status["attainmentPercent"]) == (12.3, 0.975, "97.5")
    workflow = a_workflow() | {"status": status}
    assert status_of(workflow) is None, "nothing has changed"
    nearly = report(workflows={"shop": {"p95Seconds": 12.34, "attainment": 0.9752}})
    assert status_of(workflow, report=nearly) is None, "the last digit is no reason to write"
    nothing: Any = report(workflows={"shop": {"p95Seconds": None, "attainment": None}})
    assert "p95Seconds" not in status_of(workflow, report=nothing)


def test_parameters_are_what_the_router_says_else_what_the_spec_begins_with() -> None:
    workflow = a_workflow(
        scheduling={
            "policy": "HexGenFlow",
            "alpha": {"seed": 0.5, "min": 0.1, "max": 0.9},
            "beta": {"value": 2.0},
        }
    )
    assert status_of(workflow)["parameters"] == {
        "alpha": {"value": 0.5, "source": "Seed"},
        "beta": {"value": 2.0, "source": "Pinned"},
    }
    fair = a_workflow(scheduling={"fairness": {"value": 1}})
    assert status_of(fair)["parameters"] == {"fairness": {"value": 1.0, "source": "Pinned"}}
    tuned = {"alpha": {"value": 0.4, "source": "Tuned", "since": THEN}}
    assert (
        status_of(workflow, report=report(workflows={"shop": {"parameters": tuned}}))["parameters"] == tuned
    )
    newer = {"alpha": {"value": 0.4, "source": "Guessed"}}
    told = status_of(workflow, report=report(workflows={"shop": {"parameters": newer}}))
    assert "parameters" not in told, "a word of a newer router is not repeated"


def a_policy(**data: str) -> Object:
    metadata = {
        "name": "shop-policy",
        "namespace": "team",
        "labels": {"hexflow.dev/part": "policy", "hexflow.dev/workflow": "shop"},
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def a_cron_job(**status: str) -> Object:
    metadata = {"name": "shop-tuner", "namespace": "team", "creationTimestamp": THEN}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "status": status}


def test_a_recommendation_of_the_tuner_is_copied_and_nonsense_is_not() -> None:
    workflow = a_workflow(tuning={"mode": "Recommend"})
    policy = a_policy(**{"recommended.json": f'{{"parameters": {{"alpha": 0.3}}, "since": "{THEN}"}}'})
    plan = decide(workflow, router=ROUTER, pools=(a_ready_pool(),), children=(policy,))
    assert plan.status is not None
    assert plan.status["recommended"] == {"alpha": {"value": 0.3, "since": THEN}}
    assert plan.delete == (), "the tuner's ConfigMap is not ours"
    for text in ("{", "[]", '{"parameters": 7}', '{"parameters": {"alpha": "x"}}'):
        assert "recommended" not in status_of(workflow, children=(a_policy(**{"recommended.json": text}),))


@pytest.mark.parametrize(
    ("mode", "cron_job", "outcome", "told"),
    [
        ("Off", {}, "{}", ("False", "TuningOff")),
        ("Auto", {}, "{}", ("Unknown", "NotTunedYet")),
        ("Auto", {"lastScheduleTime": THEN}, "{}", ("Unknown", "NotTunedYet")),
        (
            "Auto",
            {"lastScheduleTime": THEN, "lastSuccessfulTime": THEN},
            '{"reason": "Tuned"}',
            ("True", "Tuned"),
        ),
        (
            "Auto",
            {"lastScheduleTime": THEN, "lastSuccessfulTime": THEN},
            '{"reason": "TooFewQueries", "message": "3 of 100"}',
            ("False", "TooFewQueries"),
        ),
        (
            "Auto",
            {"lastScheduleTime": "2026-11-30T09:00:00Z", "lastSuccessfulTime": THEN},
            '{"reason": "Tuned"}',
            ("False", "TuningFailed"),
        ),
        ("Auto", {"lastScheduleTime": "2026-11-30T09:00:00Z"}, "{}", ("False", "TuningFailed")),
    ],
)
def test_tuning_is_as_fresh_as_its_last_run(
    mode: str, cron_job: Object, outcome: str, told: tuple[str, str]
) -> None:
    children = (a_cron_job(**cron_job), a_policy(**{"outcome.json": outcome}))
    status = status_of(a_workflow(tuning={"mode": mode}), children=children)
    assert condition_of(status, "TuningFresh")[:2] == told
    assert condition_of(status)[0] == "True", "tuning says nothing about Ready"


def test_a_workflow_that_says_nothing_of_tuning_has_no_word_on_it() -> None:
    assert [each["type"] for each in status_of(a_workflow())["conditions"]] == [
        "Ready",
        "Reconciling",
        "Stalled",
        "SettingsInForce",
    ]


def test_where_workflows_disagree_the_oldest_wins_and_the_others_say_so() -> None:
    old = a_workflow("old", created="2026-11-30T06:00:00Z", scheduling={"policy": "RoundRobin"})
    opinionated = a_workflow(
        "opinionated",
        created="2026-11-30T06:30:00Z",
        scheduling={"policy": "RoundRobin"},
        router={"resources": {"requests": {"cpu": "1"}}},
    )
    young = a_workflow("young", router={"resources": {"requests": {"cpu": "2"}}})
    together = {"workflows": (young, opinionated, old)}
    assert condition_of(status_of(old, **together), "SettingsInForce")[:2] == ("True", "Settled")
    assert condition_of(status_of(opinionated, **together), "SettingsInForce")[0] == "True"
    told = condition_of(status_of(young, **together), "SettingsInForce")
    assert told[:2] == ("False", "OtherSettingsInForce")
    assert "RoundRobin of old" in told[2]
    assert "as opinionated says" in told[2]
    assert status_of(young, **together)["policy"] == "RoundRobin"
    assert condition_of(status_of(young, **together))[0] == "True", "it is served all the same"


def test_transitions_are_told_once_and_only_status_moves_the_time() -> None:
    workflow = a_workflow()
    first = decide(workflow, router=None, pools=(a_ready_pool(),))
    assert [(event.type, event.reason) for event in first.events] == [("Normal", "RouterNotReady")]
    workflow |= {"status": first.status}
    again = decide(workflow, router=None, pools=(a_ready_pool(),), now=NOW + 60)
    assert (again.status, again.events) == (None, ())
    other = decide(workflow, router=a_deployment("hexflow-router"), pools=(a_ready_pool(),), now=NOW + 60)
    assert other.events == (), "the reason is the same, only the words differ"
    assert other.status is not None
    assert other.status["conditions"][0]["lastTransitionTime"] == timestamp(NOW)
    served = decide(workflow, router=ROUTER, pools=(a_ready_pool(),), now=NOW + 120)
    assert [(event.type, event.reason) for event in served.events] == [("Normal", "Serving")]
    assert served.status is not None
    assert served.status["conditions"][0]["lastTransitionTime"] == timestamp(NOW + 120)
    assert served.events[0].regarding.uid == workflow["metadata"]["uid"]


def test_an_operator_that_has_just_started_changes_nothing_of_what_the_router_has_said() -> None:
    workflow = a_workflow(
        scheduling={"policy": "HexGenFlow", "alpha": {"seed": 0.5, "min": 0.1, "max": 0.9}},
        tuning={"mode": "Auto"},
    )
    problem = {
        "kind": "TextToSQLWorkflow",
        "name": "shop",
        "reason": "SecretNotFound",
        "message": "no key dsn",
    }
    tuned = {"parameters": {"alpha": {"value": 0.4, "source": "Tuned", "since": THEN}}, "p95Seconds": 3.0}
    said = report(workflows={"shop": tuned}, problems=[problem])
    workflow |= {"status": status_of(workflow, report=said)}
    assert status_of(workflow) is None
    pinned = deepcopy(workflow)
    pinned["spec"]["scheduling"]["alpha"] = {"value": 0.7}
    pinned["metadata"] |= {"generation": 2, "resourceVersion": "2"}
    status = status_of(pinned)
    assert status["parameters"] == {"alpha": {"value": 0.7, "source": "Pinned"}}
    assert condition_of(status)[0] == "True", "what was said of another generation is no longer true"
