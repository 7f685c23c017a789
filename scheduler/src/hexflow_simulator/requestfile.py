"""Request traces of others: one line a call, with its arrival and its lengths, as Azure, Mooncake and BurstGPT publish them.

Each line becomes a query of one call. The columns tell whose file it is. Reading checks the whole file once, then yields
query after query as often as it is asked.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import msgspec

from hexflow_scheduler import PrefixBlock
from hexflow_simulator.arrivals import Replay
from hexflow_simulator.complaint import InvalidTrace, Where
from hexflow_simulator.csvfile import csv_rows, field, listed
from hexflow_simulator.lines import numbered_lines
from hexflow_simulator.query import SimulatedCall, SimulatedQuery, SimulatedStage

STAGE: Final = "call"
"""Name of the one stage."""
MOST_TOKENS: Final = 10**8
MOST_SECONDS: Final = 1e12
MOONCAKE_BLOCK_TOKENS: Final = 512
"""Tokens of the block that a hash id of Mooncake stands for; the last one of a prompt may be shorter."""

_Number = Callable[[str], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Say which columns a kind of file has, and what its times are."""

    kind: str
    arrival: str
    prompt: str
    output: str
    instant: _Number
    """Reads an arrival as seconds; raises ValueError."""
    example: str
    """What an arrival may be."""
    failed_have_no_output: bool = False
    """Whether lines with an output of 0 tokens are requests that failed; they are left out."""

    @property
    def names(self) -> tuple[str, str, str]:
        """The columns that must be there."""
        return self.arrival, self.prompt, self.output


def _seconds(text: str) -> float:
    if not text.isascii() or "_" in text:
        raise ValueError(text)
    return float(text)


def _milliseconds(text: str) -> float:
    return _seconds(text) / 1000


def _timestamp(text: str) -> float:
    # seven digits of a second are more than Python reads; a time zone may follow them
    head, dot, tail = text.strip().partition(".")
    if dot:
        digits = len(tail) - len(tail.lstrip("0123456789"))
        text = f"{head}.{tail[: min(6, digits)]}{tail[digits:]}"
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


KINDS: Final = (
    Columns(
        kind="hexflow",
        arrival="arrival_s",
        prompt="input_tokens",
        output="output_tokens",
        instant=_seconds,
        example="seconds, such as 12.5",
    ),
    Columns(
        kind="azure",
        arrival="TIMESTAMP",
        prompt="ContextTokens",
        output="GeneratedTokens",
        instant=_timestamp,
        example="a timestamp, such as 2024-05-10 18:15:46.68",
    ),
    Columns(
        kind="burstgpt",
        arrival="Timestamp",
        prompt="Request tokens",
        output="Response tokens",
        instant=_seconds,
        example="seconds, such as 12.5",
        failed_have_no_output=True,
    ),
    Columns(
        kind="mooncake",
        arrival="timestamp",
        prompt="input_length",
        output="output_length",
        instant=_milliseconds,
        example="milliseconds, such as 12500",
    ),
)
"""Kinds of CSV that are known."""

_Line = tuple[int, float, int, int, tuple[PrefixBlock, ...]]
"""Number, arrival, prompt, output, prefix; an output of 0 is a request that failed."""


class _Mooncake(msgspec.Struct):
    timestamp: Annotated[float, msgspec.Meta(ge=0, le=MOST_SECONDS)]
    input_length: Annotated[int, msgspec.Meta(ge=1, le=MOST_TOKENS)]
    output_length: Annotated[int, msgspec.Meta(ge=1, le=MOST_TOKENS)]
    hash_ids: tuple[int, ...] = ()


_MOONCAKE = msgspec.json.Decoder(_Mooncake)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFile:
    """A request trace that was checked; each iteration reads it anew."""

    path: Path
    kind: str
    model: str
    slo_seconds: float | None
    count: int
    """Queries."""
    left_out: int
    """Requests that failed when they were recorded."""
    first: float
    """Arrival of the first, by the file's own clock."""
    seconds: float
    """From the first arrival to the last."""

    def __iter__(self) -> Iterator[SimulatedQuery]:
        """Yield a query for each line, the first at instant 0."""
        name = self.path.stem
        for number, arrival, prompt, output, prefix in _lines(self.path):
            if not output:
                continue
            call = SimulatedCall(
                prompt_tokens=prompt,
                output_tokens=output,
                max_tokens=max(4096, output),
                prefix=prefix,
            )
            yield SimulatedQuery(
                query_id=f"{name}-{number}",
                arrival=arrival - self.first,
                stages=(SimulatedStage(name=STAGE, calls=(call,)),),
                model=self.model,
                workflow=name,
                slo_seconds=self.slo_seconds,
            )


def read_requests(path: Path, *, model: str, slo_seconds: float | None = None) -> RequestFile:
    """Check a request trace and return it as calls to ``model``; raises InvalidTrace with the first bad line."""
    count = left_out = 0
    first = last = 0.0
    for _, arrival, _, output, _ in _lines(path):
        if not count + left_out:
            first = arrival
        last = arrival
        count, left_out = count + (output > 0), left_out + (output == 0)
    if not count:
        raise InvalidTrace(Where(str(path)), "no request that succeeded", "give at least one")
    return RequestFile(
        path=path,
        kind=kind_of(path),
        model=model,
        slo_seconds=slo_seconds,
        count=count,
        left_out=left_out,
        first=first,
        seconds=last - first,
    )


def read_arrivals(path: Path) -> Replay:
    """Return the arrivals of a CSV that has a column of them, whatever else it has; raises InvalidTrace."""
    if _is_json(path):
        return Replay(tuple(arrival for _, arrival, *_ in _lines(path)))
    rows = csv_rows(path)
    number, names = next(rows)
    columns = _arrival_column(Where(str(path), number), names)
    place = names.index(columns.arrival)
    instants: list[float] = []
    for number, row in rows:
        where = Where(str(path), number)
        instants.append(_arrival(where, row, place, columns, instants[-1] if instants else None))
    if len(instants) < 2 or instants[0] == instants[-1]:
        raise InvalidTrace(Where(str(path)), "fewer than two instants", "give at least two that differ")
    return Replay(tuple(instants))


def kind_of(path: Path) -> str:
    """Return the kind of a request trace by its first line; raises InvalidTrace for columns of no known kind."""
    if _is_json(path):
        return "mooncake"
    number, names = next(csv_rows(path))
    return _columns(Where(str(path), number), names).kind


def _is_json(path: Path) -> bool:
    _, line = next(numbered_lines(path))
    return line.lstrip().startswith(b"{")


def _lines(path: Path) -> Iterator[_Line]:
    return _json_lines(path) if _is_json(path) else _csv_lines(path)


def _json_lines(path: Path) -> Iterator[_Line]:
    last = 0.0
    for number, line in numbered_lines(path):
        where = Where(str(path), number)
        try:
            request = _MOONCAKE.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InvalidTrace(
                where,
                f"no request of a Mooncake trace ({error})",
                "give timestamp, input_length and output_length on each line",
            ) from error
        arrival = _in_order(where, request.timestamp / 1000, last)
        last = arrival
        yield number, arrival, request.input_length, request.output_length, _blocks(request)


def _blocks(request: _Mooncake) -> tuple[PrefixBlock, ...]:
    found, left = [], request.input_length
    for key in request.hash_ids:
        if left <= 0:
            break
        found.append(PrefixBlock(key=f"block-{key}", tokens=min(MOONCAKE_BLOCK_TOKENS, left)))
        left -= MOONCAKE_BLOCK_TOKENS
    return tuple(found)


def _csv_lines(path: Path) -> Iterator[_Line]:
    rows = csv_rows(path)
    number, names = next(rows)
    columns = _columns(Where(str(path), number), names)
    arrival_at, prompt_at, output_at = (
        names.index(name) for name in (columns.arrival, columns.prompt, columns.output)
    )
    last: float | None = None
    least = 0 if columns.failed_have_no_output else 1
    for number, row in rows:
        where = Where(str(path), number)
        last = _arrival(where, row, arrival_at, columns, last)
        output = _tokens(where, row, output_at, columns.output, least=least)
        prompt = _tokens(where, row, prompt_at, columns.prompt, least=1 if output else 0)
        yield number, last, prompt, output, ()
    if last is None:
        raise InvalidTrace(
            Where(str(path), number), "a header and nothing below it", "give at least one line of data"
        )


def _columns(where: Where, names: Sequence[str]) -> Columns:
    for columns in KINDS:
        if set(columns.names) <= set(names):
            return columns
    folded = {name.casefold() for name in names}
    for columns in KINDS:
        if {name.casefold() for name in columns.names} <= folded:
            raise _wrong_names(where, names, "upper or lower case differs", columns)
    nearest = max(KINDS, key=lambda kind: len(set(kind.names) & set(names)))
    missing = [name for name in nearest.names if name not in names]
    raise _wrong_names(
        where, names, f"no column{'s' if len(missing) > 1 else ''} {', '.join(missing)}", nearest
    )


def _arrival_column(where: Where, names: Sequence[str]) -> Columns:
    # a column name alone may be that of two kinds; the others decide
    for columns in KINDS:
        if columns.arrival in names:
            return columns
    raise _wrong_names(where, names, "no column of arrivals", KINDS[0])


def _wrong_names(where: Where, names: Sequence[str], what: str, wanted: Columns) -> InvalidTrace:
    header = ",".join(wanted.names)
    if not any(letter.isalpha() for name in names for letter in name):
        return InvalidTrace(where, "data, and no column names above it", f"begin the file with: {header}")
    return InvalidTrace(
        where,
        f"{what} among: {listed(names)}",
        f"begin the file with: {header} (docs/reference/traces.md has the columns of other traces)",
    )


def _arrival(where: Where, row: Sequence[str], place: int, columns: Columns, last: float | None) -> float:
    text = field(where, row, place, columns.arrival)
    try:
        arrival = columns.instant(text)
    except (ValueError, OverflowError):
        raise InvalidTrace(
            where, f"{columns.arrival} is {text[:40]!r}, no time", f"give {columns.example}"
        ) from None
    return _in_order(where, arrival, last)


def _in_order(where: Where, arrival: float, last: float | None) -> float:
    if not math.isfinite(arrival) or arrival > MOST_SECONDS:
        raise InvalidTrace(where, f"an arrival at {arrival}", "give a finite number of seconds")
    if arrival < 0:
        raise InvalidTrace(where, f"an arrival at {arrival}, before the start", "give seconds from 0 on")
    if last is not None and arrival < last:
        raise InvalidTrace(
            where, f"an arrival at {arrival}, before that above it ({last})", "sort the lines by arrival"
        )
    return arrival


def _tokens(where: Where, row: Sequence[str], place: int, name: str, *, least: int) -> int:
    text = field(where, row, place, name)
    if not (text.isascii() and text.isdigit()):
        raise InvalidTrace(
            where, f"{name} is {text[:40]!r}, no whole number of tokens", "give one, such as 512"
        )
    if len(text) > 12 or int(text) > MOST_TOKENS:
        raise InvalidTrace(where, f"{name} is {text[:40]}", f"give at most {MOST_TOKENS} tokens")
    tokens = int(text)
    if tokens < least:
        raise InvalidTrace(where, f"{name} is {tokens}", f"give at least {least}, or leave the line out")
    return tokens
