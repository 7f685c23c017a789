"""What deadlines are measured by."""

from dataclasses import replace

import pytest

from hexflow_scheduler import PrefixBlock
from hexflow_simulator import SimulatedCall, SimulatedStage
from hexflow_simulator.gpus import FLEETS, instances
from hexflow_simulator.mix import mix_named
from hexflow_simulator.slo import authors_base, critical_path, stage_seconds, warm_base
from support.engine_model import ROUND

SPEED = replace(ROUND, t1=0.0, t2=0.0)
"""20 ms a token written, 0.1 ms a token read."""


def a_stage(name: str, *calls: SimulatedCall) -> SimulatedStage:
    return SimulatedStage(name=name, calls=calls)


def test_a_critical_path_is_the_slowest_chain_of_each_stage_in_a_row() -> None:
    late = SimulatedCall(prompt_tokens=1000, output_tokens=50)
    stages = [
        a_stage(
            "a",
            SimulatedCall(prompt_tokens=1000, output_tokens=100),
            SimulatedCall(prompt_tokens=1000, output_tokens=10, then=(late,)),
        ),
        a_stage("b"),
        a_stage("c", late),
    ]
    # 0.015 + 0.1 + 2.0, then 0.015 + 0.1 + 1.0
    assert critical_path(stages, SPEED) == pytest.approx(2.115 + 1.115)


def test_a_warm_template_and_schema_cost_nothing() -> None:
    prefix = (PrefixBlock(key="t", tokens=400), PrefixBlock(key="t/s", tokens=500))
    stages = [a_stage("a", SimulatedCall(prompt_tokens=1000, output_tokens=100, prefix=prefix))]
    assert critical_path(stages, SPEED) == pytest.approx(0.015 + 0.01 + 2.0)
    assert critical_path(stages, SPEED, warm=False) == pytest.approx(0.015 + 0.1 + 2.0)


def test_a_chain_finds_the_question_that_its_first_call_has_computed() -> None:
    prefix = (
        PrefixBlock(key="t", tokens=100),
        PrefixBlock(key="t/s", tokens=100),
        PrefixBlock(key="t/s/q", tokens=700),
    )
    second = SimulatedCall(prompt_tokens=1000, output_tokens=10, prefix=prefix)
    first = replace(second, then=(second,))
    assert critical_path([a_stage("a", first)], SPEED) == pytest.approx(0.43 + 0.08 + 0.01)


@pytest.mark.parametrize(
    ("fleet", "size", "mix", "study"),
    [
        ("het1", "70B", "natural", 49.6),
        ("het2", "70B", "stratified", 75.4),
        ("homo", "70B", "natural", 36.6),
        ("homo", "70B", "stratified", 57.0),
        ("het1", "32B", "modern", 58.3),
        ("het3", "7B", "short", 12.2),
    ],
)
def test_the_base_is_that_of_the_study(fleet: str, size: str, mix: str, study: float) -> None:
    """Its tables give P95 and Req95, whose ratio is the base."""
    profiles = [each.true_profile for each in instances(FLEETS[fleet], size)]
    assert warm_base(mix_named(mix), profiles) == pytest.approx(study, rel=0.05)


def test_the_authors_base_is_the_sum_over_fifteen_steps() -> None:
    a100 = {"retriever": 0.23, "retriever-again": 0.23, "keywords": 1.14, "candidate": 18.2, "revise": 3.33}
    a100 |= dict.fromkeys(("tester", "tester-2", "tester-3"), 0.17) | {"unit-tests": 2.54, "evaluate": 0.87}
    assert authors_base(a100) == pytest.approx(37.5)


def test_the_mean_seconds_of_stages_are_over_calls_and_instances() -> None:
    profiles = [each.true_profile for each in instances(FLEETS["homo"], "70B")]
    seconds = stage_seconds(mix_named("trace1"), profiles)
    a100 = profiles[0]
    assert seconds["evaluate"] == pytest.approx(
        a100.prefill_seconds(960) + a100.decode_seconds(960, 29.5), rel=0.05
    )
    assert set(seconds) > {"retriever", "candidate", "revise"}
    assert authors_base(seconds) > 40
