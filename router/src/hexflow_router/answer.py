"""The question as it comes in and the answer as it goes out: the HTTP edge of a query.

One model of the answer serves a finished query, a running one, the last event of a stream and the
journal. It knows no stages, no scheduler and no database.
"""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

MAX_DEADLINE_SECONDS = 86_400.0
"""A day: a longer deadline is a slip of the pen."""


class _Edge(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        ser_json_inf_nan="null",
    )


def _worded(value: str) -> str:
    if not value.strip():
        raise ValueError("write a question")
    if "\x00" in value:
        raise ValueError("leave out the NUL character")
    return value


class Question(_Edge):
    """A question to a workflow."""

    question: Annotated[str, AfterValidator(_worded)] = Field(
        description="The question, in a person's words.", examples=["How many customers live in Berlin?"]
    )
    database: str | None = Field(
        default=None,
        max_length=253,
        description="Name of a database of the workflow; may be left out where it has one.",
    )
    evidence: str | None = Field(
        default=None, description="What the asker knows besides: a definition, a hint."
    )
    deadline_seconds: Annotated[float, Field(gt=0, le=MAX_DEADLINE_SECONDS, strict=True)] | None = Field(
        default=None, description="Seconds from now; absent: the tenant's class or the workflow says."
    )
    reference_time: datetime | None = Field(
        default=None, description="The instant that words like 'today' mean; absent: now."
    )
    stream: bool = Field(
        default=False, strict=True, description="Answer with server-sent events; the last holds the answer."
    )


class Status(StrEnum):
    """Say where a query stands; all but Running are final."""

    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"
    DEADLINE_EXCEEDED = "DeadlineExceeded"


class CallReport(_Edge):
    """What became of one call to a language model. Seconds are from the query's arrival or lengths of time."""

    id: str
    task: str
    instance: str | None = None
    pool: str | None = None
    gpu_type: str | None = None
    attempts: int = 0
    urgency: float | None = None
    """Seconds by which it was expected to overrun its budget when it was sent."""
    priority: int | None = None
    demoted: bool = False
    """Whether its query gave way to others, since it could not be in time any more."""
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    token_source: str | None = None
    """``usage`` as the engine counted, or ``estimate`` where it did not."""
    budget_seconds: float | None = None
    queued_seconds: float | None = None
    seconds: float | None = None
    round: int = 0
    sibling: int = 0
    status: str = "Running"
    """Waiting, Running, Done, Failed or Cancelled."""
    reason: str | None = None


class StageReport(_Edge):
    """What became of one stage."""

    name: str
    kind: str
    status: str
    """Pending, Running, Done, Failed or Cancelled."""
    started_seconds: float | None = None
    seconds: float | None = None
    budget_seconds: float | None = None
    skipped: tuple[str, ...] = ()
    """What it left out, and why."""
    statements: int = 0
    """Statements that ran, or were tried, against the database."""
    statement_seconds: float = 0.0
    calls: tuple[CallReport, ...] = ()


class CandidateReport(_Edge):
    """One statement that was considered."""

    sql: str | None
    votes: int = 0
    error: str | None = None
    rounds: int = 0
    chosen: bool = False


class Tokens(_Edge):
    """Tokens of all calls of a query."""

    prompt: int = 0
    output: int = 0


class ErrorBody(_Edge):
    """An OpenAI error object."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None
    reason: str | None = None


class Answer(_Edge):
    """The state of a query; final when its status is."""

    id: str
    workflow: str
    database: str
    tenant: str | None = None
    question: str
    status: Status
    reason: str | None = None
    """One CamelCase word: why it did not succeed."""
    message: str | None = None
    """The same for a person."""
    sql: str | None = None
    columns: tuple[str, ...] | None = None
    rows: tuple[tuple[Any, ...], ...] | None = None
    truncated: bool = False
    candidates: tuple[CandidateReport, ...] = ()
    stages: tuple[StageReport, ...] = ()
    tokens: Tokens = Tokens()
    deadline_seconds: float
    seconds: float
    deadline_met: bool | None = None
    """None while it runs."""
    skipped: tuple[str, ...] = ()
    """What was left out for want of time."""
    policy: str
    created_at: datetime
    """Wall clock, UTC."""
    error: ErrorBody | None = None

    def encode(self) -> bytes:
        """Return the answer as JSON."""
        return self.model_dump_json(by_alias=True).encode()

    def data(self) -> dict[str, Any]:
        """Return the answer as plain JSON data."""
        return self.model_dump(mode="json", by_alias=True)


def utc(wall_seconds: float) -> datetime:
    """Return a wall-clock instant as a date in UTC."""
    return datetime.fromtimestamp(wall_seconds, UTC)
