"""HexFlow's own trace files: queries with the true lengths of their calls, one JSON object a line.

``docs/reference/traces.md`` describes the format. Reading checks the whole file once, then yields query after
query as often as it is asked, so that a run never meets a bad line half-way and memory stays flat.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import msgspec

from hexflow_scheduler import InvalidTemplate, PrefixBlock, StageTemplate, WorkflowTemplate
from hexflow_simulator.complaint import InvalidTrace, Where
from hexflow_simulator.lines import numbered_lines
from hexflow_simulator.query import SimulatedCall, SimulatedQuery, SimulatedStage

VERSION: Final = 1
"""Version of the format; a file of another one is refused."""

_MOST_OUTPUT: Final = 4096
LONGEST_CHAIN: Final = 256
"""Calls that may follow one another within a stage."""

_Tokens = Annotated[int, msgspec.Meta(ge=1, le=10**8)]
_Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=512)]


class _Header(msgspec.Struct, rename="camel", omit_defaults=True):
    """The first line."""

    hexflow_trace: int
    note: str = ""


class _Block(msgspec.Struct, array_like=True, frozen=True):
    key: _Name
    tokens: _Tokens


class _Call(msgspec.Struct, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    prompt_tokens: _Tokens
    output_tokens: _Tokens
    max_tokens: _Tokens = _MOST_OUTPUT
    prefix: tuple[_Block, ...] = ()
    then: tuple["_Call", ...] = ()
    pause_seconds: _Seconds = 0.0


class _Stage(msgspec.Struct, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    name: _Name
    calls: tuple[_Call, ...] = ()
    after: tuple[_Name, ...] = ()


class _Query(msgspec.Struct, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    query_id: _Name
    arrival: _Seconds
    model: _Name
    stages: Annotated[tuple[_Stage, ...], msgspec.Meta(min_length=1, max_length=1000)]
    workflow: str = ""
    tenant: str = ""
    tenant_weight: Annotated[float, msgspec.Meta(gt=0, le=1e12)] = 1.0
    pools: tuple[_Name, ...] | None = None
    slo_seconds: Annotated[float, msgspec.Meta(gt=0, le=1e12)] | None = None
    base_seconds: Annotated[float, msgspec.Meta(gt=0, le=1e12)] | None = None
    closing_seconds: _Seconds = 0.0


_QUERY = msgspec.json.Decoder(_Query)
_HEADER = msgspec.json.Decoder(_Header)


@dataclass(frozen=True, slots=True)
class TraceFile:
    """A trace that was checked; each iteration reads it anew, from its first query."""

    path: Path
    note: str
    """What whoever wrote it said of it."""
    count: int
    """Queries."""
    seconds: float
    """From the first arrival to the last."""

    def __iter__(self) -> Iterator[SimulatedQuery]:
        """Yield the queries in the order they arrive."""
        for query in _records(self.path):
            yield _simulated(query)


def read_trace(path: Path) -> TraceFile:
    """Check a trace file and return it; raises InvalidTrace with the first line that is wrong and what to do."""
    header = _header(path)
    first = last = 0.0
    count = 0
    known: set[tuple[tuple[str, tuple[str, ...]], ...]] = set()
    ids: set[int] = set()
    """Hashes, which take a tenth of the memory of the ids."""
    where = Where(str(path))
    for number, query in _numbered(path):
        where = Where(str(path), number)
        if count and query.arrival < last:
            raise InvalidTrace(
                where,
                f"arrives at {query.arrival}, before the query above it ({last})",
                "sort the queries by arrival",
            )
        if (digest := hash(query.query_id)) in ids:
            raise InvalidTrace(where, f"a second query {query.query_id!r}", "give each an id of its own")
        ids.add(digest)
        _check(query, where, known)
        first, last = (first if count else query.arrival), query.arrival
        count += 1
    if not count:
        raise InvalidTrace(where, "no query after the header", "give at least one")
    return TraceFile(path=path, note=header.note, count=count, seconds=last - first)


def write_trace(path: Path, queries: Iterable[SimulatedQuery], *, note: str = "") -> int:
    """Write queries, which are in order of arrival, and return how many; the file appears when it is whole.

    Raises ValueError for queries out of order.
    """
    encoder = msgspec.json.Encoder()
    buffer = bytearray()
    count, last = 0, 0.0
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(encoder.encode(_Header(hexflow_trace=VERSION, note=note)) + b"\n")
            for query in queries:
                if query.arrival < last:
                    raise ValueError(f"{query.query_id} arrives at {query.arrival}, before the one above it")
                encoder.encode_into(_plain(query), buffer)
                buffer += b"\n"
                file.write(buffer)
                buffer.clear()
                count, last = count + 1, query.arrival
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return count


def _header(path: Path) -> _Header:
    number, line = next(iter(numbered_lines(path)))
    where = Where(str(path), number)
    try:
        header = _HEADER.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidTrace(
            where,
            f"no header of a HexFlow trace ({error})",
            'begin the file with {"hexflowTrace": 1}, or give requests as a CSV: arrival_s,input_tokens,output_tokens',
        ) from error
    if header.hexflow_trace != VERSION:
        raise InvalidTrace(
            where, f"a trace of version {header.hexflow_trace}", f"this program reads version {VERSION}"
        )
    return header


def _numbered(path: Path) -> Iterator[tuple[int, _Query]]:
    lines = iter(numbered_lines(path))
    next(lines)
    for number, line in lines:
        try:
            yield number, _QUERY.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidTrace(
                Where(str(path), number), f"no query ({error})", "see docs/reference/traces.md for its fields"
            ) from error


def _records(path: Path) -> Iterator[_Query]:
    return (query for _, query in _numbered(path))


def _check(query: _Query, where: Where, known: set[tuple[tuple[str, tuple[str, ...]], ...]]) -> None:
    """Refuse what fits the fields but makes no sense."""
    waiting = [(stage.name, call, 1) for stage in query.stages for call in stage.calls]
    if not waiting:
        raise InvalidTrace(where, "a query without calls", "give one stage a call, or leave the query out")
    while waiting:
        stage, call, rank = waiting.pop()
        prefix = sum(block.tokens for block in call.prefix)
        if prefix > call.prompt_tokens:
            raise InvalidTrace(
                where,
                f"a prefix of {prefix} tokens in a prompt of {call.prompt_tokens} (stage {stage!r})",
                "count each block's own tokens",
            )
        if call.output_tokens > call.max_tokens:
            raise InvalidTrace(
                where,
                f"an output of {call.output_tokens} tokens where maxTokens is {call.max_tokens} (stage {stage!r})",
                "raise maxTokens",
            )
        if rank > LONGEST_CHAIN:
            raise InvalidTrace(
                where, f"a chain of more than {LONGEST_CHAIN} calls (stage {stage!r})", "shorten it"
            )
        waiting += ((stage, later, rank + 1) for later in call.then)
    shape = tuple((stage.name, stage.after) for stage in query.stages)
    if shape not in known:
        try:
            WorkflowTemplate(tuple(StageTemplate(name, after) for name, after in shape))
        except InvalidTemplate as error:
            raise InvalidTrace(
                where, str(error), "name stages once, each after those it waits for"
            ) from error
        if len(known) < 1000:
            known.add(shape)


def _simulated(query: _Query) -> SimulatedQuery:
    return SimulatedQuery(
        query_id=query.query_id,
        arrival=query.arrival,
        stages=tuple(
            SimulatedStage(
                name=stage.name,
                calls=tuple([_simulated_call(call) for call in stage.calls]),
                after=stage.after,
            )
            for stage in query.stages
        ),
        model=query.model,
        workflow=query.workflow,
        tenant=query.tenant,
        tenant_weight=query.tenant_weight,
        pools=None if query.pools is None else frozenset(query.pools),
        slo_seconds=query.slo_seconds,
        base_seconds=query.base_seconds,
        closing_seconds=query.closing_seconds,
    )


def _simulated_call(call: _Call) -> SimulatedCall:
    return SimulatedCall(
        prompt_tokens=call.prompt_tokens,
        output_tokens=call.output_tokens,
        max_tokens=call.max_tokens,
        prefix=tuple([PrefixBlock(key=block.key, tokens=block.tokens) for block in call.prefix]),
        then=tuple([_simulated_call(later) for later in call.then]) if call.then else (),
        pause_seconds=call.pause_seconds,
    )


def _plain(query: SimulatedQuery) -> _Query:
    return _Query(
        query_id=query.query_id,
        arrival=query.arrival,
        model=query.model,
        stages=tuple(
            _Stage(
                name=stage.name, calls=tuple([_plain_call(call) for call in stage.calls]), after=stage.after
            )
            for stage in query.stages
        ),
        workflow=query.workflow,
        tenant=query.tenant,
        tenant_weight=query.tenant_weight,
        pools=None if query.pools is None else tuple(sorted(query.pools)),
        slo_seconds=query.slo_seconds,
        base_seconds=query.base_seconds,
        closing_seconds=query.closing_seconds,
    )


def _plain_call(call: SimulatedCall) -> _Call:
    most = max(call.max_tokens, call.output_tokens)
    return _Call(
        prompt_tokens=call.prompt_tokens,
        output_tokens=call.output_tokens,
        max_tokens=_MOST_OUTPUT if most == _MOST_OUTPUT else most,  # the very object, so that it is left out
        prefix=tuple([_Block(block.key, block.tokens) for block in call.prefix]),
        then=tuple([_plain_call(later) for later in call.then]),
        pause_seconds=call.pause_seconds,
    )
