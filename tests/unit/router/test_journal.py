import sqlite3
from pathlib import Path
from typing import Any

import pytest

from hexflow_router.journal import Entry, Journal, JournalError


def an_entry(query_id: str = "q1", **changes: Any) -> Entry:
    values: dict[str, Any] = {
        "query_id": query_id,
        "workflow": "shop-questions",
        "tenant": "analytics",
        "accepted_at": 1.0,
        "finished_at": None,
        "answer": "{}",
    }
    return Entry(**(values | changes))


async def test_a_finished_query_survives_a_restart(tmp_path: Path) -> None:
    journal = await Journal.open(tmp_path / "deep" / "journal.sqlite")
    await journal.accept(an_entry())
    await journal.finish("q1", finished_at=2.0, answer='{"rows": [[1]]}')
    await journal.close()
    journal = await Journal.open(tmp_path / "deep" / "journal.sqlite")
    assert await journal.find("q1") == an_entry(finished_at=2.0, answer='{"rows": [[1]]}')
    assert await journal.unfinished() == ()
    await journal.close()


async def test_an_unfinished_query_is_found_after_a_restart(tmp_path: Path) -> None:
    journal = await Journal.open(tmp_path / "journal.sqlite")
    await journal.accept(an_entry("q2", accepted_at=2.0))
    await journal.accept(an_entry("q1", accepted_at=1.0))
    await journal.close()
    journal = await Journal.open(tmp_path / "journal.sqlite")
    assert [entry.query_id for entry in await journal.unfinished()] == ["q1", "q2"]
    await journal.close()


async def test_the_first_answer_stands() -> None:
    journal = await Journal.open()
    await journal.accept(an_entry())
    await journal.finish("q1", finished_at=2.0, answer="first")
    await journal.finish("q1", finished_at=3.0, answer="second")
    found = await journal.find("q1")
    assert found is not None
    assert found.answer == "first"
    await journal.close()


async def test_the_oldest_finished_queries_are_forgotten_first_and_running_ones_never() -> None:
    journal = await Journal.open()
    for number in range(5):
        await journal.accept(an_entry(f"q{number}"))
        if number:
            await journal.finish(f"q{number}", finished_at=float(number), answer="{}")
    await journal.prune(keep=2)
    kept = [number for number in range(5) if await journal.find(f"q{number}") is not None]
    assert kept == [0, 3, 4]
    await journal.close()


async def test_a_file_that_is_no_journal_is_refused_with_a_remedy(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    path.write_text("not a database, though long enough to look like one " * 20)
    with pytest.raises(JournalError, match="name another file"):
        await Journal.open(path)


async def test_a_journal_of_another_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version=7")
    connection.close()
    with pytest.raises(JournalError, match="version 7"):
        await Journal.open(path)
