"""The objectives of tuning, on results reckoned by hand."""

from collections.abc import Sequence
from math import inf, isnan, nan

import pytest

from hexflow_simulator import QueryResult, SimulatedQuery
from hexflow_simulator.objective import Objective, gain, hastened, score
from support.simulated import a_query


def a_result(seconds: float | None, *, base: float | None = None, slo: float | None = 10.0) -> QueryResult:
    """Return a query that took so long; None: it failed."""
    return QueryResult(
        query_id="q",
        workflow="",
        tenant="",
        arrival=0.0,
        finished=seconds,
        slo_seconds=slo,
        base_seconds=base,
        calls=1,
    )


def scored(objective: Objective, results: Sequence[QueryResult]) -> float:
    """Return the score of results that come whatever is asked."""
    return score(objective, [a_query("q", slo_seconds=10.0)], lambda _: results)


HUNDRED = [a_result(float(number), base=2.0) for number in range(1, 101)]
"""The first ten are the warm-up, so 11 to 100 count."""


@pytest.mark.parametrize(
    ("objective", "value"),
    [(Objective.P95, 96.0), (Objective.REQ95, 48.0), (Objective.ATTAINMENT, 0.0)],
)
def test_a_score_is_that_of_the_queries_after_the_warm_up(objective: Objective, value: float) -> None:
    assert scored(objective, HUNDRED) == pytest.approx(value)


def test_without_a_base_the_slo_is_the_measure() -> None:
    assert scored(Objective.REQ95, [a_result(20.0)] * 10) == pytest.approx(2.0)
    assert isnan(scored(Objective.REQ95, [a_result(20.0, slo=None)] * 10))


def test_a_query_without_an_answer_is_infinitely_late() -> None:
    assert scored(Objective.P95, [a_result(1.0), a_result(None)]) == inf


def test_a_rate_is_how_many_times_as_fast_the_queries_may_come() -> None:
    queries = [a_query(f"q{number}", arrival=float(number), slo_seconds=10.0) for number in range(50)]

    def run(asked: Sequence[SimulatedQuery]) -> list[QueryResult]:
        pace = 49.0 / asked[-1].arrival
        return [a_result(5.0 * pace)] * 50  # in time up to twice the pace

    assert score(Objective.RATE, queries, run) == pytest.approx(2.0, rel=0.06)
    assert isnan(score(Objective.RATE, [a_query("q")], run))


def test_hastened_queries_are_the_same_but_for_their_arrivals() -> None:
    (first, second) = hastened([a_query("a", arrival=2.0), a_query("b", arrival=6.0)], 4.0)
    assert (first.arrival, second.arrival, second.query_id) == (0.5, 1.5, "b")


@pytest.mark.parametrize(
    ("objective", "old", "new", "share"),
    [
        (Objective.P95, 100.0, 80.0, 0.2),
        (Objective.REQ95, 4.0, 5.0, -0.25),
        (Objective.P95, inf, 80.0, 1.0),
        (Objective.P95, inf, inf, 0.0),
        (Objective.P95, 80.0, inf, -inf),
        (Objective.P95, nan, 80.0, 0.0),
        (Objective.ATTAINMENT, 0.90, 0.95, 0.05),
        (Objective.RATE, 2.0, 2.5, 0.25),
        (Objective.RATE, 0.0, 1.0, inf),
    ],
)
def test_a_gain_is_the_share_that_is_saved_or_added(
    objective: Objective, old: float, new: float, share: float
) -> None:
    assert gain(objective, old=old, new=new) == pytest.approx(share)
