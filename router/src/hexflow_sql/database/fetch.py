"""Fetching rows under caps, cell by cell, in the driver's own thread."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import CursorResult

from hexflow_sql.errors import StatementFailed
from hexflow_sql.limits import Limits
from hexflow_sql.result import Cell, Result

CHUNK_ROWS = 64
"""Rows asked of the driver's thread at a time."""


class Meter:
    """Cut cells and count bytes while rows are read; a row factory for ``sqlite3`` and its kin.

    Once ``full`` it hands out empty rows, so that what a driver still reads ahead costs nothing.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._bytes = 0
        self._rows = 0
        self.cut = False
        """Whether a cell was cut."""
        self.full = False
        """Whether the byte or the row limit is reached, so that the rows after it do not count."""

    def __call__(self, _cursor: object, row: tuple[Any, ...]) -> tuple[Cell, ...]:
        """Take a row."""
        if self.full or self._rows >= self._limits.rows:
            self.full = True
            return ()
        cells = tuple(self._cell(value) for value in row)
        size = sum(len(cell) if isinstance(cell, str | bytes) else 8 for cell in cells)
        if self._bytes + size > self._limits.bytes:
            self.full = True
            return ()
        self._bytes += size
        self._rows += 1
        return cells

    def _cell(self, value: Any) -> Cell:
        most = self._limits.cell_bytes
        if isinstance(value, str) and len(value) * 4 > most:
            encoded = value.encode()
            if len(encoded) > most:
                self.cut = True
                return encoded[: max(0, most - 3)].decode(errors="ignore") + "…"
        elif isinstance(value, bytes) and len(value) > most:
            self.cut = True
            return value[:most]
        return plain(value)


def plain(value: Any) -> Cell:
    """Turn what a driver gives into a cell."""
    if value is None or isinstance(value, int | float | str | bytes):
        return value
    return str(value)


def fetch(cursor: CursorResult[Any], meter: Meter | None, *, most_columns: int) -> Result:
    """Read the rows of a statement until its end or until the meter is full.

    Raises StatementFailed (TooManyColumns).
    """
    columns = tuple(str(name) for name in cursor.keys())  # noqa: SIM118 - a cursor is no mapping
    if len(columns) > most_columns:
        raise StatementFailed(
            "TooManyColumns",
            f"The statement gives {len(columns)} columns; {most_columns} is the limit: name fewer.",
        )
    read: Callable[[], list[tuple[Any, ...]]] = lambda: [tuple(row) for row in cursor.fetchmany(CHUNK_ROWS)]  # noqa: E731
    rows: list[tuple[Cell, ...]] = []
    while chunk := read():
        rows.extend(row for row in chunk if row or not columns)
        if meter is not None and meter.full:
            break
    return Result(
        columns=columns, rows=tuple(rows), truncated=meter is not None and (meter.full or meter.cut)
    )
