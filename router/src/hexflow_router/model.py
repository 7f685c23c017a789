"""The language model of the stages: their requests become calls of one query, released to the driver.

Siblings are released together and decided together. What a call cost and where it went is written down
in its report while it runs. This module knows the OpenAI chat body and nothing of SQL.
"""

import asyncio
import hashlib
import itertools
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from hexflow_router.exchange import CallFailed, CompletedReply, Exchange, Headers, Placement, UpstreamRequest
from hexflow_scheduler import Call, PrefixBlock
from hexflow_sql.completion import DROPPED, Completion, CompletionError, CompletionRequest, PromptBlock

Release = Callable[[Sequence[UpstreamRequest]], Sequence[Exchange]]


class _Message(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    index: int = 0
    finish_reason: str | None = None


class _ChatCompletion(msgspec.Struct):
    choices: list[_Choice]


_DECODER = msgspec.json.Decoder(_ChatCompletion)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCalls:
    """Say what all calls of one stage of one query have in common."""

    query_id: str
    workflow: str
    tenant: str
    tenant_weight: float = 1.0
    stage: str
    model: str
    pools: frozenset[str] | None
    first_seed: int = 0
    """Added to the seed of every request."""
    headers: Headers = ()
    """Fields that go along (trace context)."""
    arrival: float
    deadline: float | None
    droppable: bool = False
    """Whether a late query may go without those that its stage can do without."""
    expires: float | None = None
    """Instant at which the query ends, answered or not; None where that is the deadline."""


@dataclass(slots=True, kw_only=True)
class CallRecord:
    """Hold what is known of a call so far; instants and seconds are the router's."""

    call: Call
    task: str
    released_at: float
    placement: Placement | None = None
    completed: CompletedReply | None = None
    seconds: float | None = None
    status: str = "Waiting"
    """Waiting, Running, Done, Failed or Cancelled."""
    reason: str | None = None

    def withdraw(self, now: float) -> None:
        """Close the record of a call that has not ended, since nobody wants it any more."""
        if self.status in ("Waiting", "Running"):
            self.close(now, "Cancelled", "Withdrawn")

    def close(self, now: float, status: str, reason: str | None) -> None:
        """Write down how the call ended."""
        self.status, self.reason = status, reason
        self.seconds = max(0.0, now - (self.placement.sent_at if self.placement else self.released_at))


@dataclass(slots=True, kw_only=True)
class StageModel:
    """Serve the completions of one stage of one query; a ``LanguageModel`` of hexflow_sql."""

    calls: StageCalls
    release_calls: Release
    clock: Callable[[], float]
    budget: Callable[[], float | None]
    """Seconds that a call released now is given."""
    new_id: Callable[[], str]
    count_tokens: Callable[[str], int]
    on_placed: Callable[[CallRecord], None]
    on_ended: Callable[[CallRecord], None]
    records: list[CallRecord] = field(default_factory=list)
    _tasks: set[asyncio.Task[Completion]] = field(default_factory=set)

    def release(self, requests: Sequence[CompletionRequest], /) -> Sequence[Awaitable[Completion]]:
        """Release all requests together; see ``hexflow_sql.completion.LanguageModel``."""
        budget = self.budget()
        made = [self._record(request, budget) for request in requests]
        exchanges = self.release_calls(
            [self._upstream(request, record) for request, record in zip(requests, made, strict=True)]
        )
        return [self._start(record, exchange) for record, exchange in zip(made, exchanges, strict=True)]

    def withdraw(self) -> None:
        """Withdraw every call that has not ended."""
        for task in tuple(self._tasks):
            task.cancel()

    def _record(self, request: CompletionRequest, budget: float | None) -> CallRecord:
        of = self.calls
        prefix = tuple(prefix_blocks(request.blocks, self.count_tokens))
        call = Call(
            call_id=self.new_id(),
            query_id=of.query_id,
            workflow=of.workflow,
            tenant=of.tenant,
            tenant_weight=of.tenant_weight,
            stage=of.stage,
            model=of.model,
            pools=of.pools,
            prompt_tokens=sum(block.tokens for block in prefix),
            max_tokens=request.max_tokens,
            samples=request.samples,
            prefix=prefix,
            query_arrival=of.arrival,
            deadline=of.deadline,
            expires=of.expires,
            budget_seconds=budget,
            optional=of.droppable and request.optional,
            round=request.round,
            sibling=request.sibling,
        )
        record = CallRecord(call=call, task=request.task, released_at=self.clock())
        self.records.append(record)
        return record

    def _upstream(self, request: CompletionRequest, record: CallRecord) -> UpstreamRequest:
        def placed(placement: Placement) -> None:
            record.placement = placement
            record.status = "Running"
            self.on_placed(record)

        of = self.calls
        return UpstreamRequest(
            call=record.call,
            path="/v1/chat/completions",
            headers=(
                ("content-type", "application/json"),
                ("x-request-id", record.call.call_id),
                *of.headers,
            ),
            body=chat_body(request, model=of.model, first_seed=of.first_seed),
            retry_after_first_byte=True,
            on_placed=placed,
        )

    def _start(self, record: CallRecord, exchange: Exchange) -> "asyncio.Task[Completion]":
        task = asyncio.ensure_future(self._complete(record, exchange))
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._forget(record, exchange, done))
        return task

    async def _complete(self, record: CallRecord, exchange: Exchange) -> Completion:
        # The record is closed before whoever awaits this goes on.
        try:
            record.completed = await exchange.read()
            completion = read_completion(record.completed)
        except CallFailed as failed:
            self._end(record, "Cancelled" if failed.reason == DROPPED else "Failed", failed.reason)
            raise CompletionError(failed.reason, failed.message) from None
        except CompletionError as failed:
            self._end(record, "Failed", failed.reason)
            raise
        except asyncio.CancelledError:
            exchange.cancel()
            self._end(record, "Cancelled", "Withdrawn")
            raise
        self._end(record, "Done", None)
        return completion

    def _end(self, record: CallRecord, status: str, reason: str | None) -> None:
        record.close(self.clock(), status, reason)
        self.on_ended(record)

    def _forget(self, record: CallRecord, exchange: Exchange, task: "asyncio.Task[Completion]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # a stage that was cancelled asks for no answer; that is no unseen error
        elif record.status != "Cancelled":
            exchange.cancel()  # it was cancelled before its first step
            self._end(record, "Cancelled", "Withdrawn")


def prefix_blocks(blocks: Iterable[PromptBlock], count_tokens: Callable[[str], int]) -> Iterable[PrefixBlock]:
    """Yield a block of shared prefix for each block of a prompt; a key stands for all the text up to its end."""
    so_far = hashlib.sha256()
    for block in blocks:
        so_far.update(f"{block.role}\n{len(block.text)}\n{block.text}".encode("utf-8", "surrogatepass"))
        yield PrefixBlock(key=so_far.hexdigest()[:32], tokens=count_tokens(block.text))


def chat_body(request: CompletionRequest, *, model: str, first_seed: int = 0) -> bytes:
    """Return the OpenAI chat completion body of a request."""
    body: dict[str, Any] = {
        "model": model,
        "messages": [
            {"role": role, "content": "\n\n".join(block.text for block in group)}
            for role, group in itertools.groupby(request.blocks, key=lambda block: block.role)
        ],
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
    }
    if request.seed is not None:
        body["seed"] = first_seed + request.seed
    if request.samples != 1:
        body["n"] = request.samples
    if request.response_format is not None:
        body["response_format"] = request.response_format
    return json.dumps(body | dict(request.sampling), ensure_ascii=False).encode("utf-8", "replace")


def read_completion(reply: CompletedReply) -> Completion:
    """Read an engine's chat completion. Raises CompletionError (Rubbish) when it is none."""
    try:
        chat = _DECODER.decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _rubbish(reply.placement) from None
    if not chat.choices:
        raise _rubbish(reply.placement)
    choices = sorted(chat.choices, key=lambda choice: choice.index)
    return Completion(
        texts=tuple(choice.message.content or "" for choice in choices),
        finish_reasons=tuple(choice.finish_reason or "" for choice in choices),
        prompt_tokens=reply.usage.prompt_tokens,
        output_tokens=reply.usage.output_tokens,
    )


def _rubbish(placement: Placement) -> CompletionError:
    return CompletionError(
        "Rubbish", f"The instance {placement.instance_id} answered something that is no chat completion."
    )
