"""Traffic like that of a trace: the same queries in other company."""

import pytest

from hexflow_scheduler import PrefixBlock
from hexflow_simulator import SimulatedQuery
from hexflow_simulator.resample import resampled
from support.simulated import a_call, a_query, a_stage

TEMPLATE = PrefixBlock(key="template", tokens=50)


def a_trace(count: int = 100) -> list[SimulatedQuery]:
    """Return queries that share a template, each with a block and a length of its own; gaps of 1 s, then of 3 s."""
    arrival, queries = 0.0, []
    for number in range(count):
        own = PrefixBlock(key=f"question-{number}", tokens=20)
        call = a_call(100 + number, 10, a_call(100, 5, prefix=(TEMPLATE, own)), prefix=(TEMPLATE, own))
        queries.append(a_query(f"q{number}", a_stage("draft", call), arrival=arrival))
        arrival += 1.0 if number < count / 2 else 3.0
    return queries


def test_a_seed_always_draws_the_same() -> None:
    assert resampled(a_trace(), 1) == resampled(a_trace(), 1)
    assert resampled(a_trace(), 1) != resampled(a_trace(), 2)


def test_there_are_as_many_queries_in_order_each_with_an_id_of_its_own() -> None:
    drawn = resampled(a_trace(), 3)
    arrivals = [query.arrival for query in drawn]
    assert len(drawn) == len({query.query_id for query in drawn}) == 100
    assert arrivals == sorted(arrivals)


def test_neighbours_stay_together_with_the_gap_between_them() -> None:
    drawn = resampled(a_trace(), 4, block=20)
    places = [int(query.query_id.partition("~")[0][1:]) for query in drawn]
    neighbours = [place for place in range(1, 100) if places[place] == places[place - 1] + 1]
    assert len(neighbours) >= 80
    for place in neighbours:
        gap = drawn[place].arrival - drawn[place - 1].arrival
        assert gap == pytest.approx(1.0 if places[place] <= 50 else 3.0)


def test_what_a_query_shares_with_others_it_still_shares_and_what_is_its_own_stays_its_own() -> None:
    drawn = resampled(a_trace(), 5)
    twice = [query for query in drawn if query.query_id.startswith("q7~")] or drawn
    keys = [
        [block.key for stage in query.stages for call in stage.calls for block in call.prefix]
        for query in drawn
    ]
    assert {found[0] for found in keys} == {"template"}
    assert len({found[1] for found in keys}) == 100
    (call,) = twice[0].stages[0].calls
    assert call.then[0].prefix == call.prefix  # the chain goes on with the same block


def test_of_nothing_nothing_is_drawn_and_one_query_alone_comes_again() -> None:
    assert resampled([], 1) == []
    (only,) = resampled(a_trace(1), 1)
    assert only.query_id == "q0~0"
