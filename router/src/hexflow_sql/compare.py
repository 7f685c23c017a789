"""When two results are the same answer.

Rows are a bag unless the statement orders them, and then those that tie still are; NULL is neither '' nor 0; numbers are one kind and
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

Order = tuple[int, ...]


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

    Order counts between two statements that both order their rows; ties may lie as they like.
    """
    groups: list[tuple[Result, Order | None, list[int]]] = []
    for index, sql, result in results:
        order = order_of(sql, dialect=dialect)
        for first, first_order, members in groups:
            if _agree(first, first_order, result, order):
                members.append(index)
                break
        else:
            groups.append((result, order, [index]))
    return tuple(
        sorted((tuple(members) for *_, members in groups), key=lambda group: (-len(group), group[0]))
    )


def order_of(sql: str, *, dialect: str) -> Order | None:
    """Name the columns, by their places, that a statement orders its own rows by; None where it does not order.

    Empty where it orders by something that it does not show.
    """
    tree = parse_query(sql, dialect=dialect)
    if not isinstance(tree, exp.Query) or tree.args.get("order") is None:
        return None
    places = [_place(key.this, tree.selects) for key in tree.args["order"].expressions]
    return tuple(place for place in places if place is not None) if None not in places else ()


def _place(key: exp.Expr, shown: Sequence[exp.Expr]) -> int | None:
    if any(select.is_star for select in shown):
        return None
    if isinstance(key, exp.Literal) and not key.is_string:
        return int(key.name) - 1 if key.name.isdecimal() and 0 < int(key.name) <= len(shown) else None
    named = key.name.casefold() if isinstance(key, exp.Column) and not key.table else None
    return next(
        (
            place
            for place, select in enumerate(shown)
            if select.unalias() == key or select.alias_or_name.casefold() == named
        ),
        None,
    )


def _agree(one: Result, one_order: Order | None, other: Result, other_order: Order | None) -> bool:
    if one_order is None or other_order is None:
        return same(one, other)
    if not one_order or one_order != other_order:
        return same(one, other, ordered=True)
    return same(one, other) and all(
        row[place] == twin[place]
        for row, twin in zip(_rows(one), _rows(other), strict=True)
        for place in one_order
    )


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
