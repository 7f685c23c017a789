import inspect
import json
from collections.abc import Callable
from typing import Any

import pytest

from hexflow_scheduler import (
    Estimates,
    InvalidRecord,
    Kernel,
    Parameters,
    Policy,
    PrefixBlock,
    RecordingKernel,
    UnknownCall,
    decode,
    encode,
    replay,
)
from support.calls import a_call, an_instance, calls, gone, usage


def a_log() -> list[str]:
    """Return the log of a run in which every input occurs."""
    lines: list[str] = []
    kernel = RecordingKernel(Policy.named("HexGenFlow", alpha=0.2), sink=lines.append)
    kernel.arrive(1000.25, [a_call("early", deadline=1060.0, pools=frozenset({"pool", "spare"}))])
    kernel.instance(1001.0, an_instance("a", takes_priority=True, max_context=32_768))
    kernel.instance(1001.0, an_instance("b", prefix_caching=False))
    shared = (PrefixBlock(key="9f2c", tokens=300),)
    kernel.arrive(1002.0, calls(6, budget_seconds=12.5, prefix=shared, stage="draft", workflow="w"))
    kernel.load(1002.5, "a", 1)
    kernel.finished(1004.0, "early", usage(cached_tokens=0, first_token_seconds=0.5))
    kernel.parameters(1004.0, Parameters(alpha=0.9), workflow="w")
    kernel.failed(1004.5, "c0", reason="reset by peer", retryable=True)
    kernel.cancel(1005.0, "c1")
    kernel.instance(1006.0, gone("b"))
    kernel.query_ended(1006.5, "c2", answered=False)
    kernel.wake(1007.0)
    return lines


def test_a_log_comes_out_the_same_when_it_is_replayed() -> None:
    result = replay(decode(line) for line in a_log())
    assert result.difference is None
    assert result.inputs == 12
    assert result.decisions > 15


def test_a_line_read_and_written_again_is_the_same_line() -> None:
    assert [encode(decode(line)) for line in a_log()] == a_log()


def test_a_record_is_one_line_of_json_with_version_instant_input_and_decisions() -> None:
    first, arrival, instance, *_ = a_log()
    assert json.loads(first)["with"]["dispatch"] == "HexGenFlow"
    assert json.loads(arrival) == {
        "v": 2,
        "n": 1,
        "t": 1000.25,
        "input": "arrive",
        "with": {
            "calls": [
                {
                    "callId": "early",
                    "queryId": "early",
                    "model": "coder",
                    "pools": ["pool", "spare"],
                    "promptTokens": 1000,
                    "maxTokens": 100,
                    "queryArrival": 0.0,
                    "deadline": 1060.0,
                }
            ]
        },
        "decisions": [],
    }
    assert [*json.loads(instance)["decisions"][0]] == ["place"]
    assert "\n" not in "".join(a_log())


def test_the_first_difference_is_reported() -> None:
    lines = a_log()
    lines[2] = lines[2].replace('"instanceId":"a","urgency"', '"instanceId":"b","urgency"')
    result = replay(decode(line) for line in lines)
    assert result.inputs == 2
    assert result.difference is not None
    assert str(result.difference).startswith(
        "record 2 (instance at 1001.0), decision 0: recorded Place(call_id='early', instance_id='b'"
    )


def test_a_decision_too_few_is_a_difference() -> None:
    lines = a_log()
    data = json.loads(lines[2])
    data["decisions"].pop()
    result = replay([decode(lines[0]), decode(lines[1]), decode(json.dumps(data))])
    assert "decision 1: recorded nothing, replayed Send(" in str(result.difference)


def test_what_was_learned_before_is_part_of_the_log() -> None:
    estimates = Estimates()
    for _ in range(5):
        estimates.finished(a_call(), usage(40))
    lines: list[str] = []
    kernel = RecordingKernel(estimates=estimates, sink=lines.append)
    kernel.instance(0.0, an_instance())
    kernel.arrive(0.0, [a_call()])
    assert replay(decode(line) for line in lines).difference is None


def test_a_refused_input_is_not_recorded() -> None:
    lines: list[str] = []
    kernel = RecordingKernel(sink=lines.append)
    with pytest.raises(UnknownCall):
        kernel.cancel(0.0, "nobody")
    assert len(lines) == 1


def test_every_input_is_recorded_under_the_name_of_its_method() -> None:
    methods = {name: method for name, method in vars(Kernel).items() if inspect.isfunction(method)}
    inputs = {name for name, method in methods.items() if "now" in inspect.signature(method).parameters}
    inputs = {name for name in inputs if not name.startswith("_")} - {"admits"}  # which only asks
    assert {decode(line).input for line in a_log()} == {"start", *inputs}


def test_the_log_holds_no_more_than_counts_names_instants_and_hashes() -> None:
    keys: set[str] = set()

    def walk(data: object) -> None:
        if isinstance(data, dict):
            keys.update(data)
            for value in data.values():
                walk(value)
        elif isinstance(data, list):
            for value in data:
                walk(value)

    for line in a_log():
        walk(json.loads(line))
    assert keys.isdisjoint({"prompt", "question", "sql", "text", "body", "messages"})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "no record of an event log"),
        ("{", "no record of an event log"),
        ("[]", "no record of an event log"),
        ('{"v":1}', "a record of version 1; this program reads version 2: replay the log with the release"),
        ('{"v":2,"n":1,"t":0,"input":"guess","with":{},"decisions":[]}', "no input is called 'guess'"),
        ('{"v":2,"n":1,"t":0,"input":"cancel","with":{},"decisions":[]}', "no record of an event log"),
        (
            '{"v":2,"n":1,"t":0,"input":"arrive","with":{"calls":[{"callId":"c"}]},"decisions":[]}',
            "Call: ",
        ),
        (
            '{"v":2,"n":1,"t":0,"input":"finished","with":{"call_id":"c","usage":{"promptTokens":1,'
            '"outputTokens":1,"joules":3}},"decisions":[]}',
            "Usage has no joules; a newer version wrote it",
        ),
        (
            '{"v":2,"n":1,"t":0,"input":"wake","with":{},"decisions":[{"jump":{}}]}',
            "no record of an event log",
        ),
    ],
)
def test_a_line_that_is_no_record_is_refused(line: str, message: str) -> None:
    with pytest.raises(InvalidRecord, match=message):
        decode(line)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda given: given.pop("dispatch"), "a start record without what a kernel needs .*dispatch"),
        (lambda given: given.update(dispatch="Newer"), "no kernel here could start so: no dispatch rule"),
        (lambda given: given.update(relief=3), "a start record without what a kernel needs"),
        (lambda given: given.update(estimates={}), "no kernel here could start so: these are no saved"),
    ],
)
def test_a_start_that_no_kernel_can_make_is_refused(change: Callable[[Any], object], message: str) -> None:
    start = json.loads(a_log()[0])
    change(start["with"])
    with pytest.raises(InvalidRecord, match=message):
        replay([decode(json.dumps(start))])


def test_a_value_of_another_type_is_refused() -> None:
    start, first, *_ = a_log()
    data = json.loads(first)
    data["t"] = "soon"
    with pytest.raises(InvalidRecord, match="record 1 holds a value of another type"):
        replay([decode(start), decode(json.dumps(data))])


def test_a_file_to_which_a_router_added_after_a_restart_is_replayed_run_by_run() -> None:
    result = replay(decode(line) for line in [*a_log(), *a_log()])
    assert result.difference is None
    assert result.inputs == 24


def test_a_log_without_its_head_is_refused() -> None:
    with pytest.raises(InvalidRecord, match="its head is missing"):
        replay(decode(line) for line in a_log()[1:])


def test_an_empty_log_is_refused() -> None:
    with pytest.raises(InvalidRecord, match="this one is empty"):
        replay([])


def test_a_log_with_a_gap_is_refused() -> None:
    lines = a_log()
    with pytest.raises(InvalidRecord, match="record 2 follows where 1 should; lines are missing"):
        replay(decode(line) for line in [lines[0], *lines[2:]])


def test_an_input_that_cannot_be_is_refused() -> None:
    lines = a_log()
    impossible = decode(lines[-1]).__class__(sequence=1, now=0.0, input="cancel", arguments={"call_id": "x"})
    with pytest.raises(InvalidRecord, match="record 1 cannot follow those before it: call 'x' is not known"):
        replay([decode(lines[0]), impossible])
