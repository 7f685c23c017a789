"""Whatever kind of trace it is, one function opens it."""

import json
import os
import pickle
from pathlib import Path

import pytest

from hexflow_simulator.arrivals import Poisson
from hexflow_simulator.complaint import InvalidTrace, Where
from hexflow_simulator.importing import open_trace
from support.tracefiles import HEADER, a_file, a_line

HEXGEN = json.dumps([{"Text2SQLRequest": [{"step": "revise", "input_length": 5, "output_length": 6}]}] * 3)
MOONCAKE = (
    '{"timestamp": 0, "input_length": 5, "output_length": 6}',
    '{"timestamp": 900, "input_length": 5, "output_length": 6}',
)


@pytest.mark.parametrize(
    ("lines", "count", "model"),
    [
        ((HEADER, a_line("a"), a_line("b", 4)), 2, "coder"),
        (("arrival_s,input_tokens,output_tokens", "0,5,6", "4,5,6"), 2, "m"),
        (MOONCAKE, 2, "m"),
        ((HEXGEN,), 3, "m"),
    ],
)
def test_a_trace_is_opened_by_what_it_begins_with(
    tmp_path: Path, lines: tuple[str, ...], count: int, model: str
) -> None:
    trace = open_trace(a_file(tmp_path, *lines), model="m", arrivals=Poisson(1.0))
    queries = list(trace)
    assert (trace.count, len(queries), {query.model for query in queries}) == (count, count, {model})
    assert trace.seconds == pytest.approx(queries[-1].arrival - queries[0].arrival)
    assert list(trace) == queries


def test_a_trace_without_arrivals_needs_a_rate(tmp_path: Path) -> None:
    with pytest.raises(InvalidTrace, match="say how often its queries come"):
        open_trace(a_file(tmp_path, HEXGEN))


def test_a_file_of_no_known_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidTrace, match=r"no header of a HexFlow trace .* or give requests as a CSV: arrival_s,"
    ):
        open_trace(a_file(tmp_path, '{"what": "ever"}'))
    with pytest.raises(InvalidTrace, match="no columns arrival_s, input_tokens"):
        open_trace(a_file(tmp_path, "Dear reader,"))


def test_a_pipe_and_a_folder_are_refused_before_they_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # nobody writes: opening it would wait for ever
    with pytest.raises(InvalidTrace, match="pipe: a pipe or a device; write it into a file first"):
        open_trace(tmp_path / "pipe")
    with pytest.raises(InvalidTrace, match="a folder; give the path of a file in it"):
        open_trace(tmp_path)


def test_a_complaint_is_the_same_after_it_has_travelled_from_another_process() -> None:
    complaint = InvalidTrace(Where("a.csv", 3), "no time", "give one")
    travelled = pickle.loads(pickle.dumps(complaint))
    assert str(travelled) == str(complaint) == "a.csv:3: no time; give one"
    assert travelled.where == complaint.where
