"""HexFlow's trace files: what was written is read, and what is wrong is said with file and line."""

import json
from pathlib import Path
from typing import Any

import pytest

from hexflow_scheduler import PrefixBlock
from hexflow_simulator import SimulatedCall, SimulatedQuery, SimulatedStage
from hexflow_simulator.complaint import InvalidTrace
from hexflow_simulator.lines import LONGEST_LINE
from hexflow_simulator.tracefile import LONGEST_CHAIN, read_trace, write_trace
from hexflow_simulator.workload import THREE_CLASSES
from support.tracefiles import HEADER, a_file, a_line
from support.workloads import a_workload


def complaint(path: Path) -> str:
    with pytest.raises(InvalidTrace) as caught:
        read_trace(path)
    return str(caught.value).replace(str(path), "F")


def a_call(**fields: Any) -> dict[str, Any]:
    return {"promptTokens": 900, "outputTokens": 100, **fields}


def with_call(**fields: Any) -> str:
    return a_line(stages=[{"name": "draft", "calls": [a_call(**fields)]}])


@pytest.mark.parametrize("mix", ["natural", "modern"])
def test_what_was_written_is_read(tmp_path: Path, mix: str) -> None:
    workload = a_workload(mix, databases=5, tenants=THREE_CLASSES, base_seconds=40.0)
    path = tmp_path / "trace.jsonl"
    assert write_trace(path, workload.queries(1, count=50), note="fifty") == 50
    trace = read_trace(path)
    assert (trace.count, trace.note) == (50, "fifty")
    assert list(trace) == list(workload.queries(1, count=50))


def test_a_trace_can_be_gone_through_again(tmp_path: Path) -> None:
    trace = read_trace(a_file(tmp_path, HEADER, a_line("a"), a_line("b", 2.5)))
    assert [query.query_id for query in trace] == [query.query_id for query in trace] == ["a", "b"]
    assert trace.seconds == 2.5


def test_every_field_has_its_place(tmp_path: Path) -> None:
    call = SimulatedCall(
        prompt_tokens=500,
        output_tokens=20,
        max_tokens=64,
        prefix=(PrefixBlock(key="t", tokens=300),),
        then=(SimulatedCall(prompt_tokens=510, output_tokens=7),),
    )
    query = SimulatedQuery(
        query_id="q",
        arrival=1.5,
        stages=(
            SimulatedStage(name="a", calls=(call, call)),
            SimulatedStage(name="b", calls=()),
            SimulatedStage(name="c", calls=(call,), after=("a",)),
        ),
        model="coder",
        workflow="w",
        tenant="t",
        tenant_weight=3.0,
        pools=frozenset({"p", "o"}),
        slo_seconds=60.0,
        base_seconds=12.0,
    )
    path = tmp_path / "trace.jsonl"
    write_trace(path, [query])
    assert list(read_trace(path)) == [query]
    assert json.loads(path.read_text().splitlines()[1])["pools"] == ["o", "p"]


def test_windows_line_ends_a_byte_order_mark_and_empty_lines_are_taken(tmp_path: Path) -> None:
    path = a_file(tmp_path, "\ufeff" + HEADER, "", a_line(), end="\r\n")
    assert read_trace(path).count == 1


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "F: an empty file; give one with at least one record"),
        (["", "  "], "F: an empty file; give one"),
        ([HEADER], "F: no query after the header; give at least one"),
        (["query_id,arrival", "a,1"], "F:1: no header of a HexFlow trace"),
        ([a_line()], "F:1: no header of a HexFlow trace"),
        (['{"hexflowTrace": 2}', a_line()], "F:1: a trace of version 2; this program reads version 1"),
        ([HEADER, a_line(), "{"], "F:3: no query ("),
        ([HEADER, "", a_line("a", 5), a_line("b", 4.5)], "F:4: arrives at 4.5, before the query above it (5.0); sort"),
        ([HEADER, a_line(), a_line()], "F:3: a second query 'q1'; give each an id of its own"),
        ([HEADER, a_line(arrival=-1.0)], "F:2: no query (Expected `float` >= 0.0 - at `$.arrival`); see docs"),
        ([HEADER, a_line().replace("0.0", "NaN")], "F:2: no query (JSON is malformed"),
        ([HEADER, a_line().replace("0.0", "1e999")], "F:2: no query (Number out of range - at `$.arrival`)"),
        ([HEADER, a_line(arrival="soon")], "F:2: no query (Expected `float`, got `str` - at `$.arrival`)"),
        ([HEADER, a_line(arrivals=3)], "F:2: no query (Object contains unknown field `arrivals`)"),
        ([HEADER, a_line().replace('"model": "coder", ', "")], "F:2: no query (Object missing required field `model`)"),
        ([HEADER, with_call(promptTokens=0)], "F:2: no query (Expected `int` >= 1 - at `$.stages[0].calls[0].promptTokens`)"),
        ([HEADER, with_call(outputTokens=10**30)], "F:2: no query (Expected `int` <= 100000000"),
        ([HEADER, with_call(outputTokens=1.5)], "F:2: no query (Expected `int`, got `float`"),
        ([HEADER, with_call(outputTokens=5000)], "F:2: an output of 5000 tokens where maxTokens is 4096 (stage 'draft'); raise"),
        ([HEADER, with_call(prefix=[["t", 800], ["s", 200]])], "F:2: a prefix of 1000 tokens in a prompt of 900 (stage"),
        ([HEADER, a_line(stages=[])], "F:2: no query (Expected `array` of length >= 1"),
        ([HEADER, a_line(stages=[{"name": "a"}])], "F:2: a query without calls; give one stage a call"),
        (
            [HEADER, a_line(stages=[{"name": "a", "calls": [a_call()]}, {"name": "b", "after": ["c"]}])],
            "F:2: stage 'b' comes after 'c', which is not among the stages before it",
        ),
    ],
)  # fmt: skip
def test_a_bad_line_is_named_with_what_to_do(tmp_path: Path, lines: list[str], said: str) -> None:
    assert complaint(a_file(tmp_path, *lines)).startswith(said)


def test_binary_rubbish_is_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(bytes(range(256)) * 20)
    assert complaint(path).startswith("F:1: no header")
    path.write_bytes(HEADER.encode("utf-16"))
    assert complaint(path) == "F:1: UTF-16 text; save the file as UTF-8"


def test_a_line_without_end_is_not_read_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    with path.open("wb") as file:
        file.truncate(LONGEST_LINE + 10)
    assert complaint(path).startswith("F:1: a line of more than 32 MiB")


def test_a_chain_has_an_end(tmp_path: Path) -> None:
    call = a_call()
    for _ in range(LONGEST_CHAIN):
        call = a_call(then=[call])
    path = a_file(tmp_path, HEADER, a_line(stages=[{"name": "a", "calls": [call]}]))
    assert complaint(path) == f"F:2: a chain of more than {LONGEST_CHAIN} calls (stage 'a'); shorten it"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert (
        complaint(tmp_path / "none.jsonl")
        == "F: cannot be read (No such file or directory); give the path of a file that can"
    )
    assert complaint(tmp_path) == "F: a folder; give the path of a file in it"


def test_nothing_is_left_of_a_file_that_could_not_be_written(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    queries = [*a_workload().queries(1, count=3)]
    with pytest.raises(ValueError, match="before the one above it"):
        write_trace(path, reversed(queries))
    assert list(tmp_path.iterdir()) == []
