"""Each rule refuses what breaks it, at the right place, with a remedy."""

from typing import Any

import pytest
from pydantic import ValidationError

from hexflow_api import RULES, GPUPool, ResourceError, TextToSQLWorkflow, parse_resource, refused_changes
from support.badresources import RULES_BROKEN, SCHEMA_BROKEN, SHOP, UNKNOWN_FIELDS, Bad
from support.resources import a_pool, a_workflow


def parse(data: dict[str, Any]) -> GPUPool | TextToSQLWorkflow:
    model = GPUPool if data["kind"] == "GPUPool" else TextToSQLWorkflow
    return model.model_validate(data)


@pytest.mark.parametrize("bad", RULES_BROKEN, ids=[bad.path for bad in RULES_BROKEN])
def test_what_breaks_a_rule_is_refused_at_its_place(bad: Bad) -> None:
    with pytest.raises(ValidationError) as error:
        parse(bad.data)
    (detail,) = error.value.errors()
    assert detail["type"] == "rule"
    assert bad.rule is not None
    assert detail["ctx"]["violations"] == [(bad.path, bad.rule.message)]


@pytest.mark.parametrize(
    "bad", [*SCHEMA_BROKEN, *UNKNOWN_FIELDS], ids=[bad.path for bad in (*SCHEMA_BROKEN, *UNKNOWN_FIELDS)]
)
def test_what_a_field_may_not_hold_is_refused_at_its_place(bad: Bad) -> None:
    with pytest.raises(ResourceError) as error:
        parse_resource(bad.data)
    (problem,) = error.value.problems
    assert (problem.path, bad.rule) == (bad.path, None)
    assert bad.words in problem.message


def test_every_rule_is_broken_by_some_example() -> None:
    broken = set()
    for bad in RULES_BROKEN:
        with pytest.raises(ValidationError) as error:
            parse(bad.data)
        broken |= {(bad.data["kind"], message) for _, message in error.value.errors()[0]["ctx"]["violations"]}
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
