"""The driver: gives the kernel its inputs and turns its decisions into HTTP.

It owns the kernel on the event loop. Whoever wants a call made releases it here; whoever knows of instances
tells them here. It decides nothing about placement and order; it decides what a failure means for a call:
our own calls may be tried again at any time, a passed-through one only before its first byte.
"""

import asyncio
import contextlib
import logging
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import replace

from hexflow_router.accounts import Accounts
from hexflow_router.attempt import Attempt, AttemptFailed, OpenStream, WholeAnswer
from hexflow_router.errors import DEFECT, STOPPING, STOPPING_SECONDS
from hexflow_router.exchange import CallFailed, Exchange, Placement, UpstreamRequest
from hexflow_router.metrics import Metrics
from hexflow_router.pending import Pending, failure_of
from hexflow_router.upstream import Address, TimeOuts, Upstream
from hexflow_scheduler import (
    Abort,
    Decision,
    DuplicateCall,
    End,
    Instance,
    InstanceState,
    Kernel,
    Outcome,
    Place,
    Send,
    UnknownCall,
    Usage,
    serves,
)

_log = logging.getLogger("hexflow.router.driver")

LONGEST_BACK_OFF_SECONDS = 5.0
LEAST_WAIT = 10.0
"""Real seconds that a time-out is not shortened below by a time scale: a busy machine is not a silent engine."""
LEAST_TOTAL = 120.0
"""The same for the total time of a call."""


class Driver:
    """Run calls on instances as a kernel decides. Use it on one event loop only."""

    def __init__(
        self,
        kernel: Kernel,
        *,
        upstream: Upstream,
        clock: Callable[[], float],
        real_seconds: Callable[[float], float] = lambda seconds: seconds,
        time_outs: TimeOuts | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        """Take ``clock`` in seconds since the epoch (emulated ones under a time scale)."""
        self.kernel = kernel
        self.upstream = upstream
        self.clock = clock
        self.real_seconds = real_seconds
        self.time_outs = time_outs or TimeOuts()
        self.metrics = metrics or Metrics()
        self.accounts = Accounts(self.metrics)
        self.fleet_version = 0
        """Grows whenever an instance appears, changes or goes."""
        self._instances: dict[str, tuple[Instance, Address]] = {}
        self._pending: dict[str, Pending] = {}
        self.sequences: Counter[str] = Counter()
        """Sequences that run on each instance, kept by ``Pending.runs_on``."""
        self._detached: set[Pending] = set()
        self._decisions: deque[Decision] = deque()
        self._applying = False
        self._wake: asyncio.TimerHandle | None = None
        self._wake_at: float | None = None
        self._closed = False

    # What the front doors use

    def release(self, requests: Sequence[UpstreamRequest]) -> list[Exchange]:
        """Release calls together, as siblings are; return one exchange for each, in order.

        Never raises for what becomes of a call: the exchange does. Raises DuplicateCall for an id that lives.
        """
        for request in requests:
            if request.call.call_id in self._pending:
                raise DuplicateCall(request.call.call_id)
        now = self.clock()
        released = [Pending(request, released_at=now, keeper=self) for request in requests]
        if self._closed:
            for pending in released:
                pending.fail(_stopping())
            return list(released)
        loop = asyncio.get_running_loop()
        total = self._patience(self.time_outs.total_seconds, least=LEAST_TOTAL)
        for pending in released:
            self._pending[pending.call.call_id] = pending
            pending.timer = loop.call_later(total, self._ran_out_of_time, pending)
        try:
            self._apply(self.kernel.arrive(now, [pending.call for pending in released]))
        except Exception:
            for pending in released:
                self._pending.pop(pending.call.call_id, None)
                pending.release_timer()
            raise
        return list(released)

    def withdraw(self, pending: Pending, failure: CallFailed) -> None:
        """Take a call back: out of the queue, or off its engine."""
        if self._pending.get(pending.call.call_id) is pending:
            pending.withdrawn = failure
            with contextlib.suppress(UnknownCall):  # its End may be among the decisions not carried out yet
                self._apply(self.kernel.cancel(self.clock(), pending.call.call_id))
        elif pending in self._detached:
            pending.withdrawn = failure
            pending.stop()
            self._forget(pending)
        pending.fail(failure)

    def stream_ended(self, pending: Pending, stream: OpenStream, failure: AttemptFailed | None) -> None:
        """Note the end of a stream that its reader followed to the end."""
        call_id = pending.call.call_id
        self._forget(pending)
        engine_error = stream.watch.engine_error
        if failure is None and engine_error is not None:
            failure = AttemptFailed(
                "EngineError", f"The engine reported an error: {engine_error}", retryable=False
            )
        placement = pending.placement
        assert placement is not None  # noqa: S101 - a stream comes from somewhere
        if pending.withdrawn is not None:
            return  # whoever left is to blame, not the instance
        if failure is not None:
            self.accounts.failed(placement, failure)
        if self._pending.get(call_id) is not pending:
            return
        if failure is None:
            self.accounts.succeeded(placement)
            self._finish(pending, stream.watch.usage, stream.watch.output_estimate)
        else:
            pending.last_failure = failure
            self._apply(self.kernel.failed(self.clock(), call_id, reason=failure.reason, retryable=False))

    def _forget(self, pending: Pending) -> None:
        if pending in self._detached:
            self._detached.discard(pending)
            pending.release_timer()

    # What discovery uses

    def tell(self, instance: Instance, address: Address) -> None:
        """Tell of an instance that appeared, changed or is gone."""
        self.fleet_version += 1
        if instance.state is InstanceState.GONE:
            for pending in [each for each in self._pending.values() if each.runs_on == instance.instance_id]:
                if pending.seen_by_client:
                    self._detach(pending)
                else:
                    pending.stop()
            self._apply(self.kernel.instance(self.clock(), instance))
            self._instances.pop(instance.instance_id, None)
        else:
            self._instances[instance.instance_id] = (instance, address)
            self._apply(self.kernel.instance(self.clock(), instance))

    def succeed(self, kernel: Kernel) -> None:
        """Go on with another kernel, which is told of every instance. Only while nothing is outstanding."""
        self.kernel = kernel
        for instance, _ in self._instances.values():
            self._apply(kernel.instance(self.clock(), instance))

    def load(self, instance_id: str, foreign_running: int) -> None:
        """Tell how many calls run on an engine that did not come from here."""
        if instance_id in self._instances:
            self._apply(self.kernel.load(self.clock(), instance_id, foreign_running))

    def query_ended(self, query_id: str, *, answered: bool) -> None:
        """Tell that a query has its answer, or will have none."""
        self._apply(self.kernel.query_ended(self.clock(), query_id, answered=answered))

    def instances(self) -> list[Instance]:
        """Return the instances that are known."""
        return [instance for instance, _ in self._instances.values()]

    def in_flight(self, instance_id: str) -> int:
        """Return how many sequences an instance has for us (a call of n samples is n of them)."""
        return self.sequences[instance_id]

    def oldest_wait(self) -> float:
        """Return how long the call has waited that waits longest, in seconds; 0 where none waits."""
        waiting = (each.released_at for each in self._pending.values() if each.runs_on is None)
        return max(0.0, self.clock() - min(waiting, default=self.clock()))

    @property
    def outstanding(self) -> int:
        """How many calls were released and have not ended."""
        return len(self._pending)

    async def close(self) -> None:
        """Withdraw everything and close the connections; what is released later fails with Stopping."""
        self._closed = True
        for pending in [*self._pending.values(), *self._detached]:
            self.withdraw(pending, _stopping())
        if self._wake:
            self._wake.cancel()
        await asyncio.sleep(0)
        await self.upstream.close()

    # Decisions

    def _apply(self, decisions: Sequence[Decision]) -> None:
        # A decision may lead to another input (a callback, a refused retry): the queue keeps their order.
        self._decisions.extend(decisions)
        if self._applying:
            return
        self._applying = True
        try:
            while self._decisions:
                self._carry_out(self._decisions.popleft())
        finally:
            self._applying = False
        self._arm()

    def _carry_out(self, decision: Decision) -> None:
        pending = self._pending.get(decision.call_id)
        if pending is None:
            return
        match decision:
            case Place():
                pending.place = decision
            case Send():
                self._send(pending, decision)
            case Abort():
                pending.stop()
            case End():
                self._end(pending, decision)

    def _send(self, pending: Pending, send: Send) -> None:
        if pending.seen_by_client:
            self._detach(pending)
            return
        pending.stop()
        instance, address = self._instances[send.instance_id]
        place = pending.place
        now = self.clock()
        placement = Placement(
            call_id=send.call_id,
            instance_id=send.instance_id,
            pool=instance.pool,
            gpu_type=instance.gpu_type,
            urgency=send.urgency,
            predicted_seconds=place.predicted_seconds if place else 0.0,
            priority=send.priority,
            attempts=send.attempt,
            sent_at=now,
            queued_seconds=max(0.0, now - pending.released_at),
            demoted=place.demoted if place else False,
        )
        pending.placement = placement
        pending.tried.add(send.instance_id)
        pending.runs_on = send.instance_id
        attempt = Attempt(
            upstream=self.upstream,
            address=address,
            request=pending.request,
            priority=send.priority,
            predicted_seconds=placement.predicted_seconds,
            time_outs=self.time_outs,
            patience=self._patience,
        )
        self.accounts.sent(placement)
        pending.task = asyncio.get_running_loop().create_task(self._try(pending, attempt, placement))
        if pending.request.on_placed is not None:
            try:
                pending.request.on_placed(placement)
            except Exception:
                _log.exception("an observer of call %s failed", send.call_id)

    def _detach(self, pending: Pending) -> None:
        # An open stream whose instance is given up is left to its reader, as it may yet come to its end; to the
        # kernel the call is over, since what a client has seen cannot be made again elsewhere.
        self._detached.add(pending)
        pending.runs_on = None
        call_id = pending.call.call_id
        self._apply(self.kernel.failed(self.clock(), call_id, reason="InstanceGone", retryable=False))

    async def _try(self, pending: Pending, attempt: Attempt, placement: Placement) -> None:
        try:
            await self._attempt(pending, attempt, placement)
        except Exception:
            _log.exception("call %s failed inside the router", placement.call_id)
            self.withdraw(pending, _defect())

    async def _attempt(self, pending: Pending, attempt: Attempt, placement: Placement) -> None:
        try:
            outcome = await attempt.make()
        except AttemptFailed as failure:
            await self._failed(pending, failure)
            return
        if isinstance(outcome, WholeAnswer):
            pending.runs_on = None
            pending.keep(outcome, seconds=self.clock() - placement.sent_at)
            self.accounts.succeeded(placement)
            self._finish(pending, outcome.usage, None)
        else:
            pending.first_token_seconds = self.clock() - placement.sent_at
            self.accounts.first_byte(placement, pending.first_token_seconds)
            pending.open(outcome)

    async def _failed(self, pending: Pending, failure: AttemptFailed) -> None:
        placement = pending.placement
        assert placement is not None  # noqa: S101 - a try has one
        pending.last_failure = failure
        elsewhere = self._elsewhere(pending)
        again = failure.retryable and (pending.request.retry_after_first_byte or elsewhere)
        if _refuses_priority(failure, placement, pending.request.body):
            again = True
            self.accounts.refused_priority(placement)
        self.accounts.failed(placement, failure)
        if again and not elsewhere and failure.answer is not None:
            # Only this engine is left and it is overloaded: it keeps its slot while it is given time.
            wait = failure.answer.retry_after() or 0.25 * 2**placement.attempts
            await asyncio.sleep(self.real_seconds(min(wait, LONGEST_BACK_OFF_SECONDS)))
        pending.runs_on = None
        pending.task = None
        if self._pending.get(pending.call.call_id) is pending:
            self._apply(
                self.kernel.failed(self.clock(), pending.call.call_id, reason=failure.reason, retryable=again)
            )

    def _patience(self, seconds: float, *, least: float = LEAST_WAIT) -> float:
        return max(self.real_seconds(seconds), min(seconds, least))

    def _elsewhere(self, pending: Pending) -> bool:
        return any(
            instance.state is InstanceState.READY
            and serves(instance, pending.call)
            and instance.instance_id not in pending.tried
            for instance, _ in self._instances.values()
        )

    def _finish(self, pending: Pending, usage: Usage | None, output_estimate: int | None) -> None:
        placement = pending.placement
        assert placement is not None  # noqa: S101 - what finished was sent
        now = self.clock()
        source = "usage" if usage else "estimate"
        usage = usage or Usage(
            prompt_tokens=pending.call.prompt_tokens, output_tokens=pending.output_tokens(output_estimate)
        )
        usage = replace(usage, first_token_seconds=pending.first_token_seconds)
        pending.usage, pending.token_source = usage, source
        self.accounts.finished(placement, usage, source=source, now=now)
        self._apply(self.kernel.finished(now, pending.call.call_id, usage))

    def _end(self, pending: Pending, end: End) -> None:
        self.accounts.ended(pending.placement, end.outcome)
        del self._pending[end.call_id]
        if pending in self._detached:
            return
        pending.release_timer()
        if end.outcome is Outcome.FINISHED:
            pending.settle()
            return
        pending.stop()
        if end.outcome is Outcome.DROPPED:
            pending.withdrawn = failure_of(end, None)  # whatever an engine said to an earlier try
        pending.fail(pending.withdrawn or failure_of(end, pending.last_failure))

    def _ran_out_of_time(self, pending: Pending) -> None:
        seconds = self.time_outs.total_seconds
        self.withdraw(
            pending,
            CallFailed(
                f"The call was not answered within {seconds:g} s.",
                status=504,
                code="timeout",
                reason="TotalTimeout",
            ),
        )

    def _arm(self) -> None:
        at = self.kernel.next_wake()
        if at == self._wake_at and (self._wake is not None) == (at is not None):
            return
        if self._wake:
            self._wake.cancel()
            self._wake = None
        self._wake_at = at
        if at is not None and not self._closed:
            delay = max(0.001, self.real_seconds(at - self.clock()))
            self._wake = asyncio.get_running_loop().call_later(delay, self._woken)

    def _woken(self) -> None:
        self._wake = None
        self._apply(self.kernel.wake(self.clock()))


def _refuses_priority(failure: AttemptFailed, placement: Placement, request: bytes) -> bool:
    """Return whether an engine objects to the field: vLLM to the scheduling, others to a name unknown to them.

    A refusal may quote the request, whose own words then prove nothing.
    """
    answer = failure.answer
    if placement.priority is None or answer is None or answer.status not in (400, 422):
        return False
    said = answer.body.lower()
    return b"priority" in said and (b"scheduling" in said or b"priority" not in request.lower())


def _stopping() -> CallFailed:
    return CallFailed(STOPPING, status=503, code="stopping", reason="Stopping", retry_after=STOPPING_SECONDS)


def _defect() -> CallFailed:
    return CallFailed(
        DEFECT,
        status=500,
        code="internal_error",
        reason="InternalError",
    )
