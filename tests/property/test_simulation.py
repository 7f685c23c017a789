"""What holds of every simulation, whatever arrives, whatever happens to the fleet and whoever decides."""

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from hexflow_scheduler import Policy, decode, policy_names, replay
from hexflow_simulator import (
    EngineOrder,
    FleetChange,
    FleetEvent,
    Knowledge,
    SimulatedCall,
    SimulatedInstance,
    SimulatedQuery,
    SimulationResult,
    simulate,
)
from hexflow_simulator.bounds import clairvoyant
from support.simulated import a_call, a_query, a_stage, an_instance, random_queries

POLICIES = [name for name in policy_names() if "+" not in name]

lengths = st.tuples(st.integers(1, 300), st.integers(1, 60))
calls = st.recursive(
    lengths.map(lambda of: a_call(*of)),
    lambda after: st.tuples(lengths, st.lists(after, max_size=2)).map(lambda of: a_call(*of[0], *of[1])),
    max_leaves=4,
)
stages = st.lists(st.lists(calls, max_size=3), min_size=1, max_size=4)
workloads = st.lists(
    st.tuples(st.integers(0, 40).map(lambda gap: gap * 0.0537), stages, st.sampled_from([None, 2.0, 30.0])),
    min_size=1,
    max_size=8,
)
instances = st.builds(
    lambda slots, order, slowdown: {"slots": slots, "order": order, "slowdown": slowdown},
    st.sampled_from([1, 2, 8]),
    st.sampled_from(EngineOrder),
    st.sampled_from([1.0, 1.7]),
)
changes = st.lists(
    st.tuples(
        st.integers(0, 100).map(lambda at: at * 0.0911), st.integers(0, 2), st.sampled_from(FleetChange)
    ),
    max_size=4,
)


def queries_of(workload: list) -> list[SimulatedQuery]:  # type: ignore[type-arg]
    now, made = 0.0, []
    for number, (gap, of, slo) in enumerate(workload):
        now += gap
        made.append(
            a_query(
                f"q{number}",
                *(a_stage(f"s{place}", *each) for place, each in enumerate(of)),
                arrival=now,
                slo_seconds=slo,
                workflow="w",
            )
        )
    return made


def fleet_of(described: list) -> list[SimulatedInstance]:  # type: ignore[type-arg]
    made = []
    for number, each in enumerate(described):
        source = an_instance(f"i{number}", options={"order": each["order"]}, slowdown=each["slowdown"])
        profile = replace(source.instance.profile, slots=each["slots"])
        made.append(replace(source, instance=replace(source.instance, profile=profile)))
    return made


def events_of(described: list, fleet: list[SimulatedInstance]) -> list[FleetEvent]:  # type: ignore[type-arg]
    return [
        FleetEvent(at=at, instance_id=f"i{place}", kind=kind, factor=2.0)
        for at, place, kind in described
        if place < len(fleet)
    ]


def number_of_calls(queries: list[SimulatedQuery]) -> int:
    def within(some: tuple[SimulatedCall, ...]) -> int:
        return sum(1 + within(call.then) for call in some)

    return sum(within(stage.calls) for query in queries for stage in query.stages)


def check(queries: list[SimulatedQuery], result: SimulationResult) -> None:
    assert [each.query_id for each in result.queries] == [query.query_id for query in queries]
    assert result.query_count == len(queries)
    for query, each in zip(queries, result.queries, strict=True):
        assert (each.finished is None) == bool(each.reason)
        assert each.finished is None or each.finished >= query.arrival
    counted = Counter(call.call_id for call in result.calls)
    assert set(counted.values()) <= {1}
    assert len(result.calls) == result.call_count <= number_of_calls(queries)
    arrivals = {query.query_id: query.arrival for query in queries}
    for call in result.calls:
        assert arrivals[call.query_id] <= call.released <= call.placed
        assert call.released <= call.finished
        if call.outcome == "Finished":
            assert call.placed <= call.sent < call.first_token + 1e-9
            assert call.first_token <= call.finished + 1e-9
            assert call.attempts >= 1
    finished = [call for call in result.calls if call.outcome == "Finished"]
    assert result.failed_calls == len(result.calls) - len(finished)
    assert result.prompt_tokens == sum(call.prompt_tokens for call in finished)
    assert result.output_tokens == sum(call.output_tokens for call in finished)
    assert result.cached_tokens == sum(call.cached_tokens for call in finished)


@settings(max_examples=60, deadline=None)
@given(workloads, st.lists(instances, min_size=1, max_size=3), st.sampled_from(POLICIES))
def test_where_nothing_goes_wrong_every_call_finishes_once_with_all_its_tokens(
    workload: list,  # type: ignore[type-arg]
    described: list,  # type: ignore[type-arg]
    policy: str,
) -> None:
    queries, fleet = queries_of(workload), fleet_of(described)
    result = simulate(queries, fleet, Policy.named(policy), record_calls=True)
    check(queries, result)
    assert result.failed_calls == result.retries == 0
    assert result.call_count == number_of_calls(queries)
    for each, bound in zip(result.queries, clairvoyant(queries, fleet), strict=True):
        assert each.finished is not None
        assert bound.finished is not None
        assert each.finished >= bound.finished - 1e-9


@settings(max_examples=80, deadline=None)
@given(workloads, st.lists(instances, min_size=1, max_size=3), changes, st.sampled_from(POLICIES))
def test_whatever_becomes_of_instances_every_query_ends_once_and_the_log_replays(
    workload: list,  # type: ignore[type-arg]
    described: list,  # type: ignore[type-arg]
    happens: list,  # type: ignore[type-arg]
    policy: str,
) -> None:
    queries, fleet = queries_of(workload), fleet_of(described)
    lines: list[str] = []
    events = events_of(happens, fleet)
    result = simulate(
        queries, fleet, Policy.named(policy), events=events, record_calls=True, sink=lines.append
    )
    check(queries, result)
    replayed = replay(map(decode, lines))
    assert replayed.difference is None, str(replayed.difference)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.sampled_from(POLICIES), st.sampled_from([None, Knowledge(error=0.3)]))
def test_the_same_queries_come_out_the_same(seed: int, policy: str, knowledge: Knowledge | None) -> None:
    runs = [
        simulate(
            random_queries(8, seed=seed),
            [an_instance("a"), an_instance("b", slowdown=1.3)],
            Policy.named(policy),
            record_calls=True,
            knowledge=knowledge,
        )
        for _ in range(2)
    ]
    assert runs[0] == runs[1]


def test_the_outcome_does_not_depend_on_how_strings_are_hashed() -> None:
    program = (
        "from support.simulated import random_queries, instances\n"
        "from hexflow_simulator import simulate, Knowledge\n"
        "from hexflow_scheduler import Policy, policy_names\n"
        "for name in policy_names():\n"
        "    if '+' not in name or name.startswith('LeastOutstanding+'):\n"
        "        for knowledge in (None, Knowledge(error=0.3)):\n"
        "            result = simulate(random_queries(12, rate=3.0), instances(3), Policy.named(name),\n"
        "                              knowledge=knowledge, record_calls=True)\n"
        "            print(name, result.calls)\n"
    )
    said = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        said.append(done.stdout)
    assert said[0] == said[1]
    assert len(said[0]) > 10_000
