"""What becomes of questions where not all can be in time: refused, or answered with less; only where it was asked for."""

from pathlib import Path

import pytest

from support.resources import MODEL
from support.router import WORKFLOW, RunningRouter, a_laptop, a_router


def teach(router: RunningRouter, seconds: float) -> None:
    """Make queries known to go on for so long after their first call."""
    for _ in range(3):
        router.router.succession.kernel.estimates.rested((WORKFLOW, "schema-linking", MODEL, 0), seconds)


async def test_a_question_that_cannot_be_in_time_is_refused_and_one_that_can_is_not(tmp_path: Path) -> None:
    async with a_router(a_laptop(tmp_path / "laptop", scheduling={"admission": "InTime"})) as router:
        teach(router, 100.0)
        refused = await router.ask(deadlineSeconds=20)
        admitted = await router.ask(deadlineSeconds=500)
        assert router.router.driver.outstanding == 0
    error = refused.json()["error"]
    assert (refused.status_code, error["type"]) == (429, "rate_limit_error")
    assert (error["code"], error["reason"]) == ("deadline_unreachable", "DeadlineUnreachable")
    seconds = int(refused.headers["retry-after"])
    assert 80 <= seconds < 120
    assert f"ask again in {seconds - 1}" in error["message"] or f"ask again in {seconds} " in error["message"]
    assert admitted.json()["status"] == "Succeeded"
    assert admitted.json()["skipped"] == []


async def test_without_being_asked_for_nothing_is_refused_or_left_out(tmp_path: Path) -> None:
    async with a_router(a_laptop(tmp_path / "laptop")) as router:
        teach(router, 1000.0)
        answer = (await router.ask()).json()
        assert await router.metric("hexflow_admissions_total") == 0
    assert (answer["status"], answer["skipped"]) == ("Succeeded", [])


@pytest.mark.parametrize(("expected", "candidates"), [(100.0, 2), (10_000.0, 1)])
async def test_a_degraded_query_has_fewer_candidates_and_says_so(
    tmp_path: Path, expected: float, candidates: int
) -> None:
    async with a_router(a_laptop(tmp_path / "laptop", scheduling={"admission": "Degrade"})) as router:
        teach(router, expected)
        answer = (await router.ask()).json()
    assert answer["status"] == "Succeeded"
    assert len(answer["candidates"]) == candidates
    generation = answer["stages"][1]
    assert len(generation["calls"]) == candidates
    note = f"{4 - candidates} of 4 candidates: it would be late with all"
    assert generation["skipped"] == [note]
    assert f"candidate-generation: {note}" in answer["skipped"]
