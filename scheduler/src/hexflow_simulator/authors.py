"""The engine model of HexGen-Flow's authors, for the reproduction of their figures; ``engine`` is ours.

One instance prefills one request at a time, whole, ahead of all decoding, which waits. Then every running
request gets a token a step, and a step takes the same time whatever the batch. There is no prefix cache and
no limit of slots; a request is admitted when KV blocks for its prompt are free, its output counts nothing.
The constants are aggregate facts inferred from the authors' public simulator: seconds a token of prefill by
stage and of decoding, and KV blocks, by GPU. No trace of theirs is here.
"""

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from hexflow_scheduler import Instance, Profile
from hexflow_simulator.fleet import SimulatedInstance
from hexflow_simulator.request import (
    EngineOptions,
    EngineOrder,
    EngineRequest,
    Finished,
    RequestTooLargeError,
)

BLOCK_TOKENS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorsSpeed:
    """Hold the constants of one GPU. Seconds a token."""

    decode: float
    prefill: Mapping[str, float]
    """By the kind of stage: the start of a stage's name."""
    other_prefill: float
    """Of stages that are none of those."""
    kv_blocks: int
    """Blocks of 16 tokens."""

    def prefill_seconds(self, stage: str, prompt_tokens: int) -> float:
        """Return the seconds to prefill a prompt."""
        for kind, seconds in self.prefill.items():
            if stage.startswith(kind):
                return prompt_tokens * seconds
        return prompt_tokens * self.other_prefill

    def profile(self) -> Profile:
        """Return what comes nearest to it in our step model: a draft's prefill, the same step for every batch.

        It has as good as no limits, so that the kernel sends everything at once and the engine's order decides.
        """
        return Profile(
            t0=self.decode,
            t1=0.0,
            t2=0.0,
            c1=self.prefill["candidate"],
            c2=0.0,
            kv_tokens=10**12,
            slots=10**9,
        )


_A100 = AuthorsSpeed(
    decode=0.035,
    prefill=MappingProxyType({"candidate": 0.000261, "revise": 0.000070}),
    other_prefill=0.000305,
    kv_blocks=3603,
)
_A6000 = AuthorsSpeed(
    decode=0.058,
    prefill=MappingProxyType({"candidate": 0.000170, "revise": 0.000040}),
    other_prefill=0.000070,
    kv_blocks=9707,
)
_L40S = AuthorsSpeed(
    decode=0.0545,
    prefill=_A6000.prefill,
    other_prefill=_A6000.other_prefill,
    kv_blocks=9707,
)

SPEEDS: Mapping[str, AuthorsSpeed] = MappingProxyType({"A100": _A100, "A6000": _A6000, "L40S": _L40S})
"""By GPU, as the authors have it: A100 of 40 GB with 4-bit weights; the prefill of the L40S is assumed."""


def authors_fleet(gpus: list[str], model: str) -> list[SimulatedInstance]:
    """Return instances of the authors' GPUs, in that order; raises KeyError for a GPU that they did not have."""
    return [
        SimulatedInstance(
            instance=Instance(
                instance_id=f"{gpu.lower()}-{number}",
                pool=gpu.lower(),
                gpu_type=gpu,
                models=frozenset({model}),
                profile=SPEEDS[gpu].profile(),
                prefix_caching=False,
                takes_priority=True,
            ),
            options=EngineOptions(order=EngineOrder.PRIORITY, keep_prefixes=False, overhead_seconds=0.0),
        )
        for number, gpu in enumerate(gpus)
    ]


def authors_engine(source: SimulatedInstance) -> "AuthorsEngine":
    """Return the authors' model of an instance, by its GPU; for ``simulate(engine=...)``."""
    return AuthorsEngine(SPEEDS[source.instance.gpu_type], source.options)


class _Run:
    """Follow one request through the engine."""

    __slots__ = ("blocks", "decodes", "first_token", "gone", "request", "sequence", "started", "submitted")

    def __init__(self, request: EngineRequest, *, sequence: int, submitted: float) -> None:
        self.request = request
        self.sequence = sequence
        self.submitted = submitted
        self.blocks = blocks(request)
        self.started = self.first_token = submitted
        self.decodes = False
        self.gone = False
        """Whether it was cancelled; heaps may still hold it."""


class AuthorsEngine:
    """Model one instance as the authors do. ``now`` never decreases from call to call."""

    def __init__(self, speed: AuthorsSpeed, options: EngineOptions | None = None) -> None:
        self.speed = speed
        self.options = options or EngineOptions()
        self.free_blocks = speed.kv_blocks
        self._runs: dict[str, _Run] = {}
        self._incoming: list[tuple[float, int, _Run]] = []
        self._waiting: list[tuple[int, int, _Run]] = []
        self._decoding: list[tuple[int, int, _Run]] = []
        """Runs by the step in which they write their last token."""
        self._sequence = 0
        self._steps = 0
        """Steps taken since the engine began."""
        self._clock = -math.inf
        """The last boundary: the end of a prefill or of a step."""
        self._since: tuple[float, int] = (self._clock, 0)
        """The boundary after which there were steps alone: an instant, and the steps by then."""
        self._prefilling: _Run | None = None
        self._until: float = -math.inf
        """When the prefill that runs ends."""
        self._finished: list[Finished] = []

    def submit(self, now: float, request: EngineRequest, /) -> None:
        """Hand in a request. Raises RequestTooLargeError where its prompt could never fit."""
        if request.request_id in self._runs:
            raise ValueError(f"request id {request.request_id!r} is in use")
        if request.prompt_tokens < 1 or request.output_tokens < 1:
            raise ValueError("a request has at least one token of prompt and one of output")
        if blocks(request) > self.speed.kv_blocks:
            raise RequestTooLargeError(
                f"a prompt of {request.prompt_tokens} tokens does not fit {self.speed.kv_blocks} blocks"
            )
        self._run_until(now, begin=False)
        self._sequence += 1
        run = _Run(request, sequence=self._sequence, submitted=now)
        self._runs[request.request_id] = run
        heapq.heappush(self._incoming, (now + self.options.overhead_seconds, run.sequence, run))

    def cancel(self, now: float, request_id: str, /) -> bool:
        """Withdraw a request; a prefill or step that has begun keeps its end."""
        self._run_until(now)
        run = self._runs.pop(request_id, None)
        if run is None:
            return False
        run.gone = True
        if run.decodes or self._prefilling is run:
            self.free_blocks += run.blocks
        return True

    def advance(self, now: float, /) -> list[Finished]:
        """Let time pass and return what finished since the last call, in order."""
        self._run_until(now)
        finished, self._finished = self._finished, []
        return finished

    def next_event(self) -> float | None:
        """Return the next instant at which something may change; None while nothing is to be done."""
        if self._finished:
            return self._clock
        if self._prefilling is not None:
            return self._until
        self._drop_gone()
        if self._waiting and self._waiting[0][2].blocks <= self.free_blocks:
            return self._clock
        if self._decoding:
            return self._boundary(self._next_boundary())
        return max(self._clock, self._incoming[0][0]) if self._incoming else None

    def next_finish(self) -> float | None:
        """Return an instant before which nothing finishes; None while nothing is to be done."""
        return self.next_event()

    def _run_until(self, now: float, *, begin: bool = True) -> None:
        """Let time pass. Without ``begin`` nothing begins at ``now`` itself: more may be handed in then."""
        while True:
            run = self._prefilling
            if run is not None:
                if self._until > now:
                    return
                self._prefilled(run)
                continue
            self._drop_gone()
            if not self._decoding and not self._waiting:
                # Idle: time has passed unnoticed.
                if not self._incoming:
                    return
                begins = max(self._clock, self._incoming[0][0])
                if begins > now or (begins == now and not begin):
                    return
                self._begin_at(begins)
            self._let_in()
            if self._clock > now or (self._clock == now and not begin):
                return
            head = self._waiting[0][2] if self._waiting else None
            if head is not None and head.blocks <= self.free_blocks:
                self._prefill(head)
            elif self._decoding:
                if not self._decode(now):
                    return
            else:
                return

    def _let_in(self) -> None:
        """Queue what has come in by the last boundary."""
        while self._incoming and self._incoming[0][0] <= self._clock:
            run = heapq.heappop(self._incoming)[2]
            if not run.gone:
                by_priority = self.options.order is EngineOrder.PRIORITY
                priority = run.request.priority if by_priority else 0
                heapq.heappush(self._waiting, (priority, run.sequence, run))

    def _drop_gone(self) -> None:
        for heap in (self._waiting, self._decoding):
            while heap and heap[0][2].gone:
                heapq.heappop(heap)
        while self._incoming and self._incoming[0][2].gone:
            heapq.heappop(self._incoming)

    def _prefill(self, run: _Run) -> None:
        heapq.heappop(self._waiting)
        self.free_blocks -= run.blocks
        run.started = self._clock
        self._prefilling = run
        self._until = self._clock + self.speed.prefill_seconds(run.request.stage, run.request.prompt_tokens)

    def _prefilled(self, run: _Run) -> None:
        self._prefilling = None
        self._begin_at(self._until)
        run.first_token = self._clock
        if run.gone:
            return
        run.decodes = True
        heapq.heappush(self._decoding, (self._steps + run.request.output_tokens - 1, run.sequence, run))
        self._end_runs()

    def _decode(self, now: float) -> bool:
        """Take steps to the next end or newcomer. Those that are over by ``now`` count; return whether any were."""
        upto = self._next_boundary()
        if self._boundary(upto) > now:
            upto = min(upto, self._first_step_by(now))
            while upto > self._steps and self._boundary(upto) > now:
                upto -= 1
            if upto == self._steps:
                return False
        self._clock = self._boundary(upto)
        self._steps = upto
        self._end_runs()
        return True

    def _next_boundary(self) -> int:
        """Return the step of the next end, or by which a newcomer can be let in."""
        end = self._decoding[0][0]
        if not self._incoming:
            return end
        return max(self._steps + 1, min(end, self._first_step_by(self._incoming[0][0])))

    def _begin_at(self, boundary: float) -> None:
        self._clock = boundary
        self._since = (boundary, self._steps)

    def _boundary(self, steps: int) -> float:
        """Return when so many steps are complete if nothing comes in between."""
        since, then = self._since
        return since + (steps - then) * self.speed.decode

    def _first_step_by(self, at: float) -> int:
        """Return the first step that is complete at or after an instant."""
        since, then = self._since
        steps = then + math.ceil((at - since) / self.speed.decode)
        # A quotient of floats may lie a hair on the wrong side of a whole number.
        while self._boundary(steps) < at:
            steps += 1
        while steps > then and self._boundary(steps - 1) >= at:
            steps -= 1
        return steps

    def _end_runs(self) -> None:
        while self._decoding and (self._decoding[0][2].gone or self._decoding[0][0] <= self._steps):
            run = heapq.heappop(self._decoding)[2]
            if run.gone:
                continue
            self.free_blocks += run.blocks
            del self._runs[run.request.request_id]
            self._finished.append(
                Finished(
                    request_id=run.request.request_id,
                    submitted=run.submitted,
                    started=run.started,
                    first_token=run.first_token,
                    finished=self._clock,
                    cached_tokens=0,
                    output_tokens=run.request.output_tokens,
                    preemptions=0,
                )
            )


def blocks(request: EngineRequest) -> int:
    """Return the KV blocks that a request holds: those of its prompt."""
    return -(-request.prompt_tokens // BLOCK_TOKENS)
