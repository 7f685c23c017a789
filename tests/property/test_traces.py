"""No file, however bad, does anything but be read or refused with its name; what is written is read."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given, settings
from hypothesis import strategies as st

from hexflow_scheduler import Policy, PrefixBlock, RecordingKernel, Usage
from hexflow_simulator import SimulatedCall, SimulatedQuery, SimulatedStage
from hexflow_simulator.arrivals import Poisson
from hexflow_simulator.complaint import InvalidTrace
from hexflow_simulator.importing import open_trace
from hexflow_simulator.tracefile import read_trace, write_trace
from support.calls import a_call, an_instance
from support.tracefiles import HEADER, a_line


def a_log() -> str:
    """Return the event log of a kernel that served one call."""
    lines: list[str] = []
    kernel = RecordingKernel(Policy.named("RoundRobin"), sink=lines.append)
    kernel.instance(0.0, an_instance("a"))
    kernel.arrive(1.0, [a_call("c")])
    kernel.finished(2.0, "c", Usage(prompt_tokens=10, output_tokens=5))
    return "\n".join(lines)


GOOD = [
    f"{HEADER}\n{a_line('a')}\n{a_line('b', 2)}\n",
    "arrival_s,input_tokens,output_tokens\n0,5,6\n1.5,7,8\n",
    "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n",
    '{"timestamp": 5, "input_length": 6, "output_length": 7, "hash_ids": [1, 2]}\n',
    '[{"Text2SQLRequest": [{"step": "revise", "input_length": 5, "output_length": 6}]}]',
    a_log(),
]


@st.composite
def spoilt(draw: st.DrawFn) -> bytes:
    """Return a good file with some bytes of it replaced, dropped or doubled."""
    data = bytearray(draw(st.sampled_from(GOOD)).encode())
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data) - 1))
        length = draw(st.integers(0, 6))
        data[at : at + length] = draw(
            st.one_of(st.binary(max_size=6), st.sampled_from([b"-1", b"NaN", b"1e999", b'"', b"[", b"\n"]))
        )
        if not data:
            break
    return bytes(data)


@settings(max_examples=300, deadline=None)
@example(b'{"input": 1, "decisions": []}')
@example(b"[" * 100_000)
@example(b'{"hexflowTrace": 1}\n' + b'{"stages":[' * 50_000)
@example(b'{"v":1,"input":"start","with":[],"decisions":[]}')
@given(st.one_of(spoilt(), st.binary(max_size=200)))
def test_a_file_is_read_as_a_whole_or_refused_by_its_name(data: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(data)
        try:
            trace = open_trace(path, arrivals=Poisson(1.0))
        except InvalidTrace as refused:
            said = str(refused)
        else:
            said = ""
        if said:
            assert said.startswith(str(path))
            assert "; " in said, "what to do about it"
            return
        arrivals = [query.arrival for query in trace]
        assert len(arrivals) == trace.count > 0
        assert arrivals == sorted(arrivals)


tokens = st.integers(1, 10_000)
leaves = st.builds(
    SimulatedCall,
    prompt_tokens=st.just(20_000),
    output_tokens=st.integers(1, 4096),
    max_tokens=st.just(4096),
    prefix=st.lists(
        st.builds(PrefixBlock, key=st.text("ab/", min_size=1, max_size=4), tokens=tokens), max_size=2
    ).map(tuple),
)
calls = st.recursive(
    leaves,
    lambda inner: st.builds(
        lambda call, then: SimulatedCall(
            prompt_tokens=call.prompt_tokens,
            output_tokens=call.output_tokens,
            prefix=call.prefix,
            then=tuple(then),
        ),
        leaves,
        st.lists(inner, min_size=1, max_size=2),
    ),
    max_leaves=5,
)


@st.composite
def queries(draw: st.DrawFn) -> list[SimulatedQuery]:
    arrivals = sorted(draw(st.lists(st.floats(0, 1e6), min_size=1, max_size=4)))
    return [
        SimulatedQuery(
            query_id=f"q{number}",
            arrival=arrival,
            model=draw(st.text("mx", min_size=1)),
            stages=tuple(
                SimulatedStage(name=f"s{place}", calls=tuple(draw(st.lists(calls, min_size=1, max_size=2))))
                for place in range(draw(st.integers(1, 3)))
            ),
            tenant=draw(st.text(max_size=5)),
            slo_seconds=draw(st.none() | st.floats(0.1, 1e6)),
            pools=draw(st.none() | st.frozensets(st.text("p", min_size=1), max_size=2)),
        )
        for number, arrival in enumerate(arrivals)
    ]


@settings(max_examples=60, deadline=None)
@given(queries())
def test_what_is_written_is_read(some: list[SimulatedQuery]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace.jsonl"
        write_trace(path, some)
        assert list(read_trace(path)) == some
