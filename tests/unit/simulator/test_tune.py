"""Tuning: what wins is taken, what is noise is not, and what is lacking is said."""

from dataclasses import replace
from typing import Any

import pytest

from hexflow_scheduler import Parameters, Policy
from hexflow_simulator import SimulatedInstance, SimulatedQuery
from hexflow_simulator.objective import Objective
from hexflow_simulator.tune import facts, knob_of, tune
from hexflow_simulator.tunespec import tune_spec
from hexflow_simulator.tuning import Knob, Limits, TuningResult, Verdict
from support.engine_model import ROUND
from support.resources import a_workflow
from support.simulated import a_call, a_query, a_stage, instances

EASY = Limits(min_queries=10, min_improvement=0.02)
FAST, SLOW = ROUND, replace(ROUND, t0=6 * ROUND.t0, t1=6 * ROUND.t1, t2=6 * ROUND.t2, c1=6 * ROUND.c1)


def unequal() -> list[SimulatedInstance]:
    """Return a fast instance and one that takes six times as long."""
    (fast, slow) = instances(2)
    return [fast, replace(slow, instance=replace(slow.instance, profile=SLOW))]


def rare(count: int = 20, **fields: Any) -> list[SimulatedQuery]:
    """Return queries of two calls that hardly ever meet: then the fast instance is always the better one."""
    stage = a_stage("draft", a_call(100, 200), a_call(100, 200))
    return [a_query(f"q{number}", stage, arrival=300.0 * number, **fields) for number in range(count)]


def tuned(queries: list[SimulatedQuery], policy: Policy, **options: Any) -> TuningResult:
    """Return the result of tuning on the unequal fleet, quickly."""
    told: dict[str, Any] = {"knob": knob_of(policy), "limits": EASY, "points": 5, "replicas": 4} | options
    return tune(queries, unequal(), policy=policy, **told)


def test_a_value_that_is_better_on_all_traffic_is_taken() -> None:
    # alpha 0 looks at queues alone: of two siblings one goes to the slow instance
    result = tuned(rare(), Policy.named("HexGenFlow", alpha=0.0))
    assert (result.verdict, result.changed) == (Verdict.TUNED, True)
    assert result.parameters["alpha"] > 0
    assert result.parameters["beta"] == result.before["beta"]
    assert result.gain is not None
    assert result.gain.low > 0.3
    assert "alpha 0 ->" in result.message
    assert [point.value for point in result.curve] == sorted(point.value for point in result.curve)


def test_where_nothing_is_better_nothing_changes() -> None:
    result = tuned(rare(), Policy.named("HexGenFlow", alpha=1.0))
    assert result.verdict is Verdict.NO_CHANGE
    assert result.parameters == result.before
    assert "no other value did better" in result.message


def test_a_change_that_is_worth_too_little_is_left() -> None:
    limits = replace(EASY, min_improvement=0.999)
    result = tuned(rare(), Policy.named("HexGenFlow", alpha=0.0), limits=limits)
    assert (result.verdict, result.parameters) == (Verdict.NO_CHANGE, result.before)
    assert "is wanted (minImprovement)" in result.message


def test_a_step_and_the_bounds_are_kept() -> None:
    policy = Policy.named("HexGenFlow", alpha=0.0)
    stepped = tuned(rare(), policy, knob=knob_of(policy, max_step=0.1))
    assert stepped.proposed == pytest.approx(0.1)
    # a tenth is no better by itself (the siblings part all the same), and it is the way to what is
    assert stepped.changed
    assert stepped.parameters["alpha"] == pytest.approx(0.1)
    assert "alpha 0 -> 0.1 (on the way to 1)" in stepped.message
    bounded = tuned(rare(), policy, knob=knob_of(policy, low=0.0, high=0.2))
    assert bounded.proposed is not None
    assert bounded.proposed <= 0.2
    assert max(point.value for point in bounded.curve) == pytest.approx(0.2)


def test_a_value_out_of_bounds_comes_back_into_them() -> None:
    policy = Policy.named("HexGenFlow", alpha=0.0)
    result = tuned(rare(), policy, knob=knob_of(policy, low=0.5, high=0.6, max_step=0.01))
    assert result.proposed is not None
    assert 0.5 <= result.proposed <= 0.6


def test_a_thin_trace_is_refused_in_words() -> None:
    result = tuned(rare(9), Policy.named("HexGenFlow"))
    assert result.verdict is Verdict.TOO_FEW_QUERIES
    assert "9 queries are too few" in result.message
    assert "10 are wanted (minQueries)" in result.message
    assert tuned([], Policy.named("HexGenFlow")).verdict is Verdict.TOO_FEW_QUERIES


def test_a_stale_trace_is_refused_in_words() -> None:
    limits = replace(EASY, max_age_seconds=3600.0)
    result = tuned(rare(20), Policy.named("HexGenFlow"), limits=limits, age_seconds=7200.0)
    assert result.verdict is Verdict.TOO_FEW_QUERIES
    assert "7200 s ago" in result.message


def test_only_the_newest_queries_count() -> None:
    windowed = replace(EASY, window_seconds=300.0 * 15)
    result = tuned(rare(40), Policy.named("HexGenFlow"), limits=windowed)
    assert result.trace is not None
    assert result.trace.queries == 16
    few = tuned(rare(40), Policy.named("HexGenFlow"), limits=replace(EASY, most_queries=12))
    assert few.trace is not None
    assert few.trace.queries == 12


@pytest.mark.parametrize("objective", ["Attainment", "Rate", "Req95"])
def test_an_objective_about_deadlines_needs_them(objective: str) -> None:
    result = tuned(rare(12), Policy.named("HexGenFlow"), objective=Objective(objective), points=2)
    assert result.verdict is Verdict.TOO_FEW_QUERIES
    assert "give deadlines" in result.message


@pytest.mark.parametrize("objective", ["Attainment", "Rate", "Req95"])
def test_each_objective_finds_what_is_better(objective: str) -> None:
    queries = rare(24, slo_seconds=6.0)
    result = tuned(queries, Policy.named("HexGenFlow", alpha=0.0), objective=Objective(objective), points=3)
    assert result.verdict is Verdict.TUNED, result.message
    assert result.objective == objective


def test_a_pinned_parameter_is_left_and_other_policies_are_still_played() -> None:
    result = tuned(
        rare(12),
        Policy.named("HexGenFlow", alpha=0.0),
        knob=None,
        advice=["RoundRobin", "LeastHarm", "HexGenFlow"],
    )
    assert result.verdict is Verdict.NOTHING_TO_TUNE
    assert {each.policy for each in result.advice} == {"RoundRobin", "LeastHarm"}
    assert result.advice[0].policy == "LeastHarm"
    assert result.advice[0].gain.low > 0


def test_a_policy_without_such_a_parameter_has_no_knob() -> None:
    assert knob_of(Policy.named("RoundRobin")) is None
    assert knob_of(Policy.named("LeastHarm"), low=0.5) == Knob(name="exponent", low=1.0, high=8.0)


def test_one_workflow_alone_is_varied_and_judged() -> None:
    mine = rare(30, workflow="mine")
    others = [
        replace(query, query_id=f"o{n}", arrival=query.arrival + 150.0, workflow="other")
        for n, query in enumerate(mine)
    ]
    queries = sorted([*mine, *others], key=lambda query: query.arrival)
    policy = Policy.named("HexGenFlow", alpha=1.0)
    result = tuned(queries, policy, workflow="mine", others={"mine": Parameters(alpha=0.0)})
    assert result.before["alpha"] == 0.0
    assert result.verdict is Verdict.TUNED
    # the other one has its good value already, so nothing is found for it
    assert tuned(queries, policy, workflow="other").verdict is Verdict.NO_CHANGE
    few = tuned(queries, policy, workflow="nobody")
    assert few.verdict is Verdict.TOO_FEW_QUERIES


def test_the_only_workflow_of_a_trace_is_meant_where_it_has_parameters_of_its_own() -> None:
    queries, policy = rare(20, workflow="mine"), Policy.named("HexGenFlow", alpha=1.0)
    own = {"mine": Parameters(alpha=0.0)}
    unnamed = tuned(queries, policy, others=own)
    assert unnamed == tuned(queries, policy, others=own, workflow="mine")
    assert (unnamed.verdict, unnamed.workflow, unnamed.before["alpha"]) == (Verdict.TUNED, "mine", 0.0)
    assert tuned(queries, policy).workflow == ""


def test_a_workflow_is_played_with_the_fairness_that_it_pins() -> None:
    pinned = a_workflow("mine", scheduling={"fairness": {"value": 1}, "exponent": {"value": 3}})
    spec = tune_spec(pinned)
    assert spec.knob is None, "fairness is never tuned"
    stage = a_stage("draft", a_call(100, 200))
    flood = [a_query(f"m{n}", stage, arrival=0.1 * n, workflow="mine", tenant="many") for n in range(40)]
    few = [a_query(f"f{n}", stage, arrival=0.5 * n, workflow="mine", tenant="few") for n in range(8)]
    queries = sorted([*flood, *few], key=lambda query: query.arrival)
    seen = {}
    for who, policy, others in (
        ("of the resource", spec.policy, {}),
        ("of the log", Policy.named(), {"mine": Parameters(fairness=1.0)}),
        ("of nobody", Policy.named(), {}),
    ):
        result = tuned(queries, policy, points=2, replicas=2, workflow="mine", others=others)
        seen[who] = (result.before["fairness"], result.curve)
    assert seen["of the resource"] == seen["of the log"]
    assert seen["of the log"][0] == 1.0
    assert seen["of the log"][1] != seen["of nobody"][1]


def test_the_same_trace_gives_the_same_result() -> None:
    one, other = (tuned(rare(15), Policy.named("LeastHarm")) for _ in range(2))
    assert one == other


def test_a_trace_is_named_by_what_is_in_it() -> None:
    queries = rare(3)
    assert facts(queries) == facts(rare(3))
    assert facts(queries).sha256 != facts([*queries[:2], replace(queries[2], arrival=601.0)]).sha256
    assert facts([]).queries == 0


def test_progress_ends_where_it_was_planned_to() -> None:
    seen: list[tuple[int, int]] = []
    tuned(
        rare(12), Policy.named("HexGenFlow"), advice=["RoundRobin"], progress=lambda *told: seen.append(told)
    )
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1][0] <= seen[-1][1]


def test_a_result_becomes_what_the_config_map_holds() -> None:
    result = tuned(rare(), Policy.named("HexGenFlow", alpha=0.0))
    written = result.as_parameters(when="2026-01-02T03:04:05Z", mode="Auto")
    assert set(result.parameters) == {"alpha", "beta"}
    assert written["parameters"] == {"alpha": result.parameters["alpha"]}
    assert (written["since"], written["mode"]) == ("2026-01-02T03:04:05Z", "Auto")
    assert written["trace"] == facts(rare()).sha256
    assert written["gain"] > 0.3
