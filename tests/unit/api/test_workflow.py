"""TextToSQLWorkflow: its defaults are the paper's, its deadline is the tenant's."""

import pytest
from pydantic import ValidationError

from hexflow_api import TextToSQLWorkflow
from support.resources import a_workflow

CANDIDATES = {"name": "candidates", "kind": "CandidateGeneration"}


def test_a_workflow_without_stages_has_the_four_of_the_paper() -> None:
    stages = a_workflow().spec.effective_stages()
    assert [stage.kind for stage in stages] == [
        "SchemaLinking",
        "CandidateGeneration",
        "SelfCorrection",
        "Evaluation",
    ]
    assert [stage.after for stage in stages] == [
        (),
        ("schema-linking",),
        ("candidate-generation",),
        ("self-correction",),
    ]
    assert [stage.on_timeout for stage in stages] == ["Skip"] * 4
    assert (stages[1].fan_out, stages[1].samples, stages[2].max_rounds) == (4, 1, 3)
    assert (stages[0].fan_out, stages[3].max_rounds) == (None, None)


def test_what_a_stage_says_is_kept() -> None:
    workflow = a_workflow(
        stages=[
            {"name": "link", "kind": "SchemaLinking", "onTimeout": "Fail"},
            {"name": "a", "kind": "CandidateGeneration", "fanOut": 8, "samples": 2, "after": ["link"]},
            {"name": "b", "kind": "CandidateGeneration", "after": ["link"], "sampling": {"temperature": 1}},
            {"name": "fix", "kind": "SelfCorrection", "maxRounds": 1, "after": ["a", "b"]},
        ]
    )
    link, first, second, fix = workflow.spec.effective_stages()
    assert link.on_timeout == "Fail"
    assert (first.fan_out, first.samples) == (8, 2)
    assert second.after == ("link",)
    assert second.sampling is not None
    assert second.sampling.temperature == 1.0
    assert (fix.max_rounds, fix.after) == (1, ("a", "b"))


def test_a_workflow_has_a_deadline_of_sixty_seconds_and_finishes_late_queries() -> None:
    spec = a_workflow().spec
    assert spec.deadline_seconds() == 60
    assert spec.slo.on_deadline == "Finish"


def test_a_tenants_class_sets_its_deadline() -> None:
    spec = a_workflow(
        slo={"deadlineSeconds": 40, "classes": [{"name": "gold", "deadlineSeconds": 20}]},
        tenants=[
            {"name": "analytics", "sloClass": "gold", "apiKeySecretRef": {"name": "keys", "key": "a"}},
            {"name": "support"},
        ],
    ).spec
    assert spec.deadline_seconds("analytics") == 20
    assert spec.deadline_seconds("support") == 40
    assert spec.deadline_seconds("nobody") == 40


def test_databases_and_tenants_are_found_by_name() -> None:
    spec = a_workflow(tenants=[{"name": "support"}]).spec
    database, tenant = spec.database("shop"), spec.tenant("support")
    assert database is not None
    assert database.sample_values == 3
    assert tenant is not None
    assert tenant.weight == 1
    assert spec.database("stop") is None
    assert spec.tenant("stop") is None


def test_a_policys_name_stands_for_a_pair_of_rules() -> None:
    def rules(policy: str) -> tuple[str, str]:
        return a_workflow(scheduling={"policy": policy}).spec.scheduling.rules

    assert a_workflow().spec.scheduling.rules == ("LeastHarm", "Deadline")
    assert rules("RoundRobin") == ("RoundRobin", "FCFS")
    assert rules("LeastOutstanding+Urgency") == ("LeastOutstanding", "Urgency")


def test_parameters_begin_at_their_value_or_seed() -> None:
    scheduling = {
        "policy": "HexGenFlow",
        "alpha": {"value": 0.0},
        "beta": {"seed": 1, "min": 0.5, "max": 2},
    }
    assert a_workflow(scheduling=scheduling).spec.scheduling.initial_parameters == {"alpha": 0.0, "beta": 1.0}


def test_fairness_is_pinned_beside_an_exponent_that_is_tuned() -> None:
    scheduling = {"exponent": {"seed": 4, "min": 2, "max": 6}, "fairness": {"value": 1}}
    assert a_workflow(scheduling=scheduling).spec.scheduling.initial_parameters == {
        "exponent": 4.0,
        "fairness": 1.0,
    }
    for tuned in ({"seed": 1, "min": 0, "max": 2}, {"value": 1, "max": 2}, {}):
        with pytest.raises(ValidationError):
            a_workflow(scheduling={"fairness": tuned})


def test_parameters_of_another_rule_wait_until_it_is_chosen() -> None:
    scheduling = {"policy": "RoundRobin", "alpha": {"value": 0.3}, "fairness": {"value": 1}}
    assert a_workflow(scheduling=scheduling).spec.scheduling.initial_parameters == {}


def test_dumping_and_reading_a_workflow_gives_the_same_workflow() -> None:
    workflow = a_workflow(
        stages=[CANDIDATES], tuning={"mode": "Recommend"}, pools={"selector": {"matchLabels": {"a": "b"}}}
    )
    assert (
        TextToSQLWorkflow.model_validate(workflow.model_dump(by_alias=True, exclude_unset=True)) == workflow
    )


@pytest.mark.parametrize("deadline", [0, -5, 86_401, "60", 1.5, float("nan")])
def test_a_deadline_that_is_none_is_refused(deadline: object) -> None:
    with pytest.raises(ValidationError, match="deadlineSeconds"):
        a_workflow(slo={"deadlineSeconds": deadline})


def test_only_databases_that_exist_as_a_dialect_are_taken() -> None:
    database = {"name": "shop", "dialect": "postgresql", "dsnSecretRef": {"name": "s", "key": "k"}}
    with pytest.raises(ValidationError, match="sqlite"):
        a_workflow(databases=[database])
