"""Each rule refuses what breaks it, at the right place, with a remedy."""

from typing import Any

import pytest
from pydantic import ValidationError

from hexflow_api import RULES, GPUPool, TextToSQLWorkflow, refused_changes
from support.resources import a_pool, a_workflow, pool_data, workflow_data

LINK = {"name": "link", "kind": "SchemaLinking"}
CANDIDATES = {"name": "candidates", "kind": "CandidateGeneration"}
FIX = {"name": "fix", "kind": "SelfCorrection"}
SHOP = {"name": "shop", "dialect": "sqlite", "dsnSecretRef": {"name": "shop", "key": "dsn"}}
SELECTOR = {"matchLabels": {"app": "vllm"}}
INLINE = {"t0": 0.02, "t1": 0, "t2": 0, "c1": 0.0001, "c2": 0, "kvTokens": 50_000}

BROKEN: list[tuple[dict[str, Any], str, str]] = [
    (pool_data("hexflow-a"), "metadata.name", "must not begin with 'hexflow-'"),
    (pool_data(emulated=True, selector=SELECTOR), "spec", "keep one of selector, endpoints and emulated"),
    (pool_data(tensorParallelSize=4, gpu={"count": 2}), "spec.tensorParallelSize", "raise gpu.count"),
    (pool_data("a" * 41), "metadata.name", "at most 40 characters"),
    (pool_data("a.b"), "metadata.name", "no dot"),
    (pool_data(endpoints=[{"url": "a:8000"}]), "spec.endpoints[0].url", "such as http://10.0.0.7:8000"),
    (pool_data(endpoints=[{"url": "http://u:p@h"}]), "spec.endpoints[0].url", "put the key into a Secret"),
    (pool_data(endpoints=[{"url": "http://h/?k=1"}]), "spec.endpoints[0].url", "give the server's root"),
    (
        pool_data(endpoints=[{"url": "http://a:1"}, {"url": "http://a:1/v1"}]),
        "spec.endpoints[1].url",
        "take the second one out",
    ),
    (pool_data(selector={}), "spec.selector", "selector must ask for some label"),
    (
        pool_data(selector={"matchExpressions": [{"key": "a", "operator": "In"}]}),
        "spec.selector.matchExpressions[0]",
        "In and NotIn need values",
    ),
    (pool_data(profile={"inline": INLINE, "builtin": "x"}), "spec.profile", "give exactly one of inline"),
    (pool_data(cache={}), "spec.cache", "give exactly one of emptyDir, pvc, hostPath"),
    (workflow_data("hexflow-w"), "metadata.name", "must not begin with 'hexflow-'"),
    (workflow_data("w" * 41), "metadata.name", "at most 40 characters"),
    (
        workflow_data(
            pools={"selector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}}
        ),
        "spec.pools.selector.matchExpressions[0]",
        "Exists and DoesNotExist take none",
    ),
    (workflow_data(pools={}), "spec.pools", "give exactly one of names, selector"),
    (
        workflow_data(databases=[SHOP, SHOP]),
        "spec.databases[1].name",
        "each of the databases needs a name of its own",
    ),
    (
        workflow_data(slo={"classes": [{"name": "gold", "deadlineSeconds": n} for n in (1, 2)]}),
        "spec.slo.classes[1].name",
        "each of the classes needs a name of its own",
    ),
    (
        workflow_data(tenants=[{"name": "a", "apiKeySecretRef": {"name": "k", "key": k}} for k in "xy"]),
        "spec.tenants[1].name",
        "each of the tenants needs a name of its own",
    ),
    (
        workflow_data(stages=[CANDIDATES, CANDIDATES]),
        "spec.stages[1].name",
        "each of the stages needs a name of its own",
    ),
    (
        workflow_data(tenants=[{"name": "a", "sloClass": "gold"}]),
        "spec.tenants[0].sloClass",
        "must be one of slo.classes",
    ),
    (workflow_data(tenants=[{"name": "a"}, {"name": "b"}]), "spec.tenants[1]", "give the others a key"),
    (
        workflow_data(stages=[LINK | {"after": ["candidates"]}, CANDIDATES]),
        "spec.stages[0].after[0]",
        "move this stage down",
    ),
    (
        workflow_data(stages=[CANDIDATES | {"after": ["candidates"]}]),
        "spec.stages[0].after[0]",
        "after must name stages that are listed earlier",
    ),
    (workflow_data(stages=[LINK]), "spec.stages", "a pipeline needs a stage of kind CandidateGeneration"),
    (
        workflow_data(stages=[FIX, CANDIDATES]),
        "spec.stages[0].kind",
        "list a CandidateGeneration stage before",
    ),
    (workflow_data(stages=[CANDIDATES | {"maxRounds": 2}]), "spec.stages[0].maxRounds", "take it out here"),
    (workflow_data(stages=[LINK | {"fanOut": 2}, CANDIDATES]), "spec.stages[0].fanOut", "take it out here"),
    (
        workflow_data(pools={"names": ["a"]}, stages=[CANDIDATES | {"pools": ["a", "b"]}]),
        "spec.stages[0].pools[1]",
        "a stage may only narrow the workflow's pools",
    ),
    *(
        (workflow_data(scheduling={name: values}), f"spec.scheduling.{name}{field}", message)
        for name in ("alpha", "beta")
        for values, field, message in (
            ({"value": 0.5, "seed": 0.5}, "", "give either value (pinned) or seed, min and max"),
            ({}, "", "give either value (pinned) or seed, min and max"),
            ({"seed": 0.5, "min": 0.6, "max": 0.9}, "", "put them in order"),
            ({"value": 2000}, ".value", "choose a value there"),
        )
    ),
]


def parse(data: dict[str, Any]) -> GPUPool | TextToSQLWorkflow:
    model = GPUPool if data["kind"] == "GPUPool" else TextToSQLWorkflow
    return model.model_validate(data)


@pytest.mark.parametrize(("data", "path", "message"), BROKEN, ids=[path for _, path, _ in BROKEN])
def test_what_breaks_a_rule_is_refused_at_its_place(data: dict[str, Any], path: str, message: str) -> None:
    with pytest.raises(ValidationError) as error:
        parse(data)
    (detail,) = error.value.errors()
    assert detail["type"] == "rule"
    found = dict(detail["ctx"]["violations"])
    assert message in found[path]


def test_every_rule_is_broken_by_some_example() -> None:
    broken = set()
    for data, _, _ in BROKEN:
        with pytest.raises(ValidationError) as error:
            parse(data)
        broken |= {(data["kind"], message) for _, message in error.value.errors()[0]["ctx"]["violations"]}
    assert {(rule.kind, rule.message) for rule in RULES if rule.changed is None} == broken


def test_all_broken_rules_are_told_at_once() -> None:
    with pytest.raises(ValidationError, match=r"put them in order.*|each of the databases.*") as error:
        a_workflow(databases=[SHOP, SHOP], scheduling={"alpha": {"seed": 0.1, "min": 0.2, "max": 0.3}})
    assert len(error.value.errors()[0]["ctx"]["violations"]) == 2


def test_a_rule_has_everything_that_the_api_server_needs() -> None:
    for rule in RULES:
        assert "self" in rule.cel
        assert len(rule.message) <= 200
        assert rule.cel.count("(") == rule.cel.count(")")
        assert rule.cel.count("[") == rule.cel.count("]")


@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        ({}, {}, False),
        ({}, {"model": {"name": "other-7b"}}, True),
        ({}, {"model": {"name": "other-7b"}, "suspend": True}, False),
        ({"suspend": True}, {"model": {"name": "other-7b"}}, False),
        ({}, {"replicas": 3}, False),
    ],
)
def test_a_model_changes_only_while_its_pool_is_suspended(
    old: dict[str, Any], new: dict[str, Any], refused: bool
) -> None:
    found = refused_changes(a_pool(**old), a_pool(**new))
    assert [each.path for each in found] == ["spec.model"] * refused
    assert all("set suspend: true" in str(each) for each in found)


def test_zero_is_a_value() -> None:
    a_workflow(scheduling={"alpha": {"value": 0.0}})
    a_workflow(scheduling={"alpha": {"seed": 0.0, "min": 0.0, "max": 0.0}})


def test_a_pool_may_be_switched_from_emulated_to_endpoints_by_one_line() -> None:
    a_pool(emulated=False, endpoints=[{"url": "http://h:1"}], replicas=1)
