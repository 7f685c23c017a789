"""Traffic is the same for every policy, other under each seed, and complete whatever a trace leaves out."""

from dataclasses import replace
from itertools import islice

import pytest

from hexflow_simulator.arrivals import Poisson
from hexflow_simulator.complaint import InvalidWorkload
from hexflow_simulator.importing import Listed
from hexflow_simulator.traffic import MOST_RESAMPLED, Generated, Recorded, hastened, recorded_base, unserved
from support.simulated import a_call, a_query, a_stage, instances, random_queries
from support.workloads import a_workload


def recorded(count: int = 30, **changes: object) -> Recorded:
    queries = random_queries(count, slo_seconds=None, base_seconds=None)
    usual: dict[str, object] = {
        "trace": Listed(iter(queries)),
        "name": "t.jsonl",
        "count": count,
        "base_seconds": 4.0,
    }
    return Recorded(**{**usual, **changes})  # type: ignore[arg-type]


def test_the_first_seed_of_a_trace_is_the_trace() -> None:
    traffic = recorded()
    played = list(traffic.queries(1))
    assert [replace(query, slo_seconds=None, base_seconds=None) for query in played] == list(traffic.trace)


def test_other_seeds_of_a_trace_are_drawn_from_it_and_stay_what_they_are() -> None:
    traffic = recorded()
    second = list(traffic.queries(2))
    assert second == list(traffic.queries(2))
    assert second != list(traffic.queries(3))
    assert len(second) == 30
    lengths = {query.stages[0].calls[0].prompt_tokens for query in traffic.trace}
    assert {query.stages[0].calls[0].prompt_tokens for query in second} <= lengths


def test_what_a_trace_does_not_say_is_filled_in_and_what_it_says_is_kept() -> None:
    assert {(each.base_seconds, each.slo_seconds) for each in recorded().queries(1)} == {(4.0, 20.0)}
    assert {each.slo_seconds for each in recorded(slo_seconds=7.0).queries(1)} == {7.0}
    own = Listed(iter(random_queries(5, slo_seconds=9.0, base_seconds=3.0)))
    played = recorded(trace=own, count=5, slo_seconds=7.0).queries(1)
    assert {(each.base_seconds, each.slo_seconds) for each in played} == {(3.0, 9.0)}


def test_one_model_serves_all_where_somebody_says_so() -> None:
    pinned = [replace(query, pools=frozenset({"gone"})) for query in random_queries(3)]
    played = list(recorded(trace=Listed(iter(pinned)), count=3, model="other").queries(1))
    assert {(query.model, query.pools) for query in played} == {("other", None)}


def test_a_pace_moves_arrivals_and_nothing_else() -> None:
    traffic = recorded(pace=2.0)
    for played, original in zip(traffic.queries(1, pace=1.5), traffic.trace, strict=True):
        assert played.arrival == pytest.approx(original.arrival / 3)
        assert played.stages == original.stages
    assert traffic.rate == pytest.approx(2 * 30 / traffic.trace.seconds)


def test_only_the_first_queries_are_played_where_fewer_are_wanted() -> None:
    assert [query.query_id for query in recorded(count=4).queries(1)] == ["q0", "q1", "q2", "q3"]
    assert len(list(recorded(count=4).queries(2))) == 4


def test_a_trace_that_is_too_large_to_draw_from_is_refused_for_other_seeds_alone() -> None:
    large = recorded(count=MOST_RESAMPLED + 1)
    assert next(iter(large.queries(1)))
    with pytest.raises(InvalidWorkload, match="one seed"):
        large.queries(2)


def test_generated_traffic_has_other_queries_under_each_seed() -> None:
    traffic = Generated(workload=a_workload("short", arrivals=Poisson(2.0)), rate=2.0, count=20)
    assert list(traffic.queries(1)) == list(traffic.queries(1))
    assert list(traffic.queries(1)) != list(traffic.queries(2))
    assert len(list(traffic.queries(1))) == 20
    fast, usual = list(traffic.queries(1, pace=4.0)), list(traffic.queries(1))
    assert [each.stages for each in fast] == [each.stages for each in usual]
    assert fast[-1].arrival == pytest.approx(usual[-1].arrival / 4)


def test_a_pace_of_one_streams() -> None:
    endless = a_workload("short").queries(1)
    assert len(list(islice(hastened(endless, 1.0), 3))) == 3


def test_the_base_of_a_trace_is_the_mean_time_of_its_queries_alone() -> None:
    one = a_query("q", a_stage("only", a_call(1000, 101)))
    # ROUND: 1 s a step; prefill 0.001 s a token. What it takes alone is that of the model of a call.
    base = recorded_base([one, one], instances(2))
    assert base is not None
    assert base == pytest.approx(recorded_base([one], instances(1)))
    assert recorded_base([], instances(1)) is None


def test_the_first_query_that_nobody_serves_is_found() -> None:
    fleet = instances(2)
    good = a_query("good")
    assert unserved([good, replace(good, pools=frozenset({"pool"}))], fleet) is None
    other = replace(good, query_id="other", model="other")
    assert unserved([good, other], fleet) == other
    elsewhere = replace(good, query_id="elsewhere", pools=frozenset({"elsewhere"}))
    assert unserved([good, elsewhere, other], fleet) == elsewhere
