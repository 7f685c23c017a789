"""When two results are the same answer.

Rows are a bag unless the statement orders them; NULL is neither '' nor 0; numbers are one kind and
rounded; a truncated result never equals a complete one.
"""

import math
from collections import Counter
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal

from sqlglot import exp

from hexflow_sql.parser import parse_query
from hexflow_sql.result import Cell, Result

DIGITS = 9
"""Significant digits that two numbers must share: sums in another order differ in the sixteenth."""

CENTS = -2
"""Decimal places that count however large a number is: totals are money."""

Key = tuple[object, ...]


def same(one: Result, other: Result, *, ordered: bool = False) -> bool:
    """Say whether two results are one answer, rows in order only where ``ordered``. Column names do not count."""
    if one.truncated or other.truncated:
        return one.truncated and other.truncated and _rows(one) == _rows(other)
    if len(one.rows) != len(other.rows) or (one.rows and len(one.columns) != len(other.columns)):
        return False
    if ordered:
        return _rows(one) == _rows(other)
    return Counter(_rows(one)) == Counter(_rows(other))


def cluster_statements(
    results: Sequence[tuple[int, str, Result]], *, dialect: str
) -> tuple[tuple[int, ...], ...]:
    """Group statements (index, SQL, result) whose results are the same: larger groups first, then the earlier.

    Order counts between two statements that both order their rows.
    """
    groups: list[tuple[Result, bool, list[int]]] = []
    for index, sql, result in results:
        ordered = is_ordered(sql, dialect=dialect)
        for first, first_ordered, members in groups:
            if same(first, result, ordered=ordered and first_ordered):
                members.append(index)
                break
        else:
            groups.append((result, ordered, [index]))
    return tuple(
        sorted((tuple(members) for *_, members in groups), key=lambda group: (-len(group), group[0]))
    )


def is_ordered(sql: str, *, dialect: str) -> bool:
    """Say whether a statement orders its own rows."""
    tree = parse_query(sql, dialect=dialect)
    return isinstance(tree, exp.Query) and tree.args.get("order") is not None


def _rows(result: Result) -> list[Key]:
    return [tuple(key(cell) for cell in row) for row in result.rows]


def key(cell: Cell) -> object:
    """Turn a cell into what is compared: its kind and its value, numbers rounded to ``DIGITS``.

    A boolean is the number it is to the database. Texts are compared as they are.
    """
    if cell is None:
        return None
    if isinstance(cell, int | float):
        return ("number", _rounded(cell))
    if isinstance(cell, bytes):
        return ("bytes", cell)
    return ("text", cell)


def _rounded(number: int | float) -> object:
    if isinstance(number, float) and not math.isfinite(number):
        return str(number)
    exact = Decimal(number)
    if exact == 0:
        return Decimal(0)
    if exact == exact.to_integral_value():
        return exact.normalize()  # counts and keys stay exact
    place = Decimal(1).scaleb(min(exact.adjusted() - DIGITS + 1, CENTS))
    return exact.quantize(place, rounding=ROUND_HALF_EVEN).normalize()
