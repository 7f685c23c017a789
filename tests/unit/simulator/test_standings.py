"""Who is ahead is told by medians over seeds that all have, and whether that is more than chance."""

from math import inf, nan

import pytest

from hexflow_simulator.contest import Bound, Entry
from hexflow_simulator.standings import Measure, standings
from support.contests import OURS, PLAIN, a_result

THIRD = Entry(policy="HexGenFlow", parameters=(("alpha", 0.3),))


def test_the_least_median_is_first_and_the_others_are_compared_seed_by_seed() -> None:
    ours = [a_result(OURS, seed, p95=p95) for seed, p95 in ((1, 10.0), (2, 30.0), (3, 20.0))]
    plain = [a_result(PLAIN, seed, p95=p95) for seed, p95 in ((1, 15.0), (2, 36.0), (3, 40.0))]
    found = standings([*plain, *ours], (PLAIN, OURS))
    assert [row.entry for row in found.rows] == [OURS, PLAIN]
    assert (found.best.p95.median, found.best.p95.low, found.best.p95.high) == (20.0, 10.0, 30.0)
    behind = found.rows[1].behind
    assert (behind.low, behind.median, behind.high) == pytest.approx((1.2, 1.5, 2.0))
    assert found.equals == ()


def test_a_policy_that_wins_on_one_seed_cannot_be_told_from_the_best() -> None:
    results = [
        a_result(OURS, 1, p95=10.0),
        a_result(OURS, 2, p95=20.0),
        a_result(PLAIN, 1, p95=30.0),
        a_result(PLAIN, 2, p95=19.0),
        a_result(THIRD, 1, p95=10.2),
        a_result(THIRD, 2, p95=20.4),
    ]
    assert [row.entry for row in standings(results, (OURS, PLAIN, THIRD)).equals] == [PLAIN]


def test_of_attainment_more_is_better_and_what_is_missing_is_a_difference() -> None:
    results = [a_result(OURS, p95=10.0, attainment=0.8), a_result(PLAIN, p95=20.0, attainment=0.95)]
    found = standings(results, (OURS, PLAIN), measure=Measure.ATTAINMENT)
    assert [row.entry for row in found.rows] == [PLAIN, OURS]
    assert found.rows[1].behind.median == pytest.approx(0.15)


def test_what_is_infinite_or_unknown_comes_last() -> None:
    results = [a_result(OURS, p95=nan), a_result(PLAIN, p95=inf), a_result(THIRD, p95=5.0)]
    found = standings(results, (OURS, PLAIN, THIRD))
    assert found.best.entry == THIRD
    assert found.rows[1].behind.median in (inf, 1.0)


def test_only_seeds_that_all_have_count_when_it_was_stopped() -> None:
    results = [a_result(OURS, 1), a_result(PLAIN, 1, p95=20.0), a_result(OURS, 2, p95=99.0)]
    found = standings(results, (OURS, PLAIN), complete=False)
    assert found.seeds == (1,)
    assert found.best.p95.high == 10.0
    assert not found.complete


def test_who_has_no_run_at_all_is_left_out_when_it_was_stopped() -> None:
    found = standings([a_result(OURS, 1)], (OURS, PLAIN), complete=False)
    assert [row.entry for row in found.rows] == [OURS]
    with pytest.raises(ValueError, match="no run"):
        standings([], (OURS, PLAIN))


def test_the_curve_is_the_first_seed_s_whichever_run_ended_first() -> None:
    results = [a_result(OURS, 1), a_result(OURS, 2, p95=99.0), a_result(OURS, 1, pace=1.5, p95=30.0)]
    for order in (results, results[::-1]):
        found = standings(order, (OURS,))
        assert [(run.run.seed, run.run.pace) for run in found.best.paced] == [(1, 1.0), (1, 1.5)]


def test_runs_at_other_paces_are_a_curve_and_no_seed() -> None:
    results = [
        a_result(OURS, pace=1.0),
        a_result(OURS, pace=1.5, p95=30.0),
        a_result(OURS, pace=0.5, p95=5.0),
    ]
    found = standings(results, (OURS,))
    assert found.best.p95.high == 10.0
    assert [(run.run.pace, run.figures.p95) for run in found.best.paced] == [
        (0.5, 5.0),
        (1.0, 10.0),
        (1.5, 30.0),
    ]


def test_bounds_of_the_seeds_that_count_come_along() -> None:
    bounds = {seed: Bound(figures=a_result(p95=seed).figures, latencies=(), scales=()) for seed in (1, 2)}
    found = standings([a_result(OURS, 2)], (OURS,), bounds=bounds)
    assert [each.figures.p95 for each in found.bounds] == [2]


def test_what_calls_spent_is_summed_over_the_seeds() -> None:
    found = standings([a_result(OURS, 1), a_result(OURS, 2)], (OURS,))
    assert (found.best.spent.calls, found.best.spent.waiting) == (800, 80.0)
    assert found.best.calls_per_query == 4.0
