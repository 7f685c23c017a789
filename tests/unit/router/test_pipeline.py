import pytest

from hexflow_router.pipeline import statement_result
from hexflow_sql import Column, Schema, StatementRefused, StatementTried, Table
from hexflow_sql.guard import check


def tried(*, error: str | None = None, reason: str | None = None) -> StatementTried:
    return StatementTried(
        stage="s", candidate=0, round=0, sql="SELECT 1", rows=None, truncated=False, error=error, reason=reason,
        seconds=0.0, reused=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "result"),
    [("TimedOut", "TimedOut"), ("NotAQuery", "Refused"), ("UnknownTable", "Failed"), ("Failed", "Failed")],
)
def test_a_statement_without_rows_is_counted_by_why(reason: str, result: str) -> None:
    assert statement_result(tried(error="no", reason=reason)) == result


def test_a_statement_with_rows_succeeded() -> None:
    assert statement_result(tried()) == "Succeeded"


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE t",
        "SELECT 1; SELECT 2",
        "SELECT load_extension('x')",
        "WITH a AS (DELETE FROM t) SELECT 1",
    ],
)
def test_what_the_guard_takes_for_an_attack_is_counted_as_refused(sql: str) -> None:
    schema = Schema(dialect="sqlite", tables=(Table(name="t", columns=(Column(name="a"),)),))
    with pytest.raises(StatementRefused) as refused:
        check(sql, dialect="sqlite", schema=schema)
    assert statement_result(tried(error=str(refused.value), reason=refused.value.reason)) == "Refused"
