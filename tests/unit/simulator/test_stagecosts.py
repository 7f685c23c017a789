"""What the authors' scheduler believes."""

from statistics import fmean

import pytest

from hexflow_scheduler import Call, Kernel, Place, Policy, Usage
from hexflow_simulator import chess
from hexflow_simulator.authors import authors_fleet
from hexflow_simulator.slo import authors_base
from hexflow_simulator.stagecosts import SECONDS, STAGES, StageCosts, number


def a_call(stage: str, *, prompt_tokens: int = 1000, number: int = 0) -> Call:
    return Call(
        call_id=f"q/{number}",
        query_id="q",
        stage=stage,
        model="m",
        prompt_tokens=prompt_tokens,
        max_tokens=4096,
        query_arrival=0.0,
        deadline=300.0,
    )


def costs(*gpus: str) -> tuple[Kernel, StageCosts]:
    fleet = [each.instance for each in authors_fleet([*gpus], "m")]
    estimates = StageCosts({instance.instance_id: instance.gpu_type for instance in fleet})
    kernel = Kernel(Policy.named("RoundRobin+LatestStart"), estimates)
    for instance in fleet:
        kernel.instance(0.0, instance)
    return kernel, estimates


def test_a_call_costs_its_stages_constant_whatever_its_lengths() -> None:
    kernel, _ = costs("A6000")
    calls = [a_call("revise", prompt_tokens=tokens, number=tokens) for tokens in (10, 50_000)]
    places = [each for each in kernel.arrive(0.0, calls) if isinstance(each, Place)]
    assert [place.predicted_seconds for place in places] == [8.03, 8.03]


def test_a_stage_costs_the_mean_over_the_instances_times_the_templates_rounds() -> None:
    kernel, _ = costs("A100", "L40S")
    assert kernel.stage_seconds("w", "candidate", "m") == pytest.approx((18.2 + 32.6) / 2)
    assert kernel.stage_seconds("w", "revise", "m") == pytest.approx(4 * (3.33 + 5.89) / 2)
    assert kernel.stage_seconds("w", "retriever-again", "m") == pytest.approx(3 * (0.23 + 0.40) / 2)


def test_the_stages_of_a_query_cost_what_the_template_of_fifteen_steps_does() -> None:
    kernel, _ = costs("A100", "A6000")
    stages = [stage.name for stage in chess.shape("trace1").stages]
    seconds = {
        step: fmean((SECONDS["A100"][number(step)], SECONDS["A6000"][number(step)])) for step in chess.STEPS
    }
    assert sum(kernel.stage_seconds("w", stage, "m") for stage in stages) == pytest.approx(
        authors_base(seconds)
    )


def test_nothing_is_learned() -> None:
    kernel, estimates = costs("A100")
    before = estimates.to_data()
    kernel.arrive(0.0, [a_call("candidate")])
    kernel.finished(500.0, "q/0", Usage(prompt_tokens=1000, output_tokens=4000))
    after = estimates.to_data()
    assert (after["lengths"], after["scales"]) == (before["lengths"], before["scales"])
    assert estimates.output_tokens(a_call("candidate")) == STAGES.index("candidate")


def test_a_stage_that_the_authors_did_not_have_has_no_cost() -> None:
    with pytest.raises(ValueError, match="no stage like 'link'"):
        number("link")
