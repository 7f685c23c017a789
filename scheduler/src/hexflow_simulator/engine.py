"""A model of a continuously batching inference engine, as a pure object with explicit time.

One linear step serves prefill and decode: with ``batch`` decoding calls that attend to ``context``
tokens in all, and prefill chunks at their depth, it takes
``t0 + t1*batch + t2*context + chunk*(c1 + c2*depth)`` seconds. Every decoding call gets one token a step,
a prefilled one its first. While no prefill is pending, steps are not walked through: the model jumps to
the next completion. Events are arrivals, completions and prefill chunks, never tokens.

The emulator drives it with the event loop's clock, the simulator with an event heap. It never sleeps,
reads a clock or does I/O.
"""

import heapq
import math
from dataclasses import dataclass, field
from enum import StrEnum

from hexflow_scheduler import PrefixBlock, Profile
from hexflow_simulator.kvcache import KVCache


class EngineOrder(StrEnum):
    """Say whom a freed slot goes to: vLLM's ``--scheduling-policy``."""

    FCFS = "fcfs"
    PRIORITY = "priority"
    """Lowest priority number first, then first come; the highest number is preempted first."""


class RequestTooLargeError(ValueError):
    """The KV cache could not hold the request even alone: shorten it or give the engine more memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """Set what a profile does not say about an engine."""

    order: EngineOrder = EngineOrder.FCFS
    block_tokens: int = 16
    keep_prefixes: bool = True
    step_tokens: int = 2048
    """Tokens that one step may compute: vLLM's ``--max-num-batched-tokens``."""
    overhead_seconds: float = 0.015
    """Fixed cost of a call before the engine sees it (HTTP, tokenising)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRequest:
    """Ask the engine for one completion. Its true output length is known here, and only here."""

    request_id: str
    prompt_tokens: int
    output_tokens: int
    prefix: tuple[PrefixBlock, ...] = ()
    """Leading blocks of the prompt that others may share, in order."""
    priority: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """Report a completed request. Instants are the caller's, in seconds; lengths are tokens."""

    request_id: str
    submitted: float
    started: float
    """When it first left the waiting queue."""
    first_token: float
    finished: float
    cached_tokens: int
    """Prompt tokens found in the prefix cache when it first started."""
    output_tokens: int
    preemptions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Say how far a request is at an instant."""

    output_tokens: int
    started: float | None
    first_token: float | None
    cached_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCounts:
    """Count what the engine's own metrics would show."""

    running: int
    waiting: int
    used_blocks: int
    capacity_blocks: int
    cached_blocks: int
    preemptions: int
    prefix_queries: int
    """Prompt tokens looked up in the prefix cache since the start."""
    prefix_hits: int


@dataclass(slots=True, kw_only=True, eq=False)
class _Run:
    request: EngineRequest
    sequence: int
    submitted: float
    key: tuple[int, int]
    """Place in the waiting queue; the largest of all is preempted first."""
    computed: int = 0
    """Tokens whose KV is there, while it prefills."""
    target: int = 0
    """Tokens to prefill: the prompt, and what it had written before a preemption."""
    generated: int = 0
    """Tokens written before it last began to decode."""
    entered: int = -1
    """Step count at which it began to decode; -1 while it does not."""
    shared: int = 0
    """Leading prefix blocks it holds."""
    shared_tokens: int = 0
    blocks: int = 0
    """Private blocks; while it decodes, those at ``entered``."""
    started: float | None = None
    first_token: float | None = None
    cached_tokens: int = 0
    preemptions: int = 0
    gone: bool = False

    @property
    def context(self) -> int:
        return self.request.prompt_tokens + self.generated


@dataclass(slots=True, kw_only=True)
class _Segment:
    """Steps in progress: ``steps`` of them from ``start``, the first ``first`` seconds, each ``growth`` longer."""

    start: float
    steps: int
    first: float
    growth: float
    chunks: list[tuple[_Run, int]] = field(default_factory=list)
    """Prefill of this (single) step: a run and the tokens it gets."""

    def at(self, steps: int) -> float:
        return self.start + steps * self.first + self.growth * (steps * (steps - 1) / 2)

    @property
    def end(self) -> float:
        return self.at(self.steps)

    def done(self, now: float) -> int:
        """Return how many steps are complete at ``now``."""
        passed = now - self.start
        if passed < self.first:
            return 0
        if self.growth <= 0:
            guess = int(passed / self.first) if self.first > 0 else self.steps
        else:
            linear = self.first - self.growth / 2
            guess = int((math.sqrt(linear * linear + 2 * self.growth * passed) - linear) / self.growth)
        guess = max(0, min(self.steps, guess))
        while guess < self.steps and self.at(guess + 1) <= now:
            guess += 1
        while guess and self.at(guess) > now:
            guess -= 1
        return guess


class Engine:
    """Model one instance.

    ``now`` never decreases from call to call; a step backwards is treated as no time passed.
    """

    def __init__(self, profile: Profile, options: EngineOptions | None = None) -> None:
        self.profile = profile
        self.options = options or EngineOptions()
        self.cache = KVCache(
            capacity_tokens=profile.kv_tokens,
            block_tokens=self.options.block_tokens,
            keep_prefixes=self.options.keep_prefixes,
        )
        self._clock = -math.inf  # the last step boundary, or the instant of the last look while idle
        self._sequence = 0
        self._runs: dict[str, _Run] = {}
        self._incoming: list[tuple[float, int, _Run]] = []
        self._waiting: list[tuple[tuple[int, int], _Run]] = []
        self._waiting_count = 0
        self._prefilling: dict[str, _Run] = {}
        self._segment: _Segment | None = None
        self._finished: list[Finished] = []
        self._preemptions = 0
        self._queried = 0
        self._hit = 0
        # What decodes. A run that enters at step s with r tokens to go finishes at step s + r, so no step
        # touches each run: the heap's head says how far to jump.
        self._steps = 0
        self._decoding: dict[str, _Run] = {}
        self._ends: list[tuple[int, int, _Run]] = []
        self._context = 0
        self._residues = [0] * self.options.block_tokens  # how many need a new block at which step, modulo

    # What callers ask for

    def submit(self, now: float, request: EngineRequest) -> None:
        """Hand in a request.

        Raises RequestTooLargeError where it could never fit, ValueError where its id is in use.
        """
        if request.request_id in self._runs:
            raise ValueError(f"request id {request.request_id!r} is in use")
        if request.prompt_tokens < 1 or request.output_tokens < 1:
            raise ValueError("a request has at least one token of prompt and one of output")
        total = request.prompt_tokens + request.output_tokens
        if self._blocks(request.prefix, total) > self.cache.capacity:
            raise RequestTooLargeError(
                f"{total} tokens do not fit a KV cache of {self.profile.kv_tokens} tokens, even alone"
            )
        self._run_until(now, planning=False)
        self._sequence += 1
        priority = request.priority if self.options.order is EngineOrder.PRIORITY else 0
        run = _Run(request=request, sequence=self._sequence, submitted=now, key=(priority, self._sequence))
        self._runs[request.request_id] = run
        ready = max(now + self.options.overhead_seconds, self._clock)
        heapq.heappush(self._incoming, (ready, run.sequence, run))
        self._shorten(ready)

    def cancel(self, now: float, request_id: str) -> bool:
        """Withdraw a request and free what it holds at once; the step in progress keeps its end.

        Returns whether it was there (False once it has finished).
        """
        self._run_until(now)
        run = self._runs.pop(request_id, None)
        if run is None:
            return False
        run.gone = True
        if run.entered >= 0:
            self._split(now)
            self._stop_decoding(run)
            self._free(run)
        elif request_id in self._prefilling:
            del self._prefilling[request_id]
            self._free(run)
        elif run.target:
            self._waiting_count -= 1
        return True

    def advance(self, now: float) -> list[Finished]:
        """Let time pass and return what finished since the last call, in order."""
        self._run_until(now)
        finished, self._finished = self._finished, []
        return finished

    def next_event(self) -> float | None:
        """Return the next instant at which something may change; None while nothing is to be done."""
        if self._finished:
            return self._clock
        if self._segment is not None:
            return self._segment.end
        if self._busy():
            return self._clock
        return max(self._clock, self._incoming[0][0]) if self._incoming else None

    def next_step(self, now: float) -> float | None:
        """Return when the next step is complete, so when decoding calls get their next token."""
        if self._segment is None:
            return self.next_event()
        return self._segment.at(min(self._segment.done(now) + 1, self._segment.steps))

    def progress(self, now: float, request_id: str) -> Progress | None:
        """Say how far a request is; None where it is unknown, finished or cancelled."""
        run = self._runs.get(request_id)
        if run is None:
            return None
        written = run.generated
        if run.entered >= 0:
            written += self._steps - run.entered
            if self._segment is not None:
                written += min(self._segment.done(now), self._segment.steps)
        return Progress(
            output_tokens=min(written, run.request.output_tokens),
            started=run.started,
            first_token=run.first_token,
            cached_tokens=run.cached_tokens,
        )

    def counts(self) -> EngineCounts:
        """Count what runs, waits and is stored, as of the last call."""
        return EngineCounts(
            running=len(self._decoding) + len(self._prefilling),
            waiting=self._waiting_count,
            used_blocks=self.cache.used,
            capacity_blocks=self.cache.capacity,
            cached_blocks=self.cache.cached,
            preemptions=self._preemptions,
            prefix_queries=self._queried,
            prefix_hits=self._hit,
        )

    # How time passes

    def _run_until(self, now: float, *, planning: bool = True) -> None:
        """Let time pass. Without ``planning`` no step begins at ``now`` itself: more may be handed in then."""
        while True:
            if self._segment is None:
                if planning or self._clock < now:
                    self._plan(now, at_now=planning)
                if self._segment is None:
                    return
            if self._segment.end > now:
                self._let_in(now)
                return
            self._complete(self._segment)

    def _busy(self) -> bool:
        return bool(self._decoding or self._prefilling or self._waiting_count)

    def _plan(self, now: float, *, at_now: bool) -> None:
        """Begin the next steps, at the last boundary or when something comes in, not after ``now``."""
        if not self._busy():
            self._waiting.clear()
            while self._incoming and self._incoming[0][2].gone:
                heapq.heappop(self._incoming)
            if not self._incoming:
                return
            begins = max(self._clock, self._incoming[0][0])
            if begins > now or (begins == now and not at_now):
                return
            self._clock = begins
        self._let_in(self._clock)
        self._make_room()
        chunks = self._schedule_prefill()
        batch = len(self._decoding)
        if not batch and not chunks:
            return
        p = self.profile
        seconds = p.t0 + p.t1 * batch + p.t2 * self._context
        for run, chunk in chunks:
            seconds += chunk * (p.c1 + p.c2 * (run.computed + chunk / 2))
        steps = 1 if chunks else self._jump()
        self._segment = _Segment(
            start=self._clock, steps=steps, first=seconds, growth=p.t2 * batch, chunks=chunks
        )
        if self._incoming:
            self._shorten(self._incoming[0][0])

    def _let_in(self, now: float) -> None:
        """Queue what has come in; a step in progress is not disturbed by it."""
        while self._incoming and self._incoming[0][0] <= now:
            run = heapq.heappop(self._incoming)[2]
            if not run.gone:
                run.target = run.request.prompt_tokens
                self._wait(run)

    def _wait(self, run: _Run) -> None:
        heapq.heappush(self._waiting, (run.key, run))
        self._waiting_count += 1

    def _jump(self) -> int:
        """Return how many decode-only steps can be taken at once: to the next end, or until blocks run out."""
        while (
            self._ends[0][2].gone
            or self._ends[0][2].entered < 0
            or self._ends[0][0] != self._end_of(self._ends[0][2])
        ):
            heapq.heappop(self._ends)
        steps = self._ends[0][0] - self._steps
        if self._growth(steps) <= self.cache.free:
            return steps
        low, high = 1, steps  # one step fits: room was made for it
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._growth(middle) <= self.cache.free else (low, middle - 1)
        return low

    @staticmethod
    def _end_of(run: _Run) -> int:
        return run.entered + run.request.output_tokens - run.generated

    def _growth(self, steps: int) -> int:
        """Return the new blocks that the decoding calls need over the next steps."""
        size = self.options.block_tokens
        rounds, rest = divmod(steps, size)
        blocks = rounds * len(self._decoding)
        for step in range(self._steps + 1, self._steps + rest + 1):
            blocks += self._residues[step % size]
        return blocks

    def _shorten(self, at: float) -> None:
        """End a jump at the first boundary at or after an instant, where a newcomer could be let in."""
        segment = self._segment
        if (
            segment is None
            or segment.steps == 1
            or len(self._decoding) + len(self._prefilling) >= self.profile.slots
        ):
            return
        done = segment.done(at)
        segment.steps = max(1, min(segment.steps, done if segment.at(done) >= at else done + 1))

    def _split(self, now: float) -> None:
        """Account for the steps that are complete and leave the one in progress as it is."""
        segment = self._segment
        if segment is None or segment.chunks:
            return
        done = min(segment.done(now), segment.steps - 1)
        start, length = segment.at(done), segment.at(done + 1) - segment.at(done)
        if done:
            self._step(done)
        self._segment = _Segment(start=start, steps=1, first=length, growth=0.0)

    def _complete(self, segment: _Segment) -> None:
        self._segment = None
        self._clock = segment.end
        self._step(segment.steps)
        while self._ends and self._ends[0][0] <= self._steps:
            run = heapq.heappop(self._ends)[2]
            if not run.gone and run.entered >= 0 and self._end_of(run) <= self._steps:
                self._stop_decoding(run)
                self._finish(run)
        for run, chunk in segment.chunks:
            if not run.gone and run.request.request_id in self._prefilling:
                self._prefilled(run, chunk)

    def _step(self, steps: int) -> None:
        self.cache.take(self._growth(steps))
        self._steps += steps
        self._context += steps * len(self._decoding)

    # Prefill

    def _schedule_prefill(self) -> list[tuple[_Run, int]]:
        """Share the step's token budget among what prefills, then let in what waits while there is room."""
        budget = self.options.step_tokens - len(self._decoding)
        chunks: list[tuple[_Run, int]] = []
        for run in self._prefilling.values():
            if budget <= 0:
                return chunks
            chunk = min(budget, run.target - run.computed)
            chunks.append((run, chunk))
            budget -= chunk
        while budget > 0 and (head := self._head()) is not None and self._admit(head):
            chunk = min(budget, head.target - head.computed)
            chunks.append((head, chunk))
            budget -= chunk
        return chunks

    def _head(self) -> _Run | None:
        while self._waiting and self._waiting[0][1].gone:
            heapq.heappop(self._waiting)
        return self._waiting[0][1] if self._waiting else None

    def _admit(self, run: _Run) -> bool:
        """Start the head of the waiting queue where a slot and the blocks for all of its context are free."""
        if len(self._decoding) + len(self._prefilling) >= self.profile.slots:
            return False
        prefix = run.request.prefix
        found = self.cache.found(prefix, limit=run.target - 1)
        cached = sum(block.tokens for block in prefix[:found])
        # Room for one token more than it has, and for one of each call that decodes, so that the
        # newcomer is not the reason for a preemption in this very step.
        blocks = self._blocks(prefix[found:], run.target + 1 - cached)
        if blocks + self.cache.idle_among(prefix[:found]) + self._growth(1) > self.cache.free:
            return False
        heapq.heappop(self._waiting)
        self._waiting_count -= 1
        for block in prefix[:found]:
            self.cache.hold(block)
        run.shared, run.shared_tokens, run.computed = found, cached, cached
        run.blocks = blocks
        self.cache.take(blocks)
        if run.started is None:
            run.started = self._clock
            run.cached_tokens = cached
            self._queried += run.request.prompt_tokens
            self._hit += cached
        self._prefilling[run.request.request_id] = run
        return True

    def _prefilled(self, run: _Run, chunk: int) -> None:
        run.computed += chunk
        prefix = run.request.prefix
        while run.shared < len(prefix) and run.shared_tokens + prefix[run.shared].tokens <= run.computed:
            moved = self.cache.publish(prefix[run.shared])
            if not moved:
                break
            run.shared_tokens += prefix[run.shared].tokens
            run.shared += 1
            run.blocks -= moved
        if run.computed < run.target:
            return
        del self._prefilling[run.request.request_id]
        run.generated += 1
        if run.first_token is None:
            run.first_token = self._clock
        if run.generated >= run.request.output_tokens:
            self._finish(run)
        else:
            self._start_decoding(run)

    def _blocks(self, prefix: tuple[PrefixBlock, ...], tokens: int) -> int:
        """Return the blocks of so many tokens that begin with a prefix not in the cache."""
        if not self.cache.keeps_prefixes:
            return self.cache.blocks(tokens)
        own = tokens - sum(block.tokens for block in prefix)
        return sum(self.cache.blocks(block.tokens) for block in prefix) + self.cache.blocks(own)

    # Decode

    def _start_decoding(self, run: _Run) -> None:
        run.entered = self._steps
        self._decoding[run.request.request_id] = run
        heapq.heappush(self._ends, (self._end_of(run), run.sequence, run))
        self._context += run.context
        self._residues[self._residue(run)] += 1

    def _residue(self, run: _Run) -> int:
        """Return at which step, modulo the block size, a run's next token needs a new block."""
        private = run.context - run.shared_tokens
        return (run.entered - private + 1) % self.options.block_tokens

    def _stop_decoding(self, run: _Run) -> None:
        del self._decoding[run.request.request_id]
        self._residues[self._residue(run)] -= 1
        written = self._steps - run.entered
        self._context -= run.context + written
        run.generated += written
        run.blocks = self.cache.blocks(run.context - run.shared_tokens)
        run.entered = -1

    def _make_room(self) -> None:
        """Preempt, the least important first, until every decoding call has a block for its next token."""
        while self._decoding and self._growth(1) > self.cache.free:
            victim = max([*self._decoding.values(), *self._prefilling.values()], key=lambda run: run.key)
            if victim.entered >= 0:
                self._stop_decoding(victim)
            else:
                del self._prefilling[victim.request.request_id]
            self._free(victim)
            victim.target, victim.computed = victim.context, 0
            victim.preemptions += 1
            self._preemptions += 1
            self._wait(victim)

    # Ends

    def _free(self, run: _Run) -> None:
        self.cache.give_back(run.blocks)
        self.cache.release(run.request.prefix[: run.shared])
        run.blocks = run.shared = run.shared_tokens = 0

    def _finish(self, run: _Run) -> None:
        self._free(run)
        del self._runs[run.request.request_id]
        run.gone = True
        self._finished.append(
            Finished(
                request_id=run.request.request_id,
                submitted=run.submitted,
                started=run.started if run.started is not None else self._clock,
                first_token=run.first_token if run.first_token is not None else self._clock,
                finished=self._clock,
                cached_tokens=run.cached_tokens,
                output_tokens=run.generated,
                preemptions=run.preemptions,
            )
        )
