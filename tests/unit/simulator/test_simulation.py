"""The simulation against times reckoned by hand, and what becomes of queries when instances do not last."""

import itertools
from collections.abc import Iterator

import pytest

from hexflow_scheduler import Policy, Profile, decode, replay
from hexflow_simulator import (
    FleetChange,
    FleetEvent,
    QueryResult,
    SimulatedQuery,
    simulate,
)
from support.engine_model import ROUND
from support.simulated import a_call, a_query, a_stage, an_instance, instances, latency, random_queries

FLAT = Profile(t0=0.01, t1=0.0, t2=0.0, c1=0.001, c2=0.0, kv_tokens=100_000, slots=8)
"""10 ms a step, and 1 ms for each prompt token: 100 + 11 tokens take 0.21 s, whatever else decodes."""
RR = Policy.named("RoundRobin")


def seconds(prompt: int, output: int) -> float:
    return FLAT.t0 + prompt * FLAT.c1 + (output - 1) * FLAT.t0


# Queries


def test_a_query_of_one_call_takes_as_long_as_its_call() -> None:
    result = simulate([a_query(arrival=3.0)], instances(1, profile=FLAT), RR)
    assert latency(result) == pytest.approx(seconds(100, 10))
    assert result.ended == pytest.approx(3.0 + seconds(100, 10))
    assert (result.query_count, result.call_count, result.failed_calls, result.retries) == (1, 1, 0, 0)
    assert (result.prompt_tokens, result.output_tokens, result.cached_tokens) == (100, 10, 0)


def test_stages_and_chains_follow_each_other() -> None:
    query = a_query("q", a_stage("a", a_call(100, 5, a_call(50, 3))), a_stage("b", a_call(200, 7)))
    result = simulate([query], instances(1, profile=FLAT), RR)
    assert latency(result) == pytest.approx(seconds(100, 5) + seconds(50, 3) + seconds(200, 7))


def test_a_stage_waits_for_its_slowest_sibling_and_a_stage_without_calls_is_skipped() -> None:
    query = a_query(
        "q",
        a_stage("draft", a_call(100, 5), a_call(100, 50)),
        a_stage("fix"),
        a_stage("judge", a_call(30, 2)),
    )
    result = simulate([query], instances(2, profile=FLAT), RR)
    assert latency(result) == pytest.approx(seconds(100, 50) + seconds(30, 2))


def test_stages_that_wait_for_the_same_one_run_side_by_side() -> None:
    query = a_query(
        "q",
        a_stage("a", a_call(100, 5)),
        a_stage("b", a_call(100, 20), after=["a"]),
        a_stage("c", a_call(100, 30), after=["a"]),
        a_stage("d", a_call(100, 2), after=["b", "c"]),
    )
    result = simulate([query], instances(2, profile=FLAT), RR)
    assert latency(result) == pytest.approx(seconds(100, 5) + seconds(100, 30) + seconds(100, 2))


def test_the_kernel_is_told_what_the_router_tells_it() -> None:
    lines: list[str] = []
    query = a_query(
        "q", a_stage("a", a_call(100, 5, a_call(50, 3))), workflow="w", tenant="t", slo_seconds=30.0
    )
    simulate([query], instances(1, profile=FLAT), RR, sink=lines.append)
    arrivals = [record for record in map(decode, lines) if record.input == "arrive"]
    (first,), (second,) = (record.arguments["calls"] for record in arrivals)
    assert (first.workflow, first.tenant, first.stage, first.query_id) == ("w", "t", "a", "q")
    assert (first.query_arrival, first.deadline, first.budget_seconds) == (0.0, 30.0, 30.0)
    assert (first.round, second.round) == (0, 1)
    assert second.budget_seconds == pytest.approx(30.0 - seconds(100, 5))


def test_an_instance_that_is_believed_faster_than_it_is_takes_its_true_time() -> None:
    result = simulate([a_query()], [an_instance(profile=ROUND, true=FLAT)], RR)
    assert latency(result) == pytest.approx(seconds(100, 10))


def test_calls_are_recorded_only_when_asked_for() -> None:
    query = a_query("q", a_stage("a", a_call(100, 5), a_call(100, 9)))
    assert simulate([query], instances(2, profile=FLAT), RR).calls == ()
    short, long = simulate([query], instances(2, profile=FLAT), RR, record_calls=True).calls
    assert (short.call_id, long.call_id) == ("q/0", "q/1")
    assert {short.instance_id, long.instance_id} == {"i0", "i1"}
    assert (short.released, short.sent, short.attempts, short.outcome) == (0.0, 0.0, 1, "Finished")
    assert short.first_token == pytest.approx(seconds(100, 1))
    assert long.finished == pytest.approx(seconds(100, 9))


def test_results_are_in_order_of_arrival_though_a_later_query_ends_first() -> None:
    queries = [
        a_query("slow", a_stage("a", a_call(1000, 500))),
        a_query("quick", a_stage("a", a_call(10, 2)), arrival=0.1),
    ]
    result = simulate(queries, instances(2, profile=FLAT), RR)
    assert [query.query_id for query in result.queries] == ["slow", "quick"]


def test_results_can_be_had_as_queries_end_instead_of_being_kept() -> None:
    seen: list[QueryResult] = []
    ended: list[int] = []
    result = simulate(random_queries(20), instances(2), RR, on_query=seen.append, progress=ended.append)
    assert result.queries == ()
    assert result.query_count == len(seen) == 20
    assert ended == list(range(1, 21))


def test_a_generator_is_drawn_from_as_time_passes() -> None:
    drawn: list[float] = []

    def queries() -> Iterator[SimulatedQuery]:
        for number in itertools.count():
            drawn.append(number * 10.0)
            yield a_query(f"q{number}", arrival=number * 10.0)

    simulate(itertools.islice(queries(), 5), instances(1, profile=FLAT), RR, on_query=lambda query: None)
    assert drawn == [0.0, 10.0, 20.0, 30.0, 40.0]


def test_queries_out_of_order_and_fleets_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="'b' arrives at 1"):
        simulate([a_query("a", arrival=2.0), a_query("b", arrival=1.0)], instances(1), RR)
    with pytest.raises(ValueError, match="at least one instance"):
        simulate([a_query()], [], RR)
    with pytest.raises(ValueError, match="ids of their own"):
        simulate([a_query()], [an_instance("a"), an_instance("a")], RR)
    with pytest.raises(ValueError, match="'x'"):
        simulate(
            [a_query()], instances(1), RR, events=[FleetEvent(at=0, instance_id="x", kind=FleetChange.DIES)]
        )


def test_a_call_that_no_engine_could_hold_fails_its_query_and_its_siblings_are_withdrawn() -> None:
    query = a_query("q", a_stage("a", a_call(200_000, 5), a_call(100, 10_000)), a_stage("b", a_call()))
    result = simulate([query], instances(2, profile=FLAT), RR)
    (only,) = result.queries
    assert only.finished is None
    assert "do not fit" in only.reason
    assert (result.call_count, result.failed_calls, result.ended) == (2, 2, 0.0)


# The fleet


def change(at: float, kind: FleetChange, instance_id: str = "i0", **fields: float) -> FleetEvent:
    return FleetEvent(at=at, instance_id=instance_id, kind=kind, **fields)


def test_what_ran_on_an_instance_that_dies_is_done_again_elsewhere() -> None:
    result = simulate(
        [a_query("q", a_stage("a", a_call(100, 50)))],
        instances(2, profile=FLAT),
        RR,
        events=[change(0.3, FleetChange.DIES)],
        record_calls=True,
    )
    assert latency(result) == pytest.approx(0.3 + seconds(100, 50))
    (call,) = result.calls
    assert (call.instance_id, call.attempts, result.retries) == ("i1", 2, 1)


def test_where_nothing_else_is_left_a_query_waits_for_the_instance_to_return() -> None:
    result = simulate(
        [a_query("q", arrival=5.0)],
        instances(1, profile=FLAT),
        RR,
        events=[change(1.0, FleetChange.DIES), change(40.0, FleetChange.RETURNS)],
        record_calls=True,
    )
    assert latency(result) == pytest.approx(35.0 + seconds(100, 10))
    assert result.calls[0].instance_id == "i0~2"


def test_a_query_for_which_no_instance_comes_ends_without_an_answer() -> None:
    result = simulate(
        [a_query("q", arrival=5.0)], instances(1, profile=FLAT), RR, events=[change(1.0, FleetChange.DIES)]
    )
    (query,) = result.queries
    assert query.finished is None
    assert query.reason == f"no instance of {query_model()} could take it in time"
    assert result.ended == pytest.approx(65.0)


def query_model() -> str:
    return a_query().model


def test_an_instance_that_joins_takes_calls_from_then_on() -> None:
    queries = [a_query(f"q{number}", arrival=float(number)) for number in range(6)]
    result = simulate(
        queries,
        instances(2, profile=FLAT),
        RR,
        events=[change(2.5, FleetChange.JOINS, "i1")],
        record_calls=True,
    )
    assert [call.instance_id for call in result.calls[:3]] == ["i0"] * 3
    assert "i1" in [call.instance_id for call in result.calls[3:]]


def test_a_slow_instance_takes_its_factor_longer_until_it_returns() -> None:
    queries = [a_query(f"q{number}", arrival=10.0 * number) for number in range(3)]
    result = simulate(
        queries,
        instances(1, profile=FLAT),
        RR,
        events=[change(5.0, FleetChange.SLOWS, factor=3.0), change(15.0, FleetChange.RETURNS)],
    )
    quick = seconds(100, 10)
    assert [query.latency for query in result.queries] == pytest.approx([quick, 3 * quick, quick])


def test_a_call_that_runs_when_its_instance_slows_down_takes_the_rest_of_its_time_at_the_new_pace() -> None:
    query = a_query("q", a_stage("a", a_call(100, 101)))
    whole = seconds(100, 101)
    result = simulate(
        [query], instances(1, profile=FLAT), RR, events=[change(0.6, FleetChange.SLOWS, factor=2.0)]
    )
    assert latency(result) == pytest.approx(0.6 + 2 * (whole - 0.6))


def test_an_instance_may_be_slow_from_the_start() -> None:
    result = simulate([a_query()], [an_instance(profile=FLAT, slowdown=1.5)], RR)
    assert latency(result) == pytest.approx(1.5 * seconds(100, 10))


# Replays


@pytest.mark.parametrize("name", ["RoundRobin", "LeastOutstanding", "HexGenFlow"])
def test_the_event_log_of_a_simulation_replays_to_the_same_decisions(name: str) -> None:
    lines: list[str] = []
    result = simulate(
        random_queries(20),
        instances(3),
        Policy.named(name),
        events=[
            change(5.0, FleetChange.DIES),
            change(6.0, FleetChange.SLOWS, "i1", factor=2.0),
            change(12.0, FleetChange.RETURNS),
        ],
        sink=lines.append,
    )
    replayed = replay(map(decode, lines))
    assert replayed.difference is None
    assert replayed.inputs > result.call_count


def test_siblings_that_end_at_the_same_instant_without_an_answer_end_their_query_once() -> None:
    result = simulate(
        [a_query("q", a_stage("a", a_call(), a_call()), arrival=5.0)],
        instances(1, profile=FLAT),
        RR,
        events=[change(1.0, FleetChange.DIES)],
    )
    assert (result.query_count, result.call_count, result.failed_calls) == (1, 2, 2)


def test_a_first_token_came_at_the_pace_of_its_time() -> None:
    result = simulate(
        [a_query("q", a_stage("a", a_call(100, 101)))],
        instances(1, profile=FLAT),
        RR,
        events=[change(0.6, FleetChange.SLOWS, factor=2.0)],
        record_calls=True,
    )
    assert result.calls[0].first_token == pytest.approx(seconds(100, 1))


def test_a_query_that_takes_too_many_times_its_slo_is_ended_and_frees_its_instance() -> None:
    queries = [
        a_query("slow", a_stage("a", a_call(100, 5000), a_call(100, 3)), slo_seconds=2.0),
        a_query("late", a_stage("a", a_call(100, 300)), slo_seconds=2.0),
        a_query("next", arrival=15.0, slo_seconds=2.0),
    ]
    result = simulate(queries, instances(1, profile=FLAT), RR, hard_cap_factor=5.0)
    slow, late, following = result.queries
    assert (slow.finished, slow.reason) == (None, "HardCap")
    assert late.latency is not None
    assert late.latency > 2.0  # late, but wanted
    assert following.latency == pytest.approx(seconds(100, 10))
    assert result.failed_calls == 1
    assert simulate(queries, instances(1, profile=FLAT), RR).queries[0].latency is not None
