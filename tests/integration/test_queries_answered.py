"""A question in, rows out: synchronous, asynchronous and as events."""

import asyncio
import json
from pathlib import Path
from typing import Any

from support.router import (
    QUESTION,
    RIGHT,
    UNKNOWN_QUESTION,
    WORKFLOW,
    WRONG_COLUMN,
    WRONG_ROWS,
    a_laptop,
    a_router,
    an_entry,
    server_events,
)
from support.waiting import eventually

PATH = f"/v1/workflows/{WORKFLOW}/queries"


async def test_a_question_is_answered_with_its_rows_stages_and_calls(tmp_path: Path) -> None:
    laptop = a_laptop(tmp_path / "laptop", an_entry(candidates=(WRONG_COLUMN, RIGHT, WRONG_ROWS, RIGHT)))
    async with a_router(laptop) as router:
        response = await router.ask(headers={"x-request-id": "mine"})
    answer = response.json()
    assert response.status_code == 200, answer
    assert response.headers["x-request-id"] == "mine"
    assert response.headers["x-hexflow-query"] == answer["id"]
    assert (answer["status"], answer["rows"], answer["columns"]) == ("Succeeded", [[3]], ["COUNT(*)"])
    assert answer["sql"] == RIGHT
    assert answer["deadlineMet"] is True
    assert answer["policy"] == "LeastHarm"
    assert [candidate["rounds"] for candidate in answer["candidates"]] == [1, 0, 0, 0]
    assert [candidate["votes"] for candidate in answer["candidates"]] == [3, 3, 1, 3]
    kinds = ["SchemaLinking", "CandidateGeneration", "SelfCorrection", "Evaluation"]
    assert [stage["kind"] for stage in answer["stages"]] == kinds
    assert {stage["status"] for stage in answer["stages"]} == {"Done"}
    calls = [call for stage in answer["stages"] for call in stage["calls"]]
    assert [len(stage["calls"]) for stage in answer["stages"]] == [1, 4, 1, 2]
    for call in calls:
        assert call["instance"] in {"a100-0", "l40s-1"}
        assert call["status"] == "Done"
        assert call["tokenSource"] == "usage"
        assert call["promptTokens"] > 0
        assert call["outputTokens"] > 0
        assert call["seconds"] > 0
        assert call["queuedSeconds"] >= 0
        assert call["budgetSeconds"] > 0
        assert call["urgency"] is not None
        assert call["priority"] is not None
        assert call["attempts"] == 1
    assert answer["tokens"]["output"] == sum(call["outputTokens"] for call in calls)
    assert sum(stage["statements"] for stage in answer["stages"]) >= 3


async def test_a_question_outside_the_book_ends_with_the_honest_sentence(tmp_path: Path) -> None:
    async with a_router(a_laptop(tmp_path / "laptop")) as router:
        response = await router.ask(UNKNOWN_QUESTION)
    answer = response.json()
    assert response.status_code == 422
    assert (answer["status"], answer["reason"]) == ("Failed", "NoStatement")
    assert "knows only the questions of its answer book" in answer["error"]["message"]
    assert answer["error"]["code"] == "no_statement"
    assert answer["rows"] is None


async def test_an_answer_holds_no_more_rows_than_the_router_was_told_and_says_so(tmp_path: Path) -> None:
    entry = an_entry(candidates=["SELECT id FROM customers ORDER BY id"])
    async with a_router(a_laptop(tmp_path / "laptop", entry), max_rows=2) as router:
        answer = (await router.ask()).json()
    assert (answer["rows"], answer["truncated"]) == ([[1], [2]], True)


async def test_an_async_question_is_accepted_polled_and_answered(tmp_path: Path) -> None:
    async with a_router(a_laptop(tmp_path / "laptop")) as router:
        accepted = await router.ask(headers={"prefer": "respond-async"})
        assert accepted.status_code == 202
        assert accepted.headers["preference-applied"] == "respond-async"
        address = accepted.headers["location"]
        assert accepted.json()["status"] == "Running"

        async def answered() -> bool:
            return bool((await router.client.get(address)).json()["status"] == "Succeeded")

        await eventually(answered)
        read = await router.client.get(address)
    assert read.status_code == 200
    assert read.json()["rows"] == [[3]]


async def test_events_come_while_the_query_runs_and_end_with_the_answer(tmp_path: Path) -> None:
    async with (
        a_router(a_laptop(tmp_path / "laptop"), time_scale=20) as router,
        router.client.stream("POST", PATH, json={"question": QUESTION, "stream": True}) as response,
    ):
        assert response.headers["content-type"].startswith("text/event-stream")
        events = [(event, asyncio.get_running_loop().time()) async for event in server_events(response)]
    names = [event["event"] for event, _ in events]
    assert names[0] == "query.accepted"
    assert names[-1] == "query.finished"
    for name in ("stage.started", "call.placed", "call.finished", "statement.tried", "stage.finished"):
        assert name in names
    assert events[-1][0]["data"]["rows"] == [[3]]
    placed = next(event["data"] for event, _ in events if event["event"] == "call.placed")
    assert placed["stage"] == "schema-linking"
    assert placed["instance"] in {"a100-0", "l40s-1"}
    spread = events[-1][1] - events[0][1]
    assert spread > 0.02, "the events came all at once"


async def test_events_are_resumed_after_the_last_one_seen(tmp_path: Path) -> None:
    async with a_router(a_laptop(tmp_path / "laptop")) as router:
        address = (await router.ask(headers={"prefer": "respond-async"})).headers["location"]
        first = []
        async with router.client.stream("GET", f"{address}/events") as response:
            async for event in server_events(response):
                first.append(event)
                if len(first) == 4:
                    break
        last = first[-1]["id"]
        async with router.client.stream(
            "GET", f"{address}/events", headers={"last-event-id": last}
        ) as response:
            rest = [event async for event in server_events(response)]
        async with router.client.stream(
            "GET", f"{address}/events", headers={"last-event-id": "no number"}
        ) as response:
            everything = [event async for event in server_events(response)]
        async with router.client.stream(
            "GET", f"{address}/events", headers={"last-event-id": "9" * 5000}
        ) as response:
            assert response.status_code == 200
    assert [int(event["id"]) for event in first + rest] == list(range(1, len(first + rest) + 1))
    assert rest[-1]["event"] == "query.finished"
    assert first + rest == everything


async def test_many_questions_at_once_are_all_answered(tmp_path: Path) -> None:
    entries = [an_entry(f"Question number {number:02}?") for number in range(20)]
    async with a_router(a_laptop(tmp_path / "laptop", *entries), time_scale=100) as router:
        responses = await asyncio.gather(*(router.ask(entry["question"]) for entry in entries))
        assert await router.busy() == 0
        assert await router.metric("hexflow_queries_total") == 20
        assert await router.metric("hexflow_queries_running") == 0
    assert {response.status_code for response in responses} == {200}
    assert len({response.json()["id"] for response in responses}) == 20


async def test_what_there_is_to_ask_is_listed(tmp_path: Path) -> None:
    async with a_router(a_laptop(tmp_path / "laptop")) as router:
        listed = (await router.client.get("/v1/workflows")).json()["workflows"]
        paths = (await router.client.get("/openapi.json")).json()["paths"]
    assert [workflow["name"] for workflow in listed] == [WORKFLOW]
    assert listed[0]["databases"] == ["shop"]
    assert listed[0]["deadlineSeconds"] == 60
    assert "/v1/workflows/{name}/queries" in paths


async def test_the_admin_port_shows_where_the_time_of_a_query_goes(tmp_path: Path) -> None:
    async with a_router(a_laptop(tmp_path / "laptop")) as router:
        address = (await router.ask(headers={"prefer": "respond-async"})).headers["location"]
        shown: list[dict[str, Any]] = []
        async with router.client.stream("GET", f"{address}/events") as response:
            async for event in server_events(response):
                if event["event"] == "call.placed" and not shown:
                    shown = (await router.admin.get("/debug/scheduler")).json()["queries"]
        after = (await router.admin.get("/debug/scheduler")).json()["queries"]
        metrics = (await router.admin.get("/metrics")).text
    assert [query["id"] for query in shown] == [address.rpartition("/")[2]]
    assert 0 < shown[0]["secondsLeft"] <= 60
    assert shown[0]["stages"][0]["budgetSeconds"] > 0
    assert sum(shown[0]["stages"][-1]["calls"].values()) > 0
    assert QUESTION not in json.dumps(shown)
    assert after == []
    assert 'hexflow_stage_seconds_count{stage="self-correction",workflow="shop-questions"} 1.0' in metrics
    assert 'hexflow_statement_seconds_count{workflow="shop-questions"}' in metrics


async def test_the_scheduler_shows_why_calls_went_where_they_did(tmp_path: Path) -> None:
    async with a_router(a_laptop(tmp_path / "laptop")) as router:
        await router.ask()
        state = (await router.admin.get("/debug/scheduler")).json()
        lines = (await router.admin.get("/v1/events")).text.splitlines()
    assert state["policy"] == "LeastHarm"
    assert {shown["instance"] for shown in state["instances"]} == {"a100-0", "l40s-1"}
    assert set(state["placements"][0]["scores"]) == {"a100-0", "l40s-1"}
    assert lines[0].startswith('{"v":2,"n":0')
    assert QUESTION not in "".join(lines)
    assert RIGHT not in "".join(lines)
