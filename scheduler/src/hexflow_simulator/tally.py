"""The results of very many queries in little memory: five numbers each, in order of arrival, for ``measure`` to read."""

from array import array
from collections.abc import Iterator, Sequence
from math import inf, isnan, nan
from typing import overload

from hexflow_simulator.result import QueryResult


class Tally(Sequence[QueryResult]):
    """Keep of each query its arrival, latency, SLO, SLO base and calls; read as results without names or reasons.

    Queries are added as they end and are in order of arrival once ``sort`` was called.
    """

    __slots__ = ("_columns",)

    def __init__(self, columns: Sequence["array[float]"] | None = None) -> None:
        self._columns = tuple(columns or (array("d") for _ in range(5)))

    def add(self, query: QueryResult) -> None:
        """Add what became of a query."""
        latency = query.latency
        values = (
            query.arrival,
            inf if latency is None else latency,
            _or_nan(query.slo_seconds),
            _or_nan(query.base_seconds),
            float(query.calls),
        )
        for column, value in zip(self._columns, values, strict=True):
            column.append(value)

    def sort(self) -> None:
        """Put the queries in order of arrival."""
        arrivals = self._columns[0]
        order = sorted(range(len(arrivals)), key=arrivals.__getitem__)
        self._columns = tuple(array("d", map(column.__getitem__, order)) for column in self._columns)

    def __len__(self) -> int:
        return len(self._columns[0])

    @overload
    def __getitem__(self, place: int) -> QueryResult: ...
    @overload
    def __getitem__(self, place: slice) -> "Tally": ...
    def __getitem__(self, place: int | slice) -> "QueryResult | Tally":
        if isinstance(place, slice):
            return Tally([column[place] for column in self._columns])
        return _result(*(column[place] for column in self._columns))

    def __iter__(self) -> Iterator[QueryResult]:
        return map(_result, *self._columns)


def _result(arrival: float, latency: float, slo: float, base: float, calls: float) -> QueryResult:
    return QueryResult(
        query_id="",
        workflow="",
        tenant="",
        arrival=arrival,
        finished=None if latency == inf else arrival + latency,
        slo_seconds=None if isnan(slo) else slo,
        base_seconds=None if isnan(base) else base,
        calls=int(calls),
    )


def _or_nan(value: float | None) -> float:
    return nan if value is None else value
