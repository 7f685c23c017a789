"""The rows a statement gave."""

import math
from dataclasses import dataclass

Cell = int | float | str | bytes | None
"""What a database may put into a cell; drivers map everything else to one of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Hold columns and rows as the database gave them, in its order."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    truncated: bool = False
    """Whether a limit cut rows or cells: the database had more than is here."""
    seconds: float = 0.0


def json_cell(value: Cell) -> int | float | str | None:
    """Turn a cell into what JSON can say: bytes become ``0x…``, infinities and NaN become texts."""
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def json_rows(result: Result) -> list[list[int | float | str | None]]:
    """Turn all rows into lists that JSON can say."""
    return [[json_cell(cell) for cell in row] for row in result.rows]
