"""The checked answers: right by SQL, and right again without it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hexflow_api import load_resources
from hexflow_cli.sample import SampleQuestion, sample_questions
from hexflow_sql import Result, check
from hexflow_sql.compare import same
from support.shop import ANSWERS, Shop

QUESTIONS = sample_questions().items
LAPTOP = Path(__file__).parents[3] / "examples" / "laptop"


@pytest.fixture(scope="module")
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        yield connection


def checked(question: SampleQuestion) -> Result:
    return Result(columns=question.columns, rows=question.rows)


def test_there_are_thirty_different_questions() -> None:
    assert len({question.id for question in QUESTIONS}) == 30
    assert len({question.text for question in QUESTIONS}) == 30


def test_every_question_is_worked_out_without_sql() -> None:
    assert {question.id for question in QUESTIONS} == ANSWERS.keys()


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_an_answer_is_what_plain_python_works_out(question: SampleQuestion, shop: Shop) -> None:
    rows = tuple(ANSWERS[question.id](shop))

    assert same(Result(columns=question.columns, rows=rows), checked(question), ordered=question.ordered)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_an_answer_is_what_its_statement_gives(
    question: SampleQuestion, connection: sqlite3.Connection
) -> None:
    statement = check(question.sql, dialect="sqlite", schema=None)
    cursor = connection.execute(statement.text)
    columns = tuple(column[0] for column in cursor.description)

    assert columns == question.columns
    assert same(
        Result(columns=columns, rows=tuple(cursor.fetchall())), checked(question), ordered=question.ordered
    )


def test_those_who_ask_are_the_tenants_of_the_laptop_s_workflow() -> None:
    (workflow,) = load_resources([LAPTOP]).workflows
    tenants = {tenant.name for tenant in workflow.spec.tenants}

    assert {question.tenant for question in QUESTIONS} == tenants


def test_some_questions_are_hard_and_some_come_with_a_hint() -> None:
    assert sum("hard" in question.tags for question in QUESTIONS) >= 5
    assert 5 <= sum(bool(question.evidence) for question in QUESTIONS) <= 25
