"""A query on its way: all that is known of it, and its one end.

Whoever ends it first (its last stage, a failure, a cancel, a clock) decides how; everything later is too
late. Instants and seconds are the router's; only ``created_wall`` is the wall clock's.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from hexflow_router.answer import (
    Answer,
    CallReport,
    CandidateReport,
    ErrorBody,
    Question,
    StageReport,
    Status,
    Tokens,
    utc,
)
from hexflow_router.auth import Tenant
from hexflow_router.configuration import WorkflowSetup
from hexflow_router.errors import STATUS_OF_REASON, error_type
from hexflow_router.events import EventStream
from hexflow_router.model import CallRecord
from hexflow_sql.draft import Candidate, Draft
from hexflow_sql.result import json_rows


@dataclass(slots=True, kw_only=True)
class StageState:
    """Hold what is known of a stage so far."""

    name: str
    kind: str
    status: str = "Pending"
    started_at: float | None = None
    ended_at: float | None = None
    budget_seconds: float | None = None
    skipped: list[str] = field(default_factory=list)
    statements: int = 0
    statement_seconds: float = 0.0
    records: list[CallRecord] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Say how a query ended."""

    status: Status
    at: float
    reason: str | None = None
    message: str | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class Query:
    """Hold one query."""

    query_id: str
    question: Question
    database: str
    workflow: WorkflowSetup
    tenant: Tenant
    policy: str
    arrival: float
    deadline_seconds: float
    longest_seconds: float
    """Seconds after which it ends, answered or not: the deadline under Abort, more under Finish."""
    created_wall: float
    clock: Callable[[], float]
    journaled: bool = False
    share: float = 1.0
    """Share of its candidates that are asked for; less than all under ``admission: Degrade``."""
    trace_headers: tuple[tuple[str, str], ...] = ()
    stages: list[StageState] = field(default_factory=list)
    draft: Draft | None = None
    chosen: Candidate | None = None
    tried: dict[int, CandidateReport] = field(default_factory=dict)
    """What was seen of each candidate while it was made; counts where no stage got to hand it on."""
    events: EventStream = field(default_factory=EventStream)
    ending: Ending | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    encoded: bytes = b""
    """The final answer, once there is one."""

    @property
    def deadline(self) -> float:
        """The instant by which it should be answered."""
        return self.arrival + self.deadline_seconds

    @property
    def expires(self) -> float:
        """The instant at which it ends, answered or not."""
        return self.arrival + self.longest_seconds

    @property
    def aborts(self) -> bool:
        """Whether it ends at its deadline, answered or not."""
        return self.workflow.workflow.spec.slo.on_deadline == "Abort"

    def time_left(self) -> float:
        """Return the seconds to the deadline; negative when it is late."""
        return self.deadline - self.clock()

    def end(self, status: Status, *, reason: str | None = None, message: str | None = None) -> bool:
        """End it, unless it has ended; return whether this was its end."""
        if self.ending is not None:
            return False
        self.ending = Ending(status=status, at=self.clock(), reason=reason, message=message)
        for stage in self.stages:
            if stage.status == "Running":
                stage.status, stage.ended_at = "Cancelled", self.ending.at
            for record in stage.records:
                record.withdraw(self.ending.at)
        self.encoded = self._encode()
        self.events.publish("query.finished", msgspec.Raw(self.encoded))
        self.events.close()
        self.ended.set()
        return True

    def _encode(self) -> bytes:
        try:
            return self.answer().encode()
        except ValueError:  # a text that UTF-8 cannot hold, from a database or a model
            self.ending = Ending(
                status=Status.FAILED,
                at=self.clock(),
                reason="InternalError",
                message="The answer holds text that JSON cannot.",
            )
            self.draft, self.chosen, self.tried = None, None, {}
            return self.answer().encode()

    def answer(self, ending: Ending | None = None) -> Answer:
        """Return the answer as it stands now, or as it would stand after ``ending``."""
        ending = self.ending or ending
        now = ending.at if ending else self.clock()
        chosen = self.chosen if ending and ending.status is Status.SUCCEEDED else None
        result = chosen.result if chosen else None
        reports = tuple(self._stage(stage) for stage in self.stages)
        calls = [call for stage in reports for call in stage.calls]
        status = ending.status if ending else Status.RUNNING
        seconds = max(0.0, now - self.arrival)
        return Answer(
            id=self.query_id,
            workflow=self.workflow.name,
            database=self.database,
            tenant=self.tenant.name or None,
            question=self.question.question,
            status=status,
            reason=ending.reason if ending else None,
            message=ending.message if ending else None,
            sql=chosen.sql if chosen else None,
            columns=result.columns if result else None,
            rows=tuple(tuple(row) for row in json_rows(result)) if result else None,
            truncated=bool(result and result.truncated),
            candidates=self._candidates(),
            stages=reports,
            tokens=Tokens(
                prompt=sum(call.prompt_tokens or 0 for call in calls if call.status == "Done"),
                output=sum(call.output_tokens or 0 for call in calls),
            ),
            deadline_seconds=self.deadline_seconds,
            seconds=round(seconds, 6),
            deadline_met=None
            if ending is None
            else status is Status.SUCCEEDED and seconds <= self.deadline_seconds,
            skipped=self._skipped(),
            policy=self.policy,
            created_at=utc(self.created_wall),
            error=_error(ending),
        )

    def _candidates(self) -> tuple[CandidateReport, ...]:
        if self.draft is None or self.chosen is None:
            return tuple(self.tried[index] for index in sorted(self.tried))
        return tuple(
            CandidateReport(
                sql=candidate.sql,
                votes=candidate.votes,
                error=candidate.error,
                rounds=candidate.rounds,
                chosen=candidate is self.chosen,
            )
            for candidate in self.draft.candidates
        )

    def _skipped(self) -> tuple[str, ...]:
        return tuple(f"{stage.name}: {skipped}" for stage in self.stages for skipped in stage.skipped)

    def _stage(self, stage: StageState) -> StageReport:
        started = stage.started_at
        ended = stage.ended_at if stage.ended_at is not None else self.clock()
        return StageReport(
            name=stage.name,
            kind=stage.kind,
            status=stage.status,
            started_seconds=None if started is None else round(started - self.arrival, 6),
            seconds=None if started is None else round(ended - started, 6),
            budget_seconds=_rounded(stage.budget_seconds),
            skipped=tuple(stage.skipped),
            statements=stage.statements,
            statement_seconds=round(stage.statement_seconds, 6),
            calls=tuple(call_report(record) for record in stage.records),
        )


def call_report(record: CallRecord) -> CallReport:
    """Return what is known of a call as the answer and the events tell it."""
    call, placed, completed = record.call, record.placement, record.completed
    usage = completed.usage if completed else None
    return CallReport(
        id=call.call_id,
        task=record.task,
        instance=placed.instance_id if placed else None,
        pool=placed.pool if placed else None,
        gpu_type=placed.gpu_type if placed else None,
        attempts=placed.attempts if placed else 0,
        urgency=_rounded(placed.urgency) if placed else None,
        priority=placed.priority if placed else None,
        demoted=placed.demoted if placed else False,
        prompt_tokens=usage.prompt_tokens if usage else call.prompt_tokens,
        output_tokens=usage.output_tokens if usage else None,
        cached_tokens=usage.cached_tokens if usage else None,
        token_source=completed.token_source if completed else "estimate",
        budget_seconds=_rounded(call.budget_seconds),
        queued_seconds=_rounded(placed.queued_seconds) if placed else None,
        seconds=_rounded(record.seconds),
        round=call.round,
        sibling=call.sibling,
        status=record.status,
        reason=record.reason,
    )


def http_status(status: Status, reason: str | None) -> int:
    """Return the HTTP status that tells how a query ended."""
    match status:
        case Status.SUCCEEDED | Status.RUNNING:
            return 200
        case Status.DEADLINE_EXCEEDED:
            return 504
        case Status.CANCELLED:
            return 503 if reason == "Stopping" else 499
        case Status.FAILED:
            return STATUS_OF_REASON.get(reason or "", 422)


def _error(ending: Ending | None) -> ErrorBody | None:
    if ending is None or ending.status is Status.SUCCEEDED:
        return None
    code = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in ending.reason or "")
    return ErrorBody(
        message=ending.message or "",
        type=error_type(http_status(ending.status, ending.reason)),
        code=code.removeprefix("_") or None,
        reason=ending.reason,
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
