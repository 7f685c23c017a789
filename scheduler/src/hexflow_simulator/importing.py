"""A trace of any kind that is known, told by what the file begins with."""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from hexflow_simulator.arrivals import Arrivals
from hexflow_simulator.complaint import InvalidTrace, Where
from hexflow_simulator.eventimport import read_event_log
from hexflow_simulator.hexgenfile import read_hexgen
from hexflow_simulator.lines import numbered_lines
from hexflow_simulator.query import SimulatedQuery
from hexflow_simulator.requestfile import read_requests
from hexflow_simulator.tracefile import read_trace


class Trace(Protocol):
    """Queries that can be gone through any number of times, in the order they arrive."""

    @property
    def count(self) -> int:
        """How many."""
        ...

    @property
    def seconds(self) -> float:
        """From the first arrival to the last."""
        ...

    def __iter__(self) -> Iterator[SimulatedQuery]:
        """Yield them."""
        ...


class Listed:
    """Queries held in memory."""

    def __init__(self, queries: Iterator[SimulatedQuery]) -> None:
        self._queries = tuple(queries)

    @property
    def count(self) -> int:
        """How many."""
        return len(self._queries)

    @property
    def seconds(self) -> float:
        """From the first arrival to the last."""
        return self._queries[-1].arrival - self._queries[0].arrival if self._queries else 0.0

    def __iter__(self) -> Iterator[SimulatedQuery]:
        """Yield them."""
        return iter(self._queries)


def open_trace(
    path: Path,
    *,
    model: str = "model",
    slo_seconds: float | None = None,
    arrivals: Arrivals | None = None,
    seed: int = 1,
) -> Trace:
    """Return the trace in a file: HexFlow's own, a router's event log, a request CSV or JSONL, or HexGen-Flow's JSON.

    ``model`` and ``slo_seconds`` are for files that do not say them. ``arrivals`` is for HexGen-Flow's, which have none.
    Raises InvalidTrace with file, line and what to do.
    """
    _, line = next(numbered_lines(path))
    head = line.lstrip()[:4096]
    if head.startswith(b"["):
        if arrivals is None:
            raise InvalidTrace(
                Where(str(path)), "a trace without arrivals", "say how often its queries come (a rate)"
            )
        queries = read_hexgen(path).queries(arrivals, seed, model=model)
        return Listed(queries)
    if head.startswith(b"{"):
        if b'"hexflowTrace"' in head:
            return read_trace(path)
        if b'"input"' in head and b'"decisions"' in line:
            return read_event_log(path)
        if b'"input_length"' in head:
            return read_requests(path, model=model, slo_seconds=slo_seconds)
        return read_trace(path)  # says what is missing
    return read_requests(path, model=model, slo_seconds=slo_seconds)
