"""The answer book: up to date, complete, and with mistakes of the kinds that models make."""

import runpy
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from hexflow_cli.sample import BOOK, sample_questions
from hexflow_emulator.book import AnswerBook
from hexflow_sql import Result
from hexflow_sql.compare import cluster_statements, same
from hexflow_sql.prompt import TASKS

EXAMPLES = Path(__file__).parents[3] / "examples" / "shop"
SOURCES: list[Mapping[str, Any]] = [
    YAML(typ="safe", pure=True).load(path) for path in sorted((EXAMPLES / "questions").glob("*.yaml"))
]
ANSWERED = [source for source in SOURCES if "answer" in source]


@pytest.fixture(scope="module")
def book() -> AnswerBook:
    return AnswerBook.load(BOOK)


@pytest.fixture(scope="module")
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        yield connection


def run(connection: sqlite3.Connection, sql: str) -> Result | None:
    """Run a statement as a model wrote it; None when it fails, with two statements as with one."""
    try:
        cursor = connection.execute(sql)
    except (sqlite3.Error, sqlite3.Warning):
        return None
    return Result(columns=tuple(column[0] for column in cursor.description), rows=tuple(cursor.fetchall()))


def checked(source: Mapping[str, Any]) -> Result:
    answer = source["answer"]
    return Result(columns=tuple(answer["columns"]), rows=tuple(tuple(row) for row in answer["rows"]))


def first_results(connection: sqlite3.Connection, source: Mapping[str, Any]) -> list[tuple[int, Result]]:
    tried = [(place, run(connection, entry["sql"])) for place, entry in enumerate(source["candidates"])]
    return [(place, result) for place, result in tried if result is not None]


def test_the_package_s_files_are_written_from_the_question_files() -> None:
    written = runpy.run_path(str(EXAMPLES / "write_sample.py"))["sample_files"]()

    for name, text in written.items():
        assert BOOK.with_name(name).read_text("utf-8") == text, "run: python examples/shop/write_sample.py"


@pytest.mark.parametrize("task", [*TASKS, "chat"])
def test_the_book_answers_every_question_in_every_task(book: AnswerBook, task: str) -> None:
    for question in sample_questions().items:
        head = "" if task == "chat" else f"Task: {task}\n"
        tests = [
            entry["test"] for source in SOURCES if source["id"] == question.id for entry in source["tests"]
        ]
        for test in tests if task == "choice" else [""]:
            prompt = f"{head}Test: {test}\n\nQuestion: {question.text}"
            assert isinstance(book.answer(prompt, seed=0), str), (question.id, task)


def test_candidates_are_found_by_their_seed_and_differ(book: AnswerBook) -> None:
    for source in SOURCES:
        prompt = f"Task: candidate\nQuestion: {source['question']}"
        said = [book.answer(prompt, seed=seed) for seed in range(4)]

        assert len(set(said)) == 4
        for text, entry in zip(said, source["candidates"], strict=True):
            assert isinstance(text, str)
            assert (entry["sql"].strip() if "sql" in entry else "<unanswerable>") in text


def test_a_question_outside_the_book_has_no_answer(book: AnswerBook) -> None:
    assert not isinstance(book.answer("Task: candidate\nQuestion: How tall is the moon?", seed=0), str)


def test_candidates_explain_themselves_at_length(book: AnswerBook) -> None:
    for source in ANSWERED:
        for seed in range(4):
            text = book.answer(f"Task: candidate\nQuestion: {source['question']}", seed=seed)
            assert isinstance(text, str)
            assert 60 <= len(text.partition("```")[0].split()) <= 250, (source["id"], seed)


def test_every_correction_mends_a_statement_of_the_book() -> None:
    for source in SOURCES:
        statements = [
            entry.get("sql", "") for entry in [*source["candidates"], *source.get("corrections", [])]
        ]
        for correction in source.get("corrections", []):
            assert any(correction["when"] in sql for sql in statements), (source["id"], correction["when"])


def test_two_in_three_questions_need_no_correction(connection: sqlite3.Connection) -> None:
    asked = [source for source in ANSWERED if source.get("demo", True)]
    fine = [
        source
        for source in asked
        if len(first_results(connection, source)) == 4 and "corrections" not in source
    ]

    assert 0.60 <= len(fine) / len(asked) <= 0.75


def test_many_questions_have_a_statement_that_runs_and_is_wrong(connection: sqlite3.Connection) -> None:
    wrong = [
        source["id"]
        for source in ANSWERED
        if any(not same(result, checked(source)) for _, result in first_results(connection, source))
    ]

    assert 15 <= len(wrong) <= 25


def test_a_wrong_result_breaks_a_unit_test_and_a_right_one_breaks_none(
    connection: sqlite3.Connection,
) -> None:
    for source in ANSWERED:
        broken = {number for entry in source["tests"] for number in entry.get("brokenBy", [])}
        corrected = any(correction["when"] for correction in source.get("corrections", []))
        for place, result in first_results(connection, source):
            right = same(result, checked(source))
            assert right == (place + 1 not in broken) or (corrected and not result.rows), (
                source["id"],
                place + 1,
            )


def test_a_late_answer_is_right_too_with_one_candidate_or_by_the_largest_group(
    connection: sqlite3.Connection,
) -> None:
    """A late query has its first candidate alone, or no corrections and no unit tests."""
    for source in ANSWERED:
        results = dict(first_results(connection, source))
        statements = [
            (place, source["candidates"][place]["sql"], result) for place, result in results.items()
        ]
        largest = cluster_statements(statements, dialect="sqlite")[0]
        if source["id"] == "outvoted":
            assert not same(results[largest[0]], checked(source))
            continue
        assert same(results[0], checked(source)), source["id"]
        assert same(results[largest[0]], checked(source)), source["id"]
