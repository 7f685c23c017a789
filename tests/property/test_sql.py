"""What must hold of SQL for all inputs, not for the ones somebody thought of."""

import sqlite3
from contextlib import closing, suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hexflow_sql import Cell, Column, StatementRefused, Table, check, render
from hexflow_sql.compare import same
from hexflow_sql.extract import extract, read_json
from hexflow_sql.schema import literal
from support.attacks import COULD_SPY, COULD_WRITE, NOT_PLAIN
from support.sql import a_result, a_schema, a_table

TEXT = st.text(max_size=60)
FRAGMENTS = st.sampled_from(
    [
        *(sql for sql in (COULD_WRITE | COULD_SPY | NOT_PLAIN).values() if len(sql) < 200),
        "SELECT a FROM t", "```sql\n", "```", "<think>", "</think>", "<answer>", "</answer>", ";", "--", "/*", "*/", "'", '"',
        "(", ")", '{"sql": "', '"}', "\n", " ", "WITH x AS (", "UNION", "\\", "`", "]", "$$", "E'", "\ufeff", "\u202e",
    ]
)  # fmt: skip
MIXTURES = st.lists(st.one_of(FRAGMENTS, TEXT), max_size=8).map("".join)
SCHEMA = a_schema(a_table("t", "a", "b"))
CELLS: st.SearchStrategy[Cell] = st.one_of(
    st.none(),
    st.integers(-(2**62), 2**62),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.binary(max_size=4),
)
TABLES = st.lists(st.tuples(CELLS, CELLS), max_size=6)
NAMES = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1, max_size=12)


def rewritten(sql: str) -> str | None:
    try:
        return check(sql, dialect="sqlite", schema=SCHEMA).text
    except StatementRefused:
        return None


@given(MIXTURES)
@settings(max_examples=300, deadline=None)
def test_the_guard_refuses_or_returns_a_text_that_it_would_let_through_again(sql: str) -> None:
    text = rewritten(sql)
    if text is not None:
        assert rewritten(text) == text


@given(MIXTURES)
@settings(max_examples=200, deadline=None)
def test_what_the_guard_lets_through_changes_nothing(sql: str) -> None:
    text = rewritten(sql)
    if text is None:
        return
    connection = sqlite3.connect(":memory:")
    connection.executescript("CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 2);")
    before = list(connection.iterdump())
    with suppress(sqlite3.Error):
        connection.execute(text).fetchmany(10)
    assert list(connection.iterdump()) == before
    connection.close()


@given(MIXTURES, st.sampled_from(["stop", "length"]))
@settings(max_examples=300, deadline=None)
def test_extraction_says_exactly_one_thing_of_any_text(text: str, finish_reason: str) -> None:
    found = extract(text, dialect="sqlite", finish_reason=finish_reason)
    assert sum(part is not None for part in (found.sql, found.refusal, found.problem)) == 1
    read_json(text)


@given(
    st.sampled_from(
        ["SELECT a FROM t", "SELECT a -- x\nFROM t", "WITH c AS (SELECT 1 AS x)\nSELECT x FROM c"]
    ),
    TEXT,
    TEXT,
)
@settings(max_examples=150, deadline=None)
def test_a_fenced_statement_is_found_whatever_stands_around_it(sql: str, before: str, after: str) -> None:
    for mark in ("`", "~", "<", "{"):
        before, after = before.replace(mark, ""), after.replace(mark, "")
    assert extract(f"{before}\n```sql\n{sql}\n```\n{after}", dialect="sqlite").sql == sql


@given(TABLES, st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_results_are_bags(rows: list[tuple[Cell, ...]], random: "st.DataObject") -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert same(a_result(*rows), a_result(*shuffled))


@given(TABLES, TABLES)
@settings(max_examples=150, deadline=None)
def test_being_the_same_goes_both_ways(one: list[tuple[Cell, ...]], other: list[tuple[Cell, ...]]) -> None:
    assert same(a_result(*one), a_result(*other)) == same(a_result(*other), a_result(*one))
    assert same(a_result(*one), a_result(*one))


@given(
    st.lists(NAMES, min_size=1, max_size=4, unique_by=lambda name: name.casefold()),
    NAMES,
    st.lists(TEXT, max_size=2),
)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_a_rendered_schema_is_ddl_with_the_very_names_whatever_they_hold(
    columns: list[str], name: str, values: list[str]
) -> None:
    table = Table(
        name=name,
        columns=tuple(
            Column(name=column, type="TEXT", samples=tuple(map(literal, values))) for column in columns
        ),
    )
    quoted = name.replace('"', '""')
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute(render(a_schema(table)))
        except sqlite3.OperationalError as error:
            if "duplicate column name" in str(error) or "reserved for internal use" in str(error):
                return  # SQLite folds fewer letters than Python does
            raise
        assert [row[1] for row in connection.execute(f'PRAGMA table_info("{quoted}")')] == columns


EXPRESSIONS = st.recursive(
    st.sampled_from(["a", "b", "t.a", "1", "2.5", "'x'", "'it''s'", "NULL", "-3", "x'61'", "b || 'y'"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "%", "||", "=", "<>", "<", ">=", "IS", "IS NOT", "AND", "OR", "&", "<<"]), inner).map(
            lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
        ),
        st.tuples(st.sampled_from(["NOT", "-", "+", "~"]), inner).map(lambda parts: f"({parts[0]} {parts[1]})"),
        st.tuples(st.sampled_from(["abs", "length", "upper", "typeof", "hex", "trim", "quote", "round", "sum", "count", "group_concat", "max", "total"]), inner).map(
            lambda parts: f"{parts[0]}({parts[1]})" if parts[0] not in {"sum", "count", "group_concat", "max", "total"} else f"(SELECT {parts[0]}(z.a) FROM t AS z WHERE {parts[1]})"
        ),
        st.tuples(inner, inner).map(lambda parts: f"coalesce({parts[0]}, {parts[1]})"),
        st.tuples(inner, inner, inner).map(lambda parts: f"CASE WHEN {parts[0]} THEN {parts[1]} ELSE {parts[2]} END"),
        st.tuples(inner, inner).map(lambda parts: f"({parts[0]} IN ({parts[1]}, 1, NULL))"),
        st.tuples(inner, inner, inner).map(lambda parts: f"({parts[0]} BETWEEN {parts[1]} AND {parts[2]})"),
        st.tuples(inner, st.sampled_from(["INTEGER", "REAL", "TEXT"])).map(lambda parts: f"CAST({parts[0]} AS {parts[1]})"),
        inner.map(lambda part: f"({part} LIKE '%x_')"),
        inner.map(lambda part: f"({part} COLLATE NOCASE = 'X')"),
        inner.map(lambda part: f"({part} IS NULL)"),
    ),
    max_leaves=6,
)  # fmt: skip


@given(
    EXPRESSIONS,
    EXPRESSIONS,
    st.sampled_from(["", " ORDER BY 1, 2", " ORDER BY 2 DESC, 1 LIMIT 3", " GROUP BY 1, 2"]),
)
@settings(max_examples=300, deadline=None)
def test_the_rewritten_statement_gives_the_same_rows(one: str, other: str, tail: str) -> None:
    sql = f"SELECT {one} AS p, {other} AS q FROM t WHERE {other} OR a{tail}"
    connection = sqlite3.connect(":memory:")
    connection.executescript(
        "CREATE TABLE t (a INT, b TEXT); INSERT INTO t VALUES (1, 'x'), (2, NULL), (0, 'Xy'), (NULL, ''), (-5, '7');"
    )
    try:
        expected = connection.execute(sql).fetchall()
    except sqlite3.Error:
        expected = None
    try:
        text = check(sql, dialect="sqlite", schema=SCHEMA).text
    except StatementRefused as refused:
        pytest.fail(f"{sql}: {refused}")
    if expected is None:
        with pytest.raises(sqlite3.Error):
            connection.execute(text).fetchall()
    else:
        rows = connection.execute(text).fetchall()
        assert same(a_result(*rows), a_result(*expected)), text
    connection.close()
