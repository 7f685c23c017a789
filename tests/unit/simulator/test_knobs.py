import pytest

from hexflow_scheduler import Policy
from hexflow_scheduler.policy import DISPATCH_RULES, QUEUE_RULES
from hexflow_simulator.knobs import BASELINES, GRID, settings


def test_every_rule_that_is_not_ours_stands_for_something() -> None:
    policies = [Policy.named(name) for name in BASELINES.values()]
    assert {policy.dispatch for policy in policies} == DISPATCH_RULES.keys() - {"LeastHarm"}
    # Deadline and LatestStart come with LeastHarm.
    assert {policy.queue for policy in policies} == QUEUE_RULES.keys() - {"Deadline", "LatestStart"}


@pytest.mark.parametrize("name", [*BASELINES.values(), "LeastHarm"])
def test_the_defaults_are_among_the_settings(name: str) -> None:
    tried = [policy.values() for policy in settings(name)]
    assert Policy.named(name).values() in tried
    assert len({*tried}) == len(tried) >= 1


def test_each_combination_is_a_setting() -> None:
    assert len(settings("StickyUntilSaturated")) == 2 * 5 * 2
    assert len(settings("RoundRobin")) == 1
    assert [policy.values()["share"] for policy in settings("JustEnough+Deadline")] == [
        *GRID["JustEnough"]["share"]
    ]
    assert settings("JustEnough+Deadline")[0].queue == "Deadline"
