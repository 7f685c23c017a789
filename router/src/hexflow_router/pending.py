"""A released call until it has ended: what the driver knows of it, and the exchange that a front door holds."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from typing import Protocol

from hexflow_router.attempt import AttemptFailed, OpenStream, WholeAnswer
from hexflow_router.errors import STATUS_OF_REASON
from hexflow_router.exchange import CallFailed, CompletedReply, Placement, Reply, UpstreamRequest
from hexflow_router.sse import error_event
from hexflow_scheduler import Call, End, Outcome, Place, Usage


class Keeper(Protocol):
    """Who keeps the books of the calls on their way: the driver."""

    clock: Callable[[], float]
    sequences: Counter[str]
    """Sequences that each instance has for us."""

    def withdraw(self, pending: "Pending", failure: CallFailed) -> None:
        """Take a call back: out of the queue, or off its engine."""
        ...

    def stream_ended(self, pending: "Pending", stream: OpenStream, failure: AttemptFailed | None) -> None:
        """Note the end of a stream that its reader followed to the end."""
        ...


class Pending:
    """Follow one call; satisfies ``Exchange``."""

    def __init__(self, request: UpstreamRequest, *, released_at: float, keeper: Keeper) -> None:
        """Start before anything was decided."""
        self.request = request
        self.released_at = released_at
        self.place: Place | None = None
        self.placement: Placement | None = None
        self._runs_on: str | None = None
        self.tried: set[str] = set()
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.last_failure: AttemptFailed | None = None
        self.withdrawn: CallFailed | None = None
        self.usage: Usage | None = None
        self.first_token_seconds: float | None = None
        self.token_source = "estimate"  # noqa: S105 - tokens of text
        self._keeper = keeper
        self._first: asyncio.Future[OpenStream | WholeAnswer] = asyncio.get_running_loop().create_future()
        self._stream: OpenStream | None = None
        self._answer: WholeAnswer | None = None
        self._seconds = 0.0

    @property
    def runs_on(self) -> str | None:
        """Instance that has the call now; None while it waits and once it has ended."""
        return self._runs_on

    @runs_on.setter
    def runs_on(self, instance_id: str | None) -> None:
        if self._runs_on is not None:
            self._keeper.sequences[self._runs_on] -= self.call.samples
            if not self._keeper.sequences[self._runs_on]:
                del self._keeper.sequences[self._runs_on]
        if instance_id is not None:
            self._keeper.sequences[instance_id] += self.call.samples
        self._runs_on = instance_id

    # The exchange

    @property
    def call(self) -> Call:
        """The call as released."""
        return self.request.call

    async def reply(self) -> Reply:
        """Wait for the first byte; see ``Exchange.reply``."""
        first = await self._wait()
        placement = self._placed()
        if isinstance(first, OpenStream):
            return Reply(
                status=first.status, headers=first.headers, chunks=self._relay(first), placement=placement
            )
        headers = [*first.headers, ("content-length", str(len(first.body)))]
        return Reply(status=first.status, headers=headers, chunks=_once(first.body), placement=placement)

    async def read(self) -> CompletedReply:
        """Wait for the whole answer; see ``Exchange.read``."""
        first = await self._wait()
        if isinstance(first, OpenStream):
            body = b"".join([chunk async for chunk in self._relay(first)])
            if self.last_failure is not None:
                raise _failed(self.last_failure)
        else:
            body = first.body
        if first.status >= 400:
            assert self.last_failure is not None  # noqa: S101 - an engine's refusal is a failed try
            raise _failed(self.last_failure)
        assert self.usage is not None  # noqa: S101 - it finished
        return CompletedReply(
            status=first.status,
            headers=first.headers,
            body=body,
            usage=self.usage,
            token_source=self.token_source,
            placement=self._placed(),
            seconds=self._seconds,
        )

    def cancel(self) -> None:
        """Withdraw the call; harmless once it has ended."""
        self._keeper.withdraw(
            self,
            CallFailed("The call was cancelled.", status=499, code="cancelled", reason="Cancelled"),
        )

    async def _wait(self) -> OpenStream | WholeAnswer:
        try:
            await asyncio.wait((self._first,))
        except asyncio.CancelledError:
            self.cancel()
            raise
        return self._first.result()

    async def _relay(self, stream: OpenStream) -> AsyncGenerator[bytes]:
        try:
            async for piece in stream.pieces():
                yield piece
        except AttemptFailed as failure:
            self.last_failure = failure
            self._seconds = self._keeper.clock() - self._placed().sent_at
            self._keeper.stream_ended(self, stream, failure)
            yield error_event(self.withdrawn or _failed(failure))
        except GeneratorExit:
            self.cancel()
            raise
        except asyncio.CancelledError:
            self.cancel()
            raise
        else:
            self._seconds = self._keeper.clock() - self._placed().sent_at
            self._keeper.stream_ended(self, stream, None)

    def _placed(self) -> Placement:
        assert self.placement is not None  # noqa: S101 - an answer came from somewhere
        return self.placement

    # The driver's side

    @property
    def seen_by_client(self) -> bool:
        """Whether a part of the answer may have been passed on."""
        return self._stream is not None

    def open(self, stream: OpenStream) -> None:
        """Hand an open stream to whoever waits."""
        self._stream = stream
        if not self._first.done():
            self._first.set_result(stream)

    def keep(self, answer: WholeAnswer, *, seconds: float) -> None:
        """Keep a whole answer until the kernel closes the call."""
        self._answer = answer
        self._seconds = seconds

    def settle(self) -> None:
        """Give the kept answer to whoever waits."""
        if self._answer is not None and not self._first.done():
            self._first.set_result(self._answer)

    def fail(self, failure: CallFailed) -> None:
        """End the wait with a failure, or with the engine's own refusal where it gave one."""
        if self._first.done():
            return
        answer = self.last_failure.answer if self.last_failure and not self.withdrawn else None
        if answer is not None and self.placement is not None:
            self._first.set_result(answer)
            return
        self._first.set_exception(failure)
        self._first.exception()  # whoever left before the end does not come to fetch it

    def stop(self) -> None:
        """Stop the try that runs, if any: its connection is dropped."""
        self.runs_on = None
        if self.task is not None and self.task is not asyncio.current_task():
            self.task.cancel()
        self.task = None
        if self._stream is not None:
            self._stream.response.close()

    def release_timer(self) -> None:
        """Give up the bound on its total time."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def output_tokens(self, estimate: int | None) -> int:
        """Return how long an answer is whose engine does not say."""
        if estimate is not None:
            return estimate
        return min(len(self._answer.body) // 4, self.call.max_tokens) if self._answer else 0


async def _once(body: bytes) -> AsyncGenerator[bytes]:
    yield body


def failure_of(end: End, last: AttemptFailed | None) -> CallFailed:
    """Return what a caller is told of a call that ended without an answer."""
    if last is not None and end.outcome is not Outcome.UNSERVABLE:
        return _failed(last)
    if end.outcome is Outcome.DROPPED:
        return CallFailed(
            f"The call was dropped: {end.reason}.", status=499, code="dropped", reason="Dropped"
        )
    detail = f" ({end.reason})" if end.reason else ""
    if end.outcome is Outcome.UNSERVABLE:
        return CallFailed(
            "The prompt and the output asked for are longer than any instance takes; shorten the prompt or lower "
            f"max_tokens{detail}.",
            status=400,
            code="context_length_exceeded",
            reason="ContextTooLong",
        )
    return CallFailed(
        f"No instance could take the call in time{detail}; ask again, or see that a pool with its model is ready.",
        status=503,
        code="no_instance",
        reason="NoInstanceInTime",
        retry_after=5.0,
    )


def _failed(failure: AttemptFailed) -> CallFailed:
    answer = failure.answer
    retry_after = answer.retry_after() if answer else None
    if failure.reason == "EngineRefused" and answer is not None:
        said = answer.body[:300].decode("utf-8", "replace")
        return CallFailed(
            f"{failure.message} It said: {said}",
            status=answer.status,
            code="engine_refused",
            reason="EngineRefused",
            retry_after=retry_after,
        )
    status = STATUS_OF_REASON.get(failure.reason, 502)
    return CallFailed(
        failure.message,
        status=status,
        code="engine_timeout" if status == 504 else "engine_failed",
        reason=failure.reason,
        retry_after=retry_after,
    )
