"""Figures of a run: nearest ranks, queries without an answer, pairs."""

from math import inf, isnan, nan

import pytest

from hexflow_simulator import QueryResult
from hexflow_simulator.measure import (
    attainment,
    figures,
    latencies,
    paired_ratios,
    percentile,
    required_scale,
    spread,
    warmed_up,
)


def a_result(
    seconds: float | None, *, slo: float | None = 10.0, base: float | None = 2.0, arrival: float = 100.0
) -> QueryResult:
    return QueryResult(
        query_id="q",
        workflow="w",
        tenant="t",
        arrival=arrival,
        finished=None if seconds is None else arrival + seconds,
        slo_seconds=slo,
        base_seconds=base,
        calls=3,
        reason="" if seconds is not None else "lost",
    )


def results(*seconds: float | None) -> list[QueryResult]:
    return [a_result(each) for each in seconds]


def test_a_percentile_is_a_value_that_was_seen() -> None:
    values = [float(value) for value in range(1, 101)]
    assert [percentile(values, share) for share in (0.0, 0.5, 0.95, 0.99, 1.0)] == [1, 50, 95, 99, 100]
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile([7.0], 0.01) == 7.0
    assert isnan(percentile([], 0.5))


@pytest.mark.parametrize("count", range(1, 60))
def test_a_share_that_is_a_whole_number_of_values_is_not_rounded_up(count: int) -> None:
    values = [float(value) for value in range(1, 20 * count + 1)]
    assert percentile(values, 0.95) == 19 * count


def test_a_query_without_an_answer_is_infinitely_late() -> None:
    assert latencies(results(1.0, None)) == [1.0, inf]
    assert percentile(latencies(results(1.0, 2.0, None, 3.0)), 0.75) == 3.0
    assert percentile(latencies(results(1.0, 2.0, None, 3.0)), 0.76) == inf


def test_attainment_counts_by_the_own_slo_or_by_a_scale_of_the_base() -> None:
    queries = [*results(9.0, 10.0, 11.0, None), a_result(1.0, slo=None, base=None)]
    assert attainment(queries) == 0.5
    assert attainment(queries, scale=4.5) == 0.25
    assert isnan(attainment([a_result(1.0, slo=None)]))


def test_the_required_scale_is_the_smallest_with_enough_queries_in_time() -> None:
    queries = results(*(float(seconds) for seconds in range(1, 21)))
    scale = required_scale(queries, share=0.95)
    assert scale == 9.5
    assert attainment(queries, scale=scale) >= 0.95 > attainment(queries, scale=scale - 1e-9)


def test_the_first_to_arrive_are_left_out() -> None:
    queries = results(*(float(seconds) for seconds in range(25)))
    assert [query.latency for query in warmed_up(queries)][:1] == [2.0]
    assert len(warmed_up(queries)) == 23


def test_figures_of_a_run() -> None:
    found = figures(results(999.0, *(float(seconds) for seconds in range(2, 20)), None))
    assert found.queries == 18
    assert found.answered == pytest.approx(17 / 18)
    assert (found.p50, found.p95, found.p99) == (11.0, inf, inf)
    assert found.mean == inf
    assert found.attainment == pytest.approx(8 / 18)
    assert found.req95 == inf


def test_a_spread_is_median_and_range() -> None:
    assert str(spread([3.0, 1.0, 2.0])) == "2 (1-3)"
    with pytest.raises(ValueError, match="nothing"):
        spread([])


def test_pairs_compare_seed_by_seed() -> None:
    assert paired_ratios([2.0, inf, 3.0, 1.0], [1.0, inf, inf, 0.0]) == [2.0, 1.0, 0.0, inf]
    assert nan not in paired_ratios([0.0], [0.0])
    with pytest.raises(ValueError, match="shorter"):
        paired_ratios([1.0, 2.0], [1.0])
