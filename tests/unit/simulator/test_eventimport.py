"""A router's event log becomes the very queries that it was about."""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from hexflow_scheduler import Policy, PrefixBlock, RecordingKernel, Usage
from hexflow_scheduler.eventlog import VERSION, decode
from hexflow_simulator import (
    SimulatedCall,
    SimulatedInstance,
    SimulatedQuery,
    SimulatedStage,
    simulate,
)
from hexflow_simulator.complaint import InvalidTrace
from hexflow_simulator.eventimport import read_event_log
from support.calls import a_call, an_instance
from support.tracefiles import a_file
from support.workloads import a_workload


def logged(folder: Path, queries: Iterable[SimulatedQuery]) -> Path:
    """Return the event log of a run."""
    lines: list[str] = []
    fleet = [
        SimulatedInstance(instance=an_instance(name, models=frozenset({"coder"}))) for name in ("a", "b")
    ]
    simulate(queries, fleet, Policy.named("LeastOutstanding"), sink=lines.append)
    return a_file(folder, *lines, name="events.jsonl")


def told(query: SimulatedQuery) -> SimulatedQuery:
    """Return what a log can tell of a query: not the stages that were skipped, nor its base."""
    return replace(query, base_seconds=None, stages=tuple(stage for stage in query.stages if stage.calls))


@pytest.mark.parametrize("mix", ["natural", "modern", "short"])
def test_a_log_gives_back_the_queries_that_were_run(tmp_path: Path, mix: str) -> None:
    workload = a_workload(mix, databases=3, base_seconds=40.0)
    queries = list(workload.queries(1, count=12))
    trace = read_event_log(logged(tmp_path, queries))
    assert (trace.count, trace.left_out) == (12, 0)
    start = queries[0].arrival
    expected = [replace(told(query), arrival=query.arrival - start) for query in queries]
    found = list(trace)
    assert [query.stages for query in found] == [query.stages for query in expected]
    assert [query.arrival for query in found] == pytest.approx([query.arrival for query in expected])
    assert [query.slo_seconds for query in found] == pytest.approx([200.0] * 12)
    assert [(query.query_id, query.model, query.workflow) for query in found] == [
        (query.query_id, query.model, query.workflow) for query in expected
    ]
    assert list(trace) == found


def test_a_tenant_has_the_weight_again_that_it_had(tmp_path: Path) -> None:
    stage = SimulatedStage(name="draft", calls=(SimulatedCall(prompt_tokens=500, output_tokens=20),))
    query = SimulatedQuery(
        query_id="q", arrival=0.0, stages=(stage,), model="coder", tenant="t", tenant_weight=3.0
    )
    (found,) = read_event_log(logged(tmp_path, [query]))
    assert (found.tenant, found.tenant_weight) == ("t", 3.0)


def test_stages_that_ran_side_by_side_do_so_again(tmp_path: Path) -> None:
    call = SimulatedCall(prompt_tokens=500, output_tokens=20)
    long = SimulatedCall(prompt_tokens=500, output_tokens=200)
    stages = (
        SimulatedStage(name="link", calls=(call,)),
        SimulatedStage(name="draft", calls=(long,)),
        SimulatedStage(name="tests", calls=(call,), after=("link",)),
        SimulatedStage(name="judge", calls=(call,), after=("draft", "tests")),
    )
    query = SimulatedQuery(query_id="q", arrival=0.0, stages=stages, model="coder")
    (found,) = read_event_log(logged(tmp_path, [query]))
    assert [(stage.name, stage.after) for stage in found.stages] == [
        ("link", ()),
        ("draft", ()),
        ("tests", ("link",)),
        ("judge", ("draft", "tests")),
    ]


def test_calls_that_several_of_a_stage_released_hang_below_them(tmp_path: Path) -> None:
    judge = SimulatedCall(prompt_tokens=400, output_tokens=5)
    first = SimulatedCall(prompt_tokens=500, output_tokens=20, then=(judge, judge, judge))
    query = SimulatedQuery(
        query_id="q", arrival=3.0, stages=(SimulatedStage(name="judge", calls=(first,)),), model="coder"
    )
    (found,) = read_event_log(logged(tmp_path, [query]))
    assert found.stages == query.stages


class Log:
    """Write a log by hand."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.kernel = RecordingKernel(Policy.named("RoundRobin"), sink=self.lines.append)
        self.kernel.instance(0.0, an_instance("a"))

    def call(
        self, now: float, name: str, *, query: str = "", output: int | None = 50, **fields: object
    ) -> None:
        """Let a call arrive, and be answered a second later unless its output is None."""
        fields = {"query_id": query or name, "query_arrival": now, **fields}
        self.kernel.arrive(now, [a_call(name, **fields)])
        if output is None:
            self.kernel.failed(now + 1, name, reason="Broken", retryable=False)
        else:
            self.kernel.finished(now + 1, name, Usage(prompt_tokens=1234, output_tokens=output))


def test_a_call_without_a_query_is_a_query_of_its_own(tmp_path: Path) -> None:
    log = Log()
    log.call(1000.0, "c1", tenant="t", deadline=1060.0)
    log.call(1005.0, "c2")
    first, second = read_event_log(a_file(tmp_path, *log.lines))
    assert (first.arrival, second.arrival) == (0.0, 5.0)
    assert (first.tenant, first.slo_seconds, second.slo_seconds) == ("t", 60.0, None)
    assert first.stages == (
        SimulatedStage(
            name="call", calls=(SimulatedCall(prompt_tokens=1234, output_tokens=50, max_tokens=100),)
        ),
    )


def test_lengths_are_those_that_the_engine_counted(tmp_path: Path) -> None:
    log = Log()
    blocks = (PrefixBlock(key="t", tokens=1000), PrefixBlock(key="t/s", tokens=900))
    log.call(0.0, "c", prompt_tokens=2000, prefix=blocks, samples=3, output=300)
    (query,) = read_event_log(a_file(tmp_path, *log.lines))
    calls = query.stages[0].calls
    assert [(call.prompt_tokens, call.output_tokens) for call in calls] == [(1234, 100)] * 3
    # by its own count the prompt is shorter than the blocks that it was said to begin with
    assert [(block.key, block.tokens) for block in calls[0].prefix] == [("t", 1000), ("t/s", 218)]


def test_a_prompt_that_is_all_prefix_keeps_its_last_words_to_itself(tmp_path: Path) -> None:
    log = Log()
    blocks = (PrefixBlock(key="t", tokens=1000), PrefixBlock(key="t/q", tokens=234))
    log.call(0.0, "c", prompt_tokens=1234, prefix=blocks)
    (query,) = read_event_log(a_file(tmp_path, *log.lines))
    assert [block.tokens for block in query.stages[0].calls[0].prefix] == [1000, 218]


def test_queries_that_did_not_end_or_were_never_answered_are_left_out_and_counted(tmp_path: Path) -> None:
    log = Log()
    log.call(0.0, "a0", query="a", stage="draft")
    log.kernel.query_ended(2.0, "a")
    log.call(3.0, "b0", query="b", stage="draft")
    log.call(5.0, "c0", query="c", stage="draft", output=None)
    log.kernel.query_ended(7.0, "c", answered=False)
    trace = read_event_log(a_file(tmp_path, *log.lines))
    assert ([query.query_id for query in trace], trace.count, trace.left_out) == (["a"], 1, 2)


def test_a_call_that_failed_is_left_out_of_its_query(tmp_path: Path) -> None:
    log = Log()
    log.call(0.0, "a0", query="a", stage="draft")
    log.call(0.0, "a1", query="a", stage="draft", output=None)
    log.kernel.query_ended(2.0, "a")
    (query,) = read_event_log(a_file(tmp_path, *log.lines))
    assert len(query.stages[0].calls) == 1


def test_a_log_may_hold_several_runs(tmp_path: Path) -> None:
    first, second = Log(), Log()
    first.call(0.0, "a0", query="a", stage="draft")
    first.kernel.query_ended(2.0, "a")
    first.call(3.0, "b0", query="b", stage="draft")
    second.call(50.0, "a0", query="a", stage="draft")
    second.kernel.query_ended(52.0, "a")
    trace = read_event_log(a_file(tmp_path, *first.lines, *second.lines))
    assert [(query.query_id, query.arrival) for query in trace] == [("a", 0.0), ("a@2", 50.0)]
    assert (trace.left_out, trace.seconds) == (1, 50.0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda lines: lines[1:], "F:1: no start record before it; give a log from its beginning"),
        (lambda lines: [*lines[:2], lines[2][:40]], "F:3: no record of an event log"),
        (lambda lines: [lines[0].replace(f'"v":{VERSION}', '"v":99')], "F:1: a record of version 99"),
        (lambda lines: lines[:2], "F: no query that ended while the log was written; give a longer log"),
        (lambda lines: [], "F: an empty file"),
    ],
)
def test_a_bad_log_is_named_with_what_to_do(tmp_path: Path, change, said: str) -> None:  # type: ignore[no-untyped-def]
    log = Log()
    log.call(0.0, "c1")
    path = a_file(tmp_path, *change(log.lines))
    with pytest.raises(InvalidTrace) as caught:
        read_event_log(path)
    assert str(caught.value).replace(str(path), "F").startswith(said)


def test_another_process_reads_the_same_queries(tmp_path: Path) -> None:
    trace = read_event_log(logged(tmp_path, a_workload().queries(1, count=3)))
    # Processes of a simulation differ in how they hash strings.
    there = subprocess.run(
        [sys.executable, "-c", "import pickle, sys; print(len([*pickle.load(sys.stdin.buffer)]))"],
        input=pickle.dumps(trace),
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert int(there.stdout) == trace.count == 3


def test_a_chain_that_nothing_could_follow_to_its_end_is_refused(tmp_path: Path) -> None:
    def chain(length: int) -> SimulatedQuery:
        calls: tuple[SimulatedCall, ...] = ()
        for _ in range(length):
            calls = (SimulatedCall(prompt_tokens=100, output_tokens=1, then=calls),)
        stages = (SimulatedStage(name="correct", calls=calls),)
        return SimulatedQuery(query_id="q", arrival=0.0, stages=stages, model="coder")

    assert read_event_log(logged(tmp_path, [chain(256)])).count == 1
    with pytest.raises(InvalidTrace, match="a chain of more than 256 calls"):
        read_event_log(logged(tmp_path, [chain(257)]))


def test_of_a_log_that_only_goes_on_what_began_before_it_is_left_out(tmp_path: Path) -> None:
    queries = list(a_workload("short", databases=3, base_seconds=40.0).queries(1, count=12))
    path = logged(tmp_path, queries)
    start, *others = path.read_text().splitlines()
    begun = (queries[5].arrival + queries[6].arrival) / 2
    kept = [line for line in others if decode(line).now >= begun]
    head = json.dumps({**json.loads(start), "t": begun, "continued": True})
    trace = read_event_log(a_file(tmp_path, head, *kept, name="later.jsonl"))
    assert [query.query_id for query in trace] == [query.query_id for query in queries[6:]]


def test_pauses_between_calls_are_kept_and_pass_again(tmp_path: Path) -> None:
    third = SimulatedCall(prompt_tokens=300, output_tokens=30, pause_seconds=0.5)
    second = SimulatedCall(prompt_tokens=400, output_tokens=30, pause_seconds=0.25)
    first = SimulatedCall(prompt_tokens=500, output_tokens=20, then=(third,), pause_seconds=1.5)
    stages = (
        SimulatedStage(name="link", calls=(second,)),
        SimulatedStage(name="correct", calls=(first, second)),
    )
    query = SimulatedQuery(query_id="q", arrival=3.0, stages=stages, model="coder", closing_seconds=2.0)
    (found,) = read_event_log(logged(tmp_path, [query]))
    assert [stage.name for stage in found.stages] == ["link", "correct"]
    assert found.closing_seconds == pytest.approx(2.0)
    (link,) = found.stages[0].calls
    assert link.pause_seconds == pytest.approx(0.25)
    assert sorted(call.pause_seconds for call in found.stages[1].calls) == pytest.approx([0.25, 1.5])
    (chain,) = [call for call in found.stages[1].calls if call.then]
    assert chain.then[0].pause_seconds == pytest.approx(0.5)


def test_a_query_that_pauses_takes_so_much_longer() -> None:
    def seconds(pause: float) -> float:
        later = SimulatedCall(prompt_tokens=300, output_tokens=30, pause_seconds=pause)
        chain = SimulatedCall(prompt_tokens=500, output_tokens=20, then=(later,), pause_seconds=2 * pause)
        query = SimulatedQuery(
            query_id="q",
            arrival=3.0,
            stages=(SimulatedStage(name="correct", calls=(chain,)),),
            model="coder",
            closing_seconds=4 * pause,
        )
        fleet = [SimulatedInstance(instance=an_instance("a", models=frozenset({"coder"})))]
        (found,) = simulate([query], fleet, Policy.named("RoundRobin")).queries
        assert found.latency is not None
        return found.latency

    assert seconds(0.5) == pytest.approx(seconds(0.0) + 3.5)
