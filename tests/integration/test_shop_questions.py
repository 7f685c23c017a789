"""The sample's questions through the four stages, over the real database, with the answer book as the model."""

import hashlib
import os
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from hexflow_cli.sample import BOOK, SampleQuestion, build_shop, content_hash, sample_questions
from hexflow_emulator.book import AnswerBook
from hexflow_sql import (
    Database,
    Question,
    Result,
    ResultsCompared,
    StatementTried,
    Unanswerable,
    open_database,
)
from hexflow_sql.compare import same
from support.booked import Run, run_question

ROOT = Path(__file__).parents[2]
QUESTIONS = sample_questions()


@pytest.fixture(scope="module")
def book() -> AnswerBook:
    return AnswerBook.load(BOOK)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_shop(tmp_path_factory.mktemp("shop") / "shop.sqlite")


@pytest.fixture
async def database(path: Path) -> AsyncIterator[Database]:
    database = open_database(name="shop", dialect="sqlite", dsn=f"sqlite:///{path}", base_dir=path.parent)
    yield database
    await database.close()


async def ask(question: SampleQuestion, *, book: AnswerBook, database: Database, hint: bool = True) -> Run:
    asked = Question(
        text=question.text,
        evidence=question.evidence if hint else "",
        reference_time=QUESTIONS.reference_time,
    )
    return await run_question(asked, book=book, database=database)


@pytest.mark.parametrize("question", QUESTIONS.items, ids=lambda question: question.id)
async def test_a_question_ends_with_its_checked_rows(
    question: SampleQuestion, book: AnswerBook, database: Database
) -> None:
    run = await ask(question, book=book, database=database)

    assert run.answer.result is not None
    expected = Result(columns=question.columns, rows=question.rows)
    assert same(run.answer.result, expected, ordered=question.ordered)
    assert run.draft.skipped == ()


async def test_questions_need_no_hint_to_be_found_in_the_book(book: AnswerBook, database: Database) -> None:
    for question in QUESTIONS.items:
        run = await ask(question, book=book, database=database, hint=False)
        assert run.answer.result is not None
        assert same(run.answer.result, Result(columns=question.columns, rows=question.rows))


async def test_the_stages_have_work_to_do(book: AnswerBook, database: Database) -> None:
    tasks: Counter[str] = Counter()
    for question in QUESTIONS.items:
        run = await ask(question, book=book, database=database)
        tasks.update(set(run.model.tasks()))
        reasons = {event.reason for event in run.events if isinstance(event, StatementTried) and event.error}
        tasks.update(f"failed: {reason}" for reason in reasons)

    assert tasks["candidate"] == len(QUESTIONS.items)
    assert 8 <= tasks["correction"] <= 12
    assert tasks["choice"] >= 15
    assert len([name for name in tasks if name.startswith("failed: ")]) >= 3


async def test_unit_tests_overrule_three_candidates_that_agree_on_the_wrong_rows(
    book: AnswerBook, database: Database
) -> None:
    source = YAML(typ="safe", pure=True).load(ROOT / "examples" / "shop" / "questions" / "92-outvoted.yaml")

    run = await run_question(Question(text=source["question"]), book=book, database=database)

    (compared,) = [event for event in run.events if isinstance(event, ResultsCompared)]
    assert [len(cluster) for cluster in compared.clusters] == [3, 1]
    assert run.draft.chosen == compared.clusters[1][0]
    assert run.answer.result is not None
    assert run.answer.result.rows == tuple(tuple(row) for row in source["answer"]["rows"])


async def test_a_question_that_the_data_cannot_answer_is_unanswerable(
    book: AnswerBook, database: Database
) -> None:
    with pytest.raises(Unanswerable, match="no weather"):
        await run_question(
            Question(text="What will the weather be at the Lyon store tomorrow?"),
            book=book,
            database=database,
        )


async def test_an_order_to_delete_is_refused_and_changes_nothing(
    book: AnswerBook, database: Database, path: Path
) -> None:
    before = hashlib.sha256(path.read_bytes()).hexdigest()

    with pytest.raises(Unanswerable, match="may only be read"):
        await run_question(
            Question(text="Delete all customers who live in Berlin."), book=book, database=database
        )

    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


def test_the_build_script_gives_the_same_shop_whatever_the_environment(path: Path, tmp_path: Path) -> None:
    for seed, zone in (("0", "UTC"), ("4711", "Asia/Tokyo")):
        target = tmp_path / f"{seed}.sqlite"
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": "C"}
        subprocess.run(
            [sys.executable, str(ROOT / "examples" / "shop" / "build.py"), str(target)],
            env=environment,
            check=True,
        )
        assert content_hash(target) == content_hash(path)
