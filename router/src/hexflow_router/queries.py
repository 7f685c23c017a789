"""The queries of this process: started, found again, cancelled, drained; async ones are journaled.

Every query ends exactly once and with a reason: its pipeline, its clock, a cancel or the drain ends it,
whoever is first (``query.py``).
"""

import asyncio
import logging
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from hexflow_router.admission import Admits, admit_all, first_call, too_late
from hexflow_router.answer import Question, Status
from hexflow_router.auth import Limits, Tenant
from hexflow_router.configuration import WorkflowSetup
from hexflow_router.errors import DEFECT, STOPPING, STOPPING_SECONDS, ApiError
from hexflow_router.journal import Entry, Journal
from hexflow_router.metrics import Metrics
from hexflow_router.query import Ending, Query
from hexflow_scheduler import TimeScale

_log = logging.getLogger("hexflow.router.queries")

KEPT_BYTES = 64 * 1024 * 1024
"""Most bytes of finished answers that stay in memory."""


def stopping() -> ApiError:
    """Return the refusal of whatever comes while the router drains."""
    return ApiError(
        STOPPING,
        status=503,
        code="stopping",
        retry_after=STOPPING_SECONDS,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRules:
    """Bound the queries of a process."""

    hard_cap_factor: float = 10.0
    max_running: int = 1_000
    kept: int = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """Hold the answer of a query that an earlier process, or this one a while ago, ended."""

    query_id: str
    workflow: str
    tenant: str
    answer: bytes


@dataclass(slots=True, kw_only=True, eq=False)
class Queries:
    """Run and remember queries. For one event loop."""

    work: Callable[[Query], Coroutine[Any, Any, None]]
    """Run a query's pipeline to its end; what it raises ends the query too (``pipeline.run``)."""
    journal: Journal
    metrics: Metrics
    rules: QueryRules
    clock: Callable[[], float]
    wall_clock: Callable[[], float]
    scale: TimeScale
    new_id: Callable[[], str]
    admits: Admits = admit_all
    limits: Limits = field(default_factory=Limits)
    on_ended: Callable[[Query], None] = lambda _: None
    """Is told each query that has ended."""
    draining: bool = False
    _running: dict[str, Query] = field(default_factory=dict)
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _finished: OrderedDict[str, Query] = field(default_factory=OrderedDict)
    _finished_bytes: int = 0
    _writes: set[asyncio.Task[None]] = field(default_factory=set)

    async def ask(
        self,
        *,
        workflow: WorkflowSetup,
        question: Question,
        database: str,
        tenant: Tenant,
        policy: str,
        journaled: bool,
        trace_headers: tuple[tuple[str, str], ...] = (),
    ) -> Query:
        """Start a query. Raises ApiError where it may not start (429, 503)."""
        if self.draining:
            raise stopping()
        if len(self._running) >= self.rules.max_running:
            raise ApiError(
                f"{len(self._running)} queries run, as many as this router takes; try again.",
                status=429,
                code="too_many_queries",
                retry_after=1,
            )
        now = self.clock()
        spec = workflow.workflow.spec
        deadline = question.deadline_seconds or float(spec.deadline_seconds(tenant.name or None))
        share = self._admit(workflow, question, tenant, now=now, deadline=deadline)
        self.limits.enter(tenant, now)
        query = Query(
            query_id=self.new_id(),
            question=question,
            database=database,
            workflow=workflow,
            tenant=tenant,
            policy=policy,
            arrival=now,
            deadline_seconds=deadline,
            longest_seconds=deadline
            * (1.0 if spec.slo.on_deadline == "Abort" else self.rules.hard_cap_factor),
            created_wall=self.wall_clock(),
            clock=self.clock,
            journaled=journaled,
            share=share,
            trace_headers=trace_headers,
        )
        self._running[query.query_id] = query
        if journaled:
            try:
                await self.journal.accept(self._entry(query))
            except (sqlite3.Error, OSError) as problem:
                self._leave(query)
                _log.error("Query %s is refused: the journal cannot be written: %s", query.query_id, problem)
                raise ApiError(
                    "The journal cannot be written, so no async query is taken; ask without `Prefer: respond-async`.",
                    status=503,
                    code="journal_unavailable",
                ) from None
            except BaseException:
                self._leave(query)
                raise
        self._start(query)
        return query

    def get(self, query_id: str) -> Query | None:
        """Return a query of this process that runs or is remembered."""
        return self._running.get(query_id) or self._finished.get(query_id)

    def running(self) -> tuple[Query, ...]:
        """Return the queries that have not ended."""
        return tuple(self._running.values())

    async def finished(self, query_id: str) -> Finished | None:
        """Return what the journal has of a query of an earlier process."""
        entry = await self.journal.find(query_id)
        if entry is None:
            return None
        return Finished(
            query_id=query_id, workflow=entry.workflow, tenant=entry.tenant, answer=entry.answer.encode()
        )

    def cancel(self, query: Query, *, reason: str, message: str) -> None:
        """End a query that nobody wants any more; harmless once it has ended."""
        if query.end(Status.CANCELLED, reason=reason, message=message):
            self._settle(query)

    async def recover(self) -> int:
        """Close the books on queries that an earlier process left unfinished; return how many."""
        left = await self.journal.unfinished()
        for entry in left:
            await self.journal.finish(entry.query_id, finished_at=self.wall_clock(), answer=entry.answer)
        return len(left)

    async def drain(self, grace_seconds: float) -> None:
        """Take no new query, let running ones finish for ``grace_seconds`` (real), then end them."""
        self.draining = True
        waiting = [asyncio.ensure_future(query.ended.wait()) for query in self._running.values()]
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=max(0.0, grace_seconds))
            for future in late:
                future.cancel()
        for query in tuple(self._running.values()):
            self.cancel(query, reason="Stopping", message="The router stopped before the query was answered.")
        tasks = tuple(self._tasks.values())
        if tasks:
            await asyncio.wait(tasks, timeout=2.0)
        if self._writes:
            await asyncio.wait(tuple(self._writes), timeout=5.0)

    def _admit(
        self, workflow: WorkflowSetup, question: Question, tenant: Tenant, *, now: float, deadline: float
    ) -> float:
        """Return what share of its candidates a query gets. Raises ApiError (429) where it is not let in."""
        spec = workflow.workflow.spec
        if spec.scheduling.admission == "Always":
            return 1.0
        admission = self.admits(first_call(workflow, question, tenant, now=now, deadline_seconds=deadline))
        if admission.admitted:
            result, share = "Admitted", 1.0
        elif spec.scheduling.admission == "Degrade":
            result, share = "Degraded", admission.share
        elif deadline >= spec.deadline_seconds(tenant.name or None) and self._idle(workflow.name):
            # What is expected is learned from answers: were none let in, it would stay as long as it once was.
            result, share = "Tried", 1.0
        else:
            result, share = "Refused", 0.0
        self.metrics.count("hexflow_admissions_total", workflow.name, result)
        if result == "Refused":
            raise too_late(admission, deadline)
        return share

    def _idle(self, workflow: str) -> bool:
        return not any(other.workflow.name == workflow for other in self._running.values())

    def _start(self, query: Query) -> None:
        loop = asyncio.get_running_loop()
        task = loop.create_task(self.work(query), name=f"query {query.query_id}")
        self._tasks[query.query_id] = task
        timer = loop.call_later(self.scale.real_seconds(query.longest_seconds), self._expire, query)
        task.add_done_callback(lambda done: self._done(query, done, timer))
        self._gauge(query)
        query.events.publish(
            "query.accepted",
            {
                "id": query.query_id,
                "workflow": query.workflow.name,
                "database": query.database,
                "deadlineSeconds": query.deadline_seconds,
                "policy": query.policy,
                "stages": [setup.stage.name for setup in query.workflow.stages],
            },
        )

    def _done(self, query: Query, task: "asyncio.Task[None]", timer: asyncio.TimerHandle) -> None:
        # The last line of defence: whatever became of the task, its query has ended after it.
        timer.cancel()
        self._tasks.pop(query.query_id, None)
        problem = None if task.cancelled() else task.exception()
        if problem is not None:
            _log.error("Query %s failed by a defect.", query.query_id, exc_info=problem)
        query.end(
            Status.FAILED,
            reason="InternalError",
            message=DEFECT,
        )
        self._settle(query)

    def _expire(self, query: Query) -> None:
        if query.aborts:
            message = f"The deadline of {query.deadline_seconds:g} seconds passed (onDeadline: Abort)."
            ended = query.end(Status.DEADLINE_EXCEEDED, reason="DeadlineExceeded", message=message)
        else:
            message = (
                f"There was no answer after {query.longest_seconds:g} seconds, when a query with a deadline of"
                f" {query.deadline_seconds:g} seconds ends in any case."
            )
            ended = query.end(Status.DEADLINE_EXCEEDED, reason="HardCap", message=message)
        if ended:
            self._settle(query)

    def _settle(self, query: Query) -> None:
        """Do once what follows the end of a query."""
        if self._running.get(query.query_id) is not query or query.ending is None:
            return
        self._leave(query)
        task = self._tasks.get(query.query_id)
        if task is not None and not task.done():
            task.cancel()
        ending = query.ending
        seconds = max(0.0, ending.at - query.arrival)
        self.metrics.count("hexflow_queries_total", query.workflow.name, query.tenant.name, ending.status)
        self.metrics.observe("hexflow_query_seconds", seconds, query.workflow.name)
        if ending.status is Status.SUCCEEDED:
            met = "true" if seconds <= query.deadline_seconds else "false"
            self.metrics.count("hexflow_query_deadlines_total", query.workflow.name, met)
        _log.info(
            "Query %s of %s ended: %s%s after %.3f s.",
            query.query_id,
            query.workflow.name,
            ending.status,
            f" ({ending.reason})" if ending.reason else "",
            seconds,
        )
        self.on_ended(query)
        self._remember(query)
        if query.journaled:
            write = asyncio.ensure_future(self._write(query))
            self._writes.add(write)
            write.add_done_callback(self._writes.discard)

    def _leave(self, query: Query) -> None:
        self._running.pop(query.query_id, None)
        self.limits.leave(query.tenant)
        self._gauge(query)

    def _gauge(self, query: Query) -> None:
        name = query.workflow.name
        running = sum(1 for other in self._running.values() if other.workflow.name == name)
        self.metrics.set("hexflow_queries_running", running, name)

    def _remember(self, query: Query) -> None:
        self._finished[query.query_id] = query
        self._finished_bytes += len(query.encoded)
        while self._finished and (len(self._finished) > self.rules.kept or self._finished_bytes > KEPT_BYTES):
            _, forgotten = self._finished.popitem(last=False)
            self._finished_bytes -= len(forgotten.encoded)

    async def _write(self, query: Query) -> None:
        try:
            await self.journal.finish(
                query.query_id, finished_at=self.wall_clock(), answer=query.encoded.decode()
            )
            await self.journal.prune(keep=self.rules.kept)
        except (sqlite3.Error, OSError) as problem:
            _log.error("The answer of query %s is not in the journal: %s", query.query_id, problem)

    def _entry(self, query: Query) -> Entry:
        """Return the entry of a query that runs: with the answer that a restart would make final."""
        interrupted = Ending(
            status=Status.FAILED,
            at=query.arrival,
            reason="Interrupted",
            message="The router was restarted before the query was answered; ask again.",
        )
        return Entry(
            query_id=query.query_id,
            workflow=query.workflow.name,
            tenant=query.tenant.name,
            accepted_at=query.created_wall,
            finished_at=None,
            answer=query.answer(interrupted).encode().decode(),
        )
