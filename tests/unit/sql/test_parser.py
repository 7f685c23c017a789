"""From a text to a tree; what may run is tested with the guard."""

import pytest

from hexflow_sql import StatementRefused, check
from hexflow_sql.parser import parse_query, unreadable


def rewritten(sql: str) -> str:
    return check(sql, dialect="sqlite", schema=None).text


def test_a_text_that_is_no_query_is_none() -> None:
    assert parse_query("DROP TABLE t", dialect="sqlite") is None
    assert parse_query("SELECT 1", dialect="sqlite") is not None


@pytest.mark.parametrize(
    "call",
    [
        "TO_CHAR(d, 'YYYY')",  # the parser's own words: CAST(d AS TEXT)
        "TRUNC(a, 2)",
        "BOOL_AND(a)",
        "DATE_ADD(d, 2)",
        "LOG10(a)",
        "IFNULL(a, 0)",
        "SUBSTR(b, 1, 2)",
        "GROUP_CONCAT(DISTINCT b)",
        "COUNT(*)",
        "JSON_EXTRACT(b, 'k')",
        "DATE(d, '-' || a || ' days')",
    ],
)
def test_a_function_stays_as_it_is_written(call: str) -> None:
    assert rewritten(f"SELECT {call} FROM t") == f"SELECT {call} FROM t"


@pytest.mark.parametrize("expression", ["+a IN ('1')", "-+a", "+ +a", "+(+a)", "- -a"])
def test_a_plus_that_takes_a_type_away_stays(expression: str) -> None:
    assert rewritten(f"SELECT {expression} FROM t").replace(" ", "") == f"SELECT{expression}FROMt".replace(
        " ", ""
    )


@pytest.mark.parametrize("sql", ["SELECT VAR_MAP(a) FROM t", "SELECT X_M_L_TABLE(a, 2) FROM t"])
def test_what_breaks_the_parser_is_refused(sql: str) -> None:
    with pytest.raises(StatementRefused) as caught:  # IndexError and TypeError of sqlglot's
        check(sql, dialect="postgres", schema=None)
    assert caught.value.reason == "Syntax"


def test_a_refusal_stays_itself() -> None:
    refusal = StatementRefused("Multiple", "There are 2 statements; send one.")
    assert unreadable(refusal) is refusal
    assert unreadable(RecursionError()).reason == "TooDeep"
