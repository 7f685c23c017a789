"""A query ends exactly once, whatever its pipeline does; the pipeline here is whatever a test makes of it."""

import asyncio
import itertools
import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hexflow_router.admission import Admits, admit_all
from hexflow_router.answer import CandidateReport, Question, Status
from hexflow_router.auth import Tenant
from hexflow_router.configuration import WorkflowSetup, arrange
from hexflow_router.errors import ApiError
from hexflow_router.journal import Entry, Journal
from hexflow_router.metrics import Metrics
from hexflow_router.queries import Queries, QueryRules
from hexflow_router.query import Query, http_status
from hexflow_scheduler import Admission, Call, TimeScale
from support.resources import MODEL, a_pool, a_secret, a_workflow, resources_of

SCALE = TimeScale(1000.0)
"""A second of the router is a millisecond here."""
Work = Callable[[Query], Coroutine[Any, Any, None]]


def a_setup(**spec: Any) -> WorkflowSetup:
    resources = resources_of(a_pool(), a_workflow(**spec), a_secret())
    return arrange(resources, Path("/nowhere")).workflows["shop-questions"]


@asynccontextmanager
async def queries_with(
    work: Work, journal: Journal | None = None, admits: Admits = admit_all, **rules: Any
) -> AsyncIterator[Queries]:
    opened = journal or await Journal.open()
    ids = itertools.count(1)
    loop = asyncio.get_running_loop()
    queries = Queries(
        work=work,
        admits=admits,
        journal=opened,
        metrics=Metrics(),
        rules=QueryRules(**rules),
        clock=lambda: SCALE.emulated(loop.time()),
        wall_clock=lambda: 1000.0,
        scale=SCALE,
        new_id=lambda: f"q{next(ids)}",
    )
    yield queries
    await queries.drain(0.0)
    await opened.close()


async def ask(
    queries: Queries,
    *,
    setup: WorkflowSetup | None = None,
    tenant: Tenant | None = None,
    deadline: float | None = None,
    journaled: bool = False,
) -> Query:
    return await queries.ask(
        workflow=setup or a_setup(),
        question=Question(question="How many?", deadline_seconds=deadline),
        database="shop",
        tenant=tenant or Tenant(workflow="shop-questions"),
        policy="HexGenFlow",
        journaled=journaled,
    )


async def succeed(query: Query) -> None:
    query.end(Status.SUCCEEDED)


async def never_end(_: Query) -> None:
    await asyncio.Event().wait()


async def fall_over(_: Query) -> None:
    raise ZeroDivisionError("a defect")


async def just_return(_: Query) -> None:
    return


async def refuse_to_stop(_: Query) -> None:
    for _number in range(20):
        try:
            await asyncio.sleep(0.02)
        except asyncio.CancelledError:
            continue


@pytest.mark.parametrize(
    ("work", "status", "reason"),
    [
        (succeed, Status.SUCCEEDED, None),
        (fall_over, Status.FAILED, "InternalError"),
        (just_return, Status.FAILED, "InternalError"),
    ],
)
async def test_whatever_the_pipeline_does_the_query_ends(
    work: Work, status: Status, reason: str | None
) -> None:
    async with queries_with(work) as queries:
        query = await ask(queries)
        await asyncio.wait_for(query.ended.wait(), 1)
        assert query.ending is not None
        assert (query.ending.status, query.ending.reason) == (status, reason)
        await asyncio.sleep(0)
        assert queries.get("q1") is query


async def test_a_defect_is_logged_and_never_told_to_the_asker(caplog: pytest.LogCaptureFixture) -> None:
    async with queries_with(fall_over) as queries:
        query = await ask(queries)
        await query.ended.wait()
        await asyncio.sleep(0)
    assert "ZeroDivisionError" in caplog.text
    assert b"defect" in query.encoded
    assert b"ZeroDivision" not in query.encoded


async def test_a_finish_query_ends_at_the_hard_cap() -> None:
    async with queries_with(never_end, hard_cap_factor=3) as queries:
        query = await ask(queries, deadline=10)
        await asyncio.wait_for(query.ended.wait(), 1)
        assert query.ending is not None
        assert (query.ending.status, query.ending.reason) == (Status.DEADLINE_EXCEEDED, "HardCap")
        assert query.ending.at - query.arrival >= 29


async def test_an_abort_query_ends_at_its_deadline() -> None:
    async with queries_with(never_end) as queries:
        query = await ask(queries, setup=a_setup(slo={"onDeadline": "Abort", "deadlineSeconds": 20}))
        await asyncio.wait_for(query.ended.wait(), 1)
        assert query.ending is not None
        assert query.ending.reason == "DeadlineExceeded"
        assert query.ending.at - query.arrival < 200


async def test_a_pipeline_that_will_not_stop_cannot_keep_its_query_alive() -> None:
    async with queries_with(refuse_to_stop) as queries:
        query = await ask(queries)
        await asyncio.sleep(0.01)
        queries.cancel(query, reason="Cancelled", message="Enough.")
        assert query.ended.is_set()
        assert queries.limits.in_flight(query.tenant) == 0


async def test_the_first_end_stands_and_counts_once() -> None:
    async with queries_with(never_end) as queries:
        query = await ask(queries)
        queries.cancel(query, reason="ClientGone", message="Gone.")
        queries.cancel(query, reason="Cancelled", message="Again.")
        await asyncio.sleep(0.01)
        assert query.ending is not None
        assert query.ending.reason == "ClientGone"
        page = queries.metrics.exposition().decode()
        assert 'hexflow_queries_total{status="Cancelled",tenant="",workflow="shop-questions"} 1.0' in page
        assert 'hexflow_queries_running{workflow="shop-questions"} 0.0' in page


async def test_a_query_cancelled_before_its_first_step_ends() -> None:
    async with queries_with(never_end) as queries:
        query = await ask(queries)
        queries.cancel(query, reason="Cancelled", message="At once.")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert query.ending is not None
        assert query.ending.status is Status.CANCELLED


async def test_an_answer_that_cannot_be_written_is_a_failure_and_no_silence() -> None:
    async def strange(query: Query) -> None:
        query.tried[0] = CandidateReport(sql="SELECT '\ud800'")
        query.end(Status.SUCCEEDED)

    async with queries_with(strange) as queries:
        query = await ask(queries)
        await asyncio.wait_for(query.ended.wait(), 1)
        assert json.loads(query.encoded)["reason"] == "InternalError"


async def test_the_last_event_holds_the_answer() -> None:
    async with queries_with(succeed) as queries:
        query = await ask(queries)
        events = [event async for event in query.events.follow()]
    assert [event.name for event in events] == ["query.accepted", "query.finished"]
    assert json.loads(events[-1].encode().split(b"data: ")[1])["status"] == "Succeeded"


async def test_the_oldest_answers_are_forgotten_first() -> None:
    async with queries_with(succeed, kept=2) as queries:
        for _ in range(4):
            await (await ask(queries)).ended.wait()
            await asyncio.sleep(0)
        assert [queries.get(f"q{number}") is not None for number in range(1, 5)] == [False, False, True, True]


async def test_a_journaled_query_is_written_before_it_is_accepted_and_when_it_ends() -> None:
    journal = await Journal.open()
    async with queries_with(never_end, journal) as queries:
        query = await ask(queries, journaled=True)
        entry = await journal.find("q1")
        assert entry is not None
        assert entry.finished_at is None
        assert json.loads(entry.answer)["reason"] == "Interrupted"
        queries.cancel(query, reason="Cancelled", message="Enough.")
        await queries.drain(0.0)
        entry = await journal.find("q1")
        assert entry is not None
        assert json.loads(entry.answer)["reason"] == "Cancelled"
        found = await queries.finished("q1")
        assert found is not None
        assert found.answer == query.encoded


async def test_what_an_earlier_process_left_unfinished_is_closed() -> None:
    journal = await Journal.open()
    await journal.accept(
        Entry(query_id="old", workflow="w", tenant="t", accepted_at=1.0, finished_at=None, answer="{}")
    )
    async with queries_with(never_end, journal) as queries:
        assert await queries.recover() == 1
        assert await journal.unfinished() == ()
        assert await queries.finished("old") is not None
        assert await queries.finished("never") is None


class ABrokenJournal(Journal):
    async def accept(self, entry: Entry) -> None:
        raise sqlite3.OperationalError("disk full")


async def test_without_a_journal_no_async_query_is_taken() -> None:
    connection = (await Journal.open())._connection
    async with queries_with(never_end, ABrokenJournal(connection)) as queries:
        with pytest.raises(ApiError, match="journal cannot be written") as error:
            await ask(queries, journaled=True)
        assert error.value.status == 503
        assert queries.get("q1") is None
        assert queries.limits.in_flight(Tenant(workflow="shop-questions")) == 0


async def test_a_drain_waits_for_what_ends_in_time_and_takes_nothing_new() -> None:
    done = asyncio.Event()

    async def soon(query: Query) -> None:
        await done.wait()
        query.end(Status.SUCCEEDED)

    async with queries_with(soon) as queries:
        query = await ask(queries)
        draining = asyncio.create_task(queries.drain(5.0))
        await asyncio.sleep(0)
        with pytest.raises(ApiError) as error:
            await ask(queries)
        assert error.value.code == "stopping"
        done.set()
        await draining
        assert query.ending is not None
        assert query.ending.status is Status.SUCCEEDED


@pytest.mark.parametrize(
    ("status", "reason", "code"),
    [
        (Status.SUCCEEDED, None, 200),
        (Status.FAILED, "Unanswerable", 422),
        (Status.FAILED, "AllCandidatesFailed", 422),
        (Status.FAILED, "NoInstanceInTime", 503),
        (Status.FAILED, "DatabaseUnavailable", 503),
        (Status.FAILED, "BrokenAnswer", 502),
        (Status.FAILED, "IdleTimeout", 504),
        (Status.FAILED, "InternalError", 500),
        (Status.DEADLINE_EXCEEDED, "HardCap", 504),
        (Status.CANCELLED, "ClientGone", 499),
        (Status.CANCELLED, "Stopping", 503),
    ],
)
def test_each_end_has_its_http_status(status: Status, reason: str | None, code: int) -> None:
    assert http_status(status, reason) == code


# Admission

LATE = Admission(admitted=False, expected_seconds=90.0, retry_after_seconds=30.0, share=2 / 3)


def late(_: Call) -> Admission:
    return LATE


async def test_a_query_that_would_be_late_is_refused_with_when_to_ask_again() -> None:
    tenant = Tenant(name="a", workflow="shop-questions", queries_per_minute=1)
    setup = a_setup(scheduling={"admission": "InTime"})
    async with queries_with(never_end, admits=late) as queries:
        with pytest.raises(ApiError) as refused:
            await ask(queries, setup=setup, tenant=tenant, deadline=59)
        assert queries.running() == ()
        assert queries.limits.in_flight(tenant) == 0
        await ask(queries, tenant=tenant, deadline=59)  # the refusal took nothing of its one query a minute
        assert 'hexflow_admissions_total{result="Refused",workflow="shop-questions"} 1.0' in exposed(queries)
    problem = refused.value
    assert (problem.status, problem.code, problem.reason) == (
        429,
        "deadline_unreachable",
        "DeadlineUnreachable",
    )
    assert problem.retry_after == 30.0
    assert "90 seconds" in problem.message
    assert "59" in problem.message
    assert "30 seconds" in problem.message


def exposed(queries: Queries) -> str:
    return queries.metrics.exposition().decode()


async def test_a_query_is_tried_while_no_other_runs_or_nothing_would_ever_be_learned() -> None:
    setup = a_setup(scheduling={"admission": "InTime"})
    async with queries_with(never_end, admits=late) as queries:
        await ask(queries, setup=setup)
        assert 'result="Tried"' in exposed(queries)
        with pytest.raises(ApiError, match="ask again in 30 seconds"):
            await ask(queries, setup=setup)


@pytest.mark.parametrize(
    ("admission", "admits", "share"),
    [
        ("Degrade", late, 2 / 3),
        ("Degrade", admit_all, 1.0),
        ("InTime", admit_all, 1.0),
        ("Always", late, 1.0),
    ],
)
async def test_a_query_that_is_let_in_has_all_its_candidates_but_a_degraded_one(
    admission: str, admits: Admits, share: float
) -> None:
    async with queries_with(never_end, admits=admits) as queries:
        await ask(queries)
        query = await ask(queries, setup=a_setup(scheduling={"admission": admission}))
        assert query.share == share


async def test_admission_is_asked_about_the_first_call_of_the_query() -> None:
    asked: list[Call] = []

    def note(call: Call) -> Admission:
        asked.append(call)
        return admit_all(call)

    async with queries_with(never_end, admits=note) as queries:
        query = await ask(queries, setup=a_setup(scheduling={"admission": "InTime"}), deadline=25)
        await ask(queries)
    (call,) = asked
    assert (call.workflow, call.stage, call.model) == ("shop-questions", "schema-linking", MODEL)
    assert call.deadline == query.deadline
    assert call.pools == frozenset({"a100"})
