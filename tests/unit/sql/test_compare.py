"""When two results are the same answer."""

import pytest

from hexflow_sql import Cell
from hexflow_sql.compare import cluster_statements, key, order_of, same
from support.sql import a_result


def test_rows_are_a_bag() -> None:
    assert same(a_result((1,), (2,), (2,)), a_result((2,), (1,), (2,)))
    assert not same(a_result((1,), (2,), (2,)), a_result((2,), (1,), (1,)))


def test_order_counts_where_it_is_asked_for() -> None:
    assert not same(a_result((1,), (2,)), a_result((2,), (1,)), ordered=True)
    assert same(a_result((1,), (2,)), a_result((1,), (2,)), ordered=True)


@pytest.mark.parametrize(
    ("one", "other"),
    [(None, ""), (None, 0), ("", 0), (0, "0"), ("a", "A"), ("a", "a "), (1, "1"), (b"a", "a"), (1.0, 1.001)],
)
def test_different_kinds_of_nothing_and_something_differ(one: Cell, other: Cell) -> None:
    assert key(one) != key(other)
    assert not same(a_result((one,)), a_result((other,)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (0.1 + 0.2, 0.3),
        (1 / 3, 0.333333333),
        (-0.0, 0),
        (True, 1),
        (1e20, 10**20),
        (12345678.000001, 12345678.0000012),
        (0.1234567891, 0.1234567892),
        (float("inf"), float("inf")),
        (float("nan"), float("nan")),
    ],
)
def test_numbers_are_one_kind_and_rounded(one: Cell, other: Cell) -> None:
    assert key(one) == key(other)


def test_cents_count_however_large_a_total_is() -> None:
    assert key(1234567.89) != key(1234567.91)
    assert key(98765432109.5) != key(98765432109.75)
    assert key(0.1 + 0.7 + 1234567.2) == key(1234568.0)
    assert key(1e-300) != key(2e-300)
    assert key(2.9999999999999996) == key(3)


def test_large_whole_numbers_stay_exact() -> None:
    assert key(123456789) != key(123456788)
    assert key(2**60) != key(2**60 + 1)


def test_names_of_columns_do_not_count_but_their_number_does() -> None:
    assert same(a_result((1, 2)), a_result((1, 2)))
    assert not same(a_result((1, 2)), a_result((1,)))


def test_the_order_of_columns_counts() -> None:
    assert not same(a_result((1, 2)), a_result((2, 1)))


def test_a_truncated_result_never_equals_a_complete_one() -> None:
    assert not same(a_result((1,), truncated=True), a_result((1,)))
    assert not same(a_result((1,)), a_result((1,), truncated=True))
    assert same(a_result((1,), truncated=True), a_result((1,), truncated=True))


def test_two_empty_results_are_the_same() -> None:
    assert same(a_result(), a_result())


def test_larger_groups_come_first_and_then_the_earlier() -> None:
    results = [
        (0, "SELECT 1", a_result((1,))),
        (1, "SELECT 2", a_result((2,))),
        (2, "SELECT 2.0", a_result((2.0,))),
    ]
    assert cluster_statements(results, dialect="sqlite") == ((1, 2), (0,))
    assert cluster_statements(results[:2], dialect="sqlite") == ((0,), (1,))


def test_order_counts_between_statements_that_both_order() -> None:
    up, down, free = "SELECT a FROM t ORDER BY a", "SELECT a FROM t ORDER BY a DESC", "SELECT a FROM t"
    one, other = a_result((1,), (2,)), a_result((2,), (1,))
    assert len(cluster_statements([(0, up, one), (1, down, other)], dialect="sqlite")) == 2
    assert len(cluster_statements([(0, up, one), (1, free, other)], dialect="sqlite")) == 1


def test_rows_that_tie_may_lie_as_they_like() -> None:
    most = "SELECT city, count(*) AS n FROM t GROUP BY city ORDER BY n DESC"
    again = "SELECT x.city, count(*) FROM t AS x GROUP BY 1 ORDER BY 2 DESC"
    one = a_result(("Berlin", 3), ("Paris", 2), ("Rome", 2))
    tied = a_result(("Berlin", 3), ("Rome", 2), ("Paris", 2))
    wrong = a_result(("Paris", 2), ("Rome", 2), ("Berlin", 3))
    results = [(0, most, one), (1, again, tied), (2, again, wrong)]
    assert cluster_statements(results, dialect="sqlite") == ((0, 1), (2,))


def test_order_by_what_is_not_shown_counts_row_by_row() -> None:
    hidden = "SELECT city FROM t ORDER BY population"
    one, other = a_result(("Berlin",), ("Paris",)), a_result(("Paris",), ("Berlin",))
    assert len(cluster_statements([(0, hidden, one), (1, hidden, other)], dialect="sqlite")) == 2


@pytest.mark.parametrize(
    ("sql", "order"),
    [
        ("SELECT a FROM t ORDER BY a LIMIT 1", (0,)),
        ("SELECT 1 UNION SELECT 2 ORDER BY 1", (0,)),
        ("SELECT b, a AS x FROM t ORDER BY X DESC, t.b", ()),  # t.b is not written as b is
        ("SELECT t.b, a AS x FROM t ORDER BY X DESC, t.b", (1, 0)),
        ("SELECT b, max(a) FROM t GROUP BY b ORDER BY max(a)", (1,)),
        ("SELECT * FROM t ORDER BY 1", ()),
        ("SELECT a FROM t ORDER BY 7", ()),
        ("SELECT a FROM (SELECT a FROM t ORDER BY a)", None),
        ("SELECT rank() OVER (ORDER BY a) FROM t", None),
        ("VALUES (2), (1)", None),
        ("no statement", None),
    ],
)
def test_only_the_outermost_order_counts(sql: str, order: tuple[int, ...] | None) -> None:
    assert order_of(sql, dialect="sqlite") == order
