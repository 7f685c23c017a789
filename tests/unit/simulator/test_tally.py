"""A tally gives the same figures as the results themselves."""

from random import Random

from hexflow_simulator.measure import figures, warmed_up
from hexflow_simulator.result import QueryResult
from hexflow_simulator.tally import Tally


def some_results(count: int = 200) -> list[QueryResult]:
    random = Random(3)
    return [
        QueryResult(
            query_id=f"q{number}",
            workflow="w",
            tenant="t",
            arrival=float(number),
            finished=None if random.random() < 0.1 else number + random.expovariate(0.1),
            slo_seconds=None if number % 7 == 0 else 20.0,
            base_seconds=None if number % 5 == 0 else 4.0 + number % 3,
            calls=number % 9,
        )
        for number in range(count)
    ]


def a_tally(results: list[QueryResult]) -> Tally:
    tally = Tally()
    for result in results:
        tally.add(result)
    tally.sort()
    return tally


def test_the_figures_are_those_of_the_results_in_whatever_order_they_ended() -> None:
    results = some_results()
    shuffled = Random(4).sample(results, len(results))
    assert figures(a_tally(shuffled)) == figures(results)


def test_what_is_read_is_what_was_added_but_for_names() -> None:
    results = some_results(20)
    for read, result in zip(a_tally(results), results, strict=True):
        assert (read.arrival, read.slo_seconds, read.base_seconds, read.calls) == (
            result.arrival,
            result.slo_seconds,
            result.base_seconds,
            result.calls,
        )
        assert (read.latency is None) == (result.latency is None)
    assert a_tally(results)[3].arrival == 3.0


def test_a_slice_is_a_tally() -> None:
    later = warmed_up(a_tally(some_results(100)))
    assert isinstance(later, Tally)
    assert (len(later), later[0].arrival) == (90, 10.0)
