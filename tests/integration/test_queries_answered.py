"""A question in, rows out: synchronous, asynchronous and as events."""

from pathlib import Path

from support.router import QUESTION, RIGHT, a_laptop, a_router


async def test_a_question_is_answered_with_rows(tmp_path: Path) -> None:
    async with a_router(a_laptop(tmp_path)) as router:
        response = await router.ask()
    answer = response.json()
    assert response.status_code == 200, answer
    assert answer["status"] == "Succeeded"
    assert answer["rows"] == [[3]]
    assert answer["question"] == QUESTION
