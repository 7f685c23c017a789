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


@pytest.mark.parametrize(("objective", "demoted"), [("Attainment", True), ("P95", False)])
async def test_a_query_that_cannot_be_in_time_gives_way_under_attainment_only(
    tmp_path: Path, objective: str, demoted: bool
) -> None:
    laptop = a_laptop(tmp_path / "laptop", slo={"objective": objective})
    async with a_router(laptop, hard_cap_factor=1000.0) as router:
        in_time = (await router.ask()).json()
        late = (await router.ask(deadlineSeconds=0.1)).json()
        counted = await router.metric("hexflow_calls_demoted_total")
    calls = [call for stage in late["stages"] for call in stage["calls"]]
    assert late["status"] == "Succeeded"
    assert calls
    assert {call["demoted"] for call in calls} == {demoted}
    assert counted == (len(calls) if demoted else 0)
    assert not any(call["demoted"] for stage in in_time["stages"] for call in stage["calls"])


@pytest.mark.parametrize("drops", [True, False])
async def test_the_last_candidate_of_a_late_query_is_dropped_only_where_that_is_asked_for(
    tmp_path: Path, drops: bool
) -> None:
    laptop = a_laptop(tmp_path / "laptop", scheduling={"dropLateCandidates": drops})
    async with a_router(laptop) as router:
        for _ in range(3):
            router.router.succession.kernel.estimates.answered(WORKFLOW, 0.1)
        response = await router.ask()
        assert router.router.driver.outstanding == 0
    answer = response.json()
    calls = answer["stages"][1]["calls"]
    ends = sorted((call["status"], call["reason"]) for call in calls if call["status"] != "Done")
    assert (response.status_code, answer["rows"]) == (200, [[3]])
    assert ends == ([("Cancelled", "Dropped")] if drops else [])
    assert len(answer["candidates"]) == 4 - drops
    assert answer["skipped"] == (["candidate-generation: 1 of 4 candidates: it is late"] if drops else [])
