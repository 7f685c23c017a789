"""Request traces of others: known columns, and what is wrong with a line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hexflow_simulator.complaint import InvalidTrace
from hexflow_simulator.requestfile import read_arrivals, read_requests
from support.tracefiles import a_file

AZURE = (
    "TIMESTAMP,ContextTokens,GeneratedTokens",
    "2023-11-16 18:17:03.9799600,4808,10",
    "2023-11-16 18:17:04.0319600,3180,8",
    "2023-11-16 18:17:05.9799600,110,27",
)
AZURE_2024 = (
    "TIMESTAMP,ContextTokens,GeneratedTokens",
    "2024-05-10 00:00:00.009930+00:00,2162,5",
    "2024-05-10 00:00:00.259930+00:00,2399,6",
)
BURSTGPT = (
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type",
    "5,ChatGPT,472,18,490,Conversation log",
    "45,ChatGPT,1087,0,1087,Conversation log",
    "118,GPT-4,417,276,693,Conversation log",
)
MOONCAKE = (
    '{"timestamp": 27482, "input_length": 1100, "output_length": 52, "hash_ids": [46, 47, 48]}',
    '{"timestamp": 30535, "input_length": 672, "output_length": 26, "hash_ids": [46, 99]}',
)
OURS = ("arrival_s,input_tokens,output_tokens", "0.0,374,44", "4.3146,396,109")


def lengths(path: Path) -> list[tuple[float, int, int]]:
    return [
        (
            round(query.arrival, 4),
            query.stages[0].calls[0].prompt_tokens,
            query.stages[0].calls[0].output_tokens,
        )
        for query in read_requests(path, model="coder")
    ]


@pytest.mark.parametrize(
    ("lines", "kind", "expected"),
    [
        (AZURE, "azure", [(0.0, 4808, 10), (0.052, 3180, 8), (2.0, 110, 27)]),
        (AZURE_2024, "azure", [(0.0, 2162, 5), (0.25, 2399, 6)]),
        (BURSTGPT, "burstgpt", [(0.0, 472, 18), (113.0, 417, 276)]),
        (MOONCAKE, "mooncake", [(0.0, 1100, 52), (3.053, 672, 26)]),
        (
            ("timestamp,input_length,output_length", "100,5,6", "1100,7,8"),
            "mooncake",
            [(0.0, 5, 6), (1.0, 7, 8)],
        ),
        (OURS, "hexflow", [(0.0, 374, 44), (4.3146, 396, 109)]),
    ],
)
def test_each_kind_is_told_by_its_columns(
    tmp_path: Path, lines: tuple[str, ...], kind: str, expected: list[tuple[float, int, int]]
) -> None:
    path = a_file(tmp_path, *lines, name="t.csv")
    assert read_requests(path, model="coder").kind == kind
    assert lengths(path) == expected


def test_a_request_becomes_a_query_of_one_call(tmp_path: Path) -> None:
    trace = read_requests(a_file(tmp_path, *OURS, name="conv.csv"), model="coder", slo_seconds=20.0)
    first, second = trace
    assert (first.query_id, second.query_id) == ("conv-2", "conv-3")
    assert (first.model, first.workflow, first.slo_seconds) == ("coder", "conv", 20.0)
    assert [stage.name for stage in first.stages] == ["call"]
    assert (trace.count, trace.left_out, trace.seconds) == (2, 0, 4.3146)


def test_requests_that_failed_when_they_were_recorded_are_left_out_and_counted(tmp_path: Path) -> None:
    trace = read_requests(a_file(tmp_path, *BURSTGPT), model="coder")
    assert (trace.count, trace.left_out) == (2, 1)


def test_hash_ids_become_blocks_of_the_prefix(tmp_path: Path) -> None:
    first, second = read_requests(a_file(tmp_path, *MOONCAKE), model="coder")
    blocks = first.stages[0].calls[0].prefix
    assert [block.tokens for block in blocks] == [512, 512, 76]
    assert second.stages[0].calls[0].prefix[0] == blocks[0]


def test_a_byte_order_mark_windows_line_ends_and_quotes_are_taken(tmp_path: Path) -> None:
    path = a_file(
        tmp_path, '\ufeff"arrival_s", input_tokens ,output_tokens,note', '0,1,2,"a, b"', "1,3,4,", end="\r\n"
    )
    assert lengths(path) == [(0.0, 1, 2), (1.0, 3, 4)]


def test_only_the_arrivals_can_be_taken(tmp_path: Path) -> None:
    for lines in (AZURE, BURSTGPT, ("arrival_s", "3", "4.5", "9")):
        replay = read_arrivals(a_file(tmp_path, *lines))
        assert len(replay.instants) == 3
    assert read_arrivals(a_file(tmp_path, "arrival_s", "3", "4.5", "9")).instants == (3.0, 4.5, 9.0)
    assert read_arrivals(a_file(tmp_path, *MOONCAKE)).instants == pytest.approx((27.482, 30.535))


HEAD = "arrival_s,input_tokens,output_tokens"


def whole(path: Path) -> object:
    return read_requests(path, model="m")


BAD = [
    (
        ["arrival_s,input_tokens", "0,1"],
        "F:1: no column output_tokens among: arrival_s, input_tokens; begin the file",
    ),
    (["0.0,2,2", "1,2,3"], "F:1: data, and no column names above it; begin the file with: arrival_s,"),
    ([HEAD, "0,1,2", "-3,1,2"], "F:3: an arrival at -3.0, before the start; give seconds from 0 on"),
    ([HEAD, "nan,1,2"], "F:2: an arrival at nan; give a finite number of seconds"),
    ([HEAD, "inf,1,2"], "F:2: an arrival at inf"),
    ([HEAD, "1e400,1,2"], "F:2: an arrival at inf"),
    ([HEAD, "1e300,1,2"], "F:2: an arrival at 1e+300"),
    (
        [HEAD, "5,1,2", "", "4,1,2"],
        "F:4: an arrival at 4.0, before that above it (5.0); sort the lines by arrival",
    ),
    ([HEAD, "soon,1,2"], "F:2: arrival_s is 'soon', no time; give seconds, such as 12.5"),
    ([HEAD, ",1,2"], "F:2: no value for arrival_s; fill it in, or leave the line out"),
    ([], "F: an empty file; give one with at least one record"),
]
BAD_TOKENS = [
    ([HEAD], "F:1: a header and nothing below it; give at least one line of data"),
    ([HEAD, "0,1"], "F:2: no value for output_tokens"),
    ([HEAD, "0,1.5,2"], "F:2: input_tokens is '1.5', no whole number of tokens; give one, such as 512"),
    ([HEAD, "0,-1,2"], "F:2: input_tokens is '-1', no whole number"),
    ([HEAD, "0,NaN,2"], "F:2: input_tokens is 'NaN', no whole number"),
    ([HEAD, "0,1_000,2"], "F:2: input_tokens is '1_000', no whole number"),
    ([HEAD, "0,0,2"], "F:2: input_tokens is 0; give at least 1"),
    ([HEAD, "0,5,0"], "F:2: output_tokens is 0; give at least 1, or leave the line out"),
    ([HEAD, "0,999999999,2"], "F:2: input_tokens is 999999999; give at most 100000000 tokens"),
    ([HEAD, "0," + "9" * 5000 + ",2"], "F:2: input_tokens is 9999"),
    ([HEAD, '0,"1,2', "3,4,5"], "F:2: no CSV (unexpected end of data); check quotes"),
    (['{"timestamp": 5, "input_length": 1}'], "F:1: no request of a Mooncake trace (Object missing required field"),
    (["Timestamp,Request tokens,Response tokens", "1,5,0"], "F: no request that succeeded; give at least one"),
    (
        ["TIMESTAMP,ContextTokens,GeneratedTokens", "yesterday,1,2"],
        "F:2: TIMESTAMP is 'yesterday', no time; give a timestamp, such as 2024-",
    ),
    (["timestamp,input_length,output_length", "now,1,2"], "F:2: timestamp is 'now', no time; give milliseconds"),
    ([HEAD, "0,1,2", "0,5,120,44"], "F:3: 4 fields under 3 column names; put a field with a comma in it"),
    ([HEAD + ",output_tokens", "0,1,2,3"], "F:1: two columns output_tokens; leave one of them out"),
    ([HEAD.replace(",", ";"), "0,5;1;2"], "F:1: columns that are set apart by semicolons; set them apart by commas"),
    ([HEAD.replace(",", "\t"), "0\t1\t2"], "F:1: columns that are set apart by tabs; set them apart by commas"),
    (["Arrival_s,Input_Tokens,Output_Tokens", "0,1,2"], "F:1: upper or lower case differs among: Arrival_s, Input"),
    (
        ["time,prompt,completion", "0,1,2"],
        "F:1: no columns arrival_s, input_tokens, output_tokens among: time, prompt, completion; begin the file with: "
        "arrival_s,input_tokens,output_tokens (docs/reference/traces.md has the columns of other traces)",
    ),
    (
        [",".join(f"c{n}" for n in range(100_000))],
        "F:1: no columns arrival_s, input_tokens, output_tokens among: c0, c1, c2, c3, c4, c5, c6, c7 … (100,000 columns)",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("read", "lines", "said"),
    [*((whole, *bad) for bad in [*BAD, *BAD_TOKENS]), *((read_arrivals, *bad) for bad in BAD[2:])],
)
def test_a_bad_line_is_named_with_what_to_do(
    tmp_path: Path, read: Callable[[Path], object], lines: list[str], said: str
) -> None:
    path = a_file(tmp_path, *lines)
    with pytest.raises(InvalidTrace) as caught:
        read(path)
    assert str(caught.value).replace(str(path), "F").startswith(said)


def test_arrivals_need_a_column_and_two_instants(tmp_path: Path) -> None:
    with pytest.raises(InvalidTrace, match="no column of arrivals among: a, b"):
        read_arrivals(a_file(tmp_path, "a,b", "1,2"))
    with pytest.raises(InvalidTrace, match="at least two that differ"):
        read_arrivals(a_file(tmp_path, "arrival_s", "1"))


def test_binary_rubbish_is_no_csv(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for rubbish, said in (
        (b"PK\x03\x04\x00\x00" * 9, "t.csv:1: a zip or a spreadsheet; unpack it, or save the sheet as CSV"),
        (b"\x1f\x8b\x08\xff\xfe", r"t.csv:1: a file packed with gzip; unpack it first \(gunzip\)"),
        (b"BZh91AY&SY\x00", r"t.csv:1: a file packed with bzip2; unpack it first \(bunzip2\)"),
        (b"\x28\xb5\x2f\xfd", r"t.csv:1: a file packed with zstd; unpack it first \(unzstd\)"),
        (b"\xfd7zXZ\x00", r"t.csv:1: a file packed with xz; unpack it first \(unxz\)"),
        (b"PAR1\x15", "t.csv:1: a Parquet file; export it as CSV"),
        (b"arrival_s\x00", "t.csv:1: a NUL byte; give a text file"),
        (b"arrival_s,\xe9", r"t.csv:1: bytes that are no UTF-8 text \(0xe9\); save the file as UTF-8"),
        (b"arrival_s,a\r0,5\r", "t.csv:1: lines that end with CR alone; save the file with LF or CRLF"),
    ):
        path.write_bytes(rubbish)
        with pytest.raises(InvalidTrace, match=said):
            read_requests(path, model="m")


def test_fields_beyond_the_column_names_may_be_there_if_they_are_empty(tmp_path: Path) -> None:
    assert lengths(a_file(tmp_path, HEAD, "0,1,2,", "1,3,4,,")) == [(0.0, 1, 2), (1.0, 3, 4)]


def test_a_quoted_field_may_go_over_several_lines_and_the_next_bad_line_has_its_own_number(
    tmp_path: Path,
) -> None:
    path = a_file(tmp_path, HEAD + ",note", '0,1,2,"a', 'b"', "1,3,x,")
    with pytest.raises(InvalidTrace, match=":4: output_tokens is 'x'"):
        read_requests(path, model="m")
