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

from hexflow_scheduler import PrefixBlock, Profile
from hexflow_simulator.batch import DecodeBatch
from hexflow_simulator.kvcache import KVCache
from hexflow_simulator.request import (
    EngineCounts,
    EngineOptions,
    EngineOrder,
    EngineRequest,
    Finished,
    Progress,
    RequestTooLargeError,
)
from hexflow_simulator.run import Run, Segment

_MANY = 10**12
"""More tokens than any call writes."""


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
        self._runs: dict[str, Run] = {}
        self._incoming: list[tuple[float, int, Run]] = []
        self._waiting: list[tuple[tuple[int, int], Run]] = []
        self._waiting_count = 0
        self._prefilling: dict[str, Run] = {}
        self._segment: Segment | None = None
        self._finished: list[Finished] = []
        self._preemptions = 0
        self._fewest = _MANY
        """Fewest tokens that a call writes which does not decode yet; may be too few, never too many."""
        self._queried = 0
        self._hit = 0
        self._batch = DecodeBatch(block_tokens=self.options.block_tokens)

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
        # Each part of a prompt wastes less than a block, so most need no exact count.
        most = total // self.options.block_tokens + len(request.prefix) + 1
        if most > self.cache.capacity and self._blocks(request.prefix, total) > self.cache.capacity:
            raise RequestTooLargeError(
                f"{total} tokens do not fit a KV cache of {self.profile.kv_tokens} tokens, even alone"
            )
        self._run_until(now, planning=False)
        self._sequence += 1
        priority = request.priority if self.options.order is EngineOrder.PRIORITY else 0
        run = Run(request=request, sequence=self._sequence, submitted=now, key=(priority, self._sequence))
        self._runs[request.request_id] = run
        self._fewest = min(self._fewest, request.output_tokens)
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
            self._leave(run)
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

    def next_finish(self) -> float | None:
        """Return an instant, as late as is known at once, before which nothing finishes.

        None while nothing is to be done. What is handed in or withdrawn later may bring it forward or put it off.
        """
        segment = self._segment
        if segment is None or self._finished:
            return self.next_event()
        steps = self._fresh_steps()
        if len(self._batch):
            steps = min(steps, self._batch.remaining() - segment.steps)
        if steps <= 0:
            return segment.end
        return segment.end + steps * self.profile.t0

    def _fresh_steps(self) -> int:
        """Return the fewest steps after this segment in which a call that does not decode yet could finish."""
        if not (self._incoming or self._waiting_count or self._prefilling):
            self._fewest = _MANY
        return self._fewest - 1

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
            written += self._batch.steps - run.entered
            if self._segment is not None:
                written += min(self._segment.done(now), self._segment.steps)
        return Progress(
            output_tokens=min(written, run.output_tokens),
            started=run.started,
            first_token=run.first_token,
            cached_tokens=run.cached_tokens,
        )

    def counts(self) -> EngineCounts:
        """Count what runs, waits and is stored, as of the last call."""
        return EngineCounts(
            running=len(self._batch) + len(self._prefilling),
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
            segment = self._segment
            if segment is None and (planning or self._clock < now):
                segment = self._plan(now, at_now=planning)
            if segment is None:
                return
            if segment.end > now:
                self._let_in(now)
                return
            self._complete(segment)

    def _busy(self) -> bool:
        return len(self._batch) > 0 or len(self._prefilling) > 0 or self._waiting_count > 0

    def _plan(self, now: float, *, at_now: bool) -> Segment | None:
        """Begin the next steps, at the last boundary or when something comes in, not after ``now``."""
        if not self._busy():
            self._waiting.clear()
            while self._incoming and self._incoming[0][2].gone:
                heapq.heappop(self._incoming)
            if not self._incoming:
                return None
            begins = max(self._clock, self._incoming[0][0])
            if begins > now or (begins == now and not at_now):
                return None
            self._clock = begins
        self._let_in(self._clock)
        if len(self._batch) > self.cache.free:  # no call needs more than one block a step
            self._make_room()
        chunks = self._schedule_prefill()
        batch = len(self._batch)
        if not batch and not chunks:
            return None
        p = self.profile
        seconds = p.t0 + p.t1 * batch + p.t2 * self._batch.context
        for run, chunk in chunks:
            seconds += chunk * (p.c1 + p.c2 * (run.computed + chunk / 2))
        steps = 1 if chunks else self._batch.jump(free_blocks=self.cache.free)
        segment = self._segment = Segment(
            start=self._clock, steps=steps, first=seconds, growth=p.t2 * batch, chunks=chunks
        )
        if self._incoming:
            self._shorten(self._incoming[0][0])
        return segment

    def _let_in(self, now: float) -> None:
        """Queue what has come in; a step in progress is not disturbed by it."""
        while self._incoming and self._incoming[0][0] <= now:
            run = heapq.heappop(self._incoming)[2]
            if not run.gone:
                run.target = run.prompt_tokens
                self._wait(run)

    def _wait(self, run: Run) -> None:
        heapq.heappush(self._waiting, (run.key, run))
        self._waiting_count += 1

    def _shorten(self, at: float) -> None:
        """End a jump at the first boundary at or after an instant, where a newcomer could be let in."""
        segment = self._segment
        if (
            segment is None
            or segment.steps == 1
            or len(self._batch) + len(self._prefilling) >= self.profile.slots
        ):
            return
        done = segment.done(at)
        segment.shorten(max(1, min(segment.steps, done if segment.at(done) >= at else done + 1)))

    def _split(self, now: float) -> None:
        """Account for the steps that are complete and leave the one in progress as it is."""
        segment = self._segment
        if segment is None or segment.chunks:
            return
        done = min(segment.done(now), segment.steps - 1)
        start, length = segment.at(done), segment.at(done + 1) - segment.at(done)
        if done:
            self._step(done)
        self._segment = Segment(start=start, steps=1, first=length, growth=0.0)

    def _complete(self, segment: Segment) -> None:
        self._segment = None
        self._clock = segment.end
        self._step(segment.steps)
        for run in self._batch.ended():
            self._settle_blocks(run)
            self._finish(run)
        for run, chunk in segment.chunks:
            if not run.gone and run.request.request_id in self._prefilling:
                self._prefilled(run, chunk)

    def _step(self, steps: int) -> None:
        self.cache.take(self._batch.growth(steps))
        self._batch.take(steps)

    # Prefill

    def _schedule_prefill(self) -> list[tuple[Run, int]]:
        """Share the step's token budget among what prefills, then let in what waits while there is room."""
        chunks: list[tuple[Run, int]] = []
        if not self._prefilling and not self._waiting_count:
            return chunks
        budget = self.options.step_tokens - len(self._batch)
        for run in self._prefilling.values():
            if budget <= 0:
                return chunks
            chunk = min(budget, run.target - run.computed)
            chunks.append((run, chunk))
            self._publish(run, run.computed + chunk)
            budget -= chunk
        while budget > 0 and (head := self._head()) is not None and self._admit(head):
            chunk = min(budget, head.target - head.computed)
            chunks.append((head, chunk))
            self._publish(head, head.computed + chunk)
            budget -= chunk
        return chunks

    def _head(self) -> Run | None:
        while self._waiting and self._waiting[0][1].gone:
            heapq.heappop(self._waiting)
        return self._waiting[0][1] if self._waiting else None

    def _admit(self, run: Run) -> bool:
        """Start the head of the waiting queue where a slot and the blocks for all of its context are free."""
        if len(self._batch) + len(self._prefilling) >= self.profile.slots:
            return False
        prefix = run.request.prefix
        found = self.cache.found(prefix, limit=run.target - 1)
        cached = 0
        for block in prefix[:found]:
            cached += block.tokens
        # Room for one token more than it has, and for one of each call that decodes, so that the
        # newcomer is not the reason for a preemption in this very step.
        blocks = self._blocks(prefix[found:], run.target + 1 - cached)
        if blocks + self.cache.idle_among(prefix[:found]) + self._batch.growth(1) > self.cache.free:
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
            self._queried += run.prompt_tokens
            self._hit += cached
        self._prefilling[run.request.request_id] = run
        return True

    def _publish(self, run: Run, computed: int) -> None:
        """Let others find the prefix blocks that this step completes, those of the same step among them.

        So vLLM does: it names blocks when it schedules them, and within a step a layer's keys are written
        before they are read.
        """
        prefix = run.request.prefix
        while run.shared < len(prefix) and run.shared_tokens + prefix[run.shared].tokens <= computed:
            moved = self.cache.publish(prefix[run.shared])
            if not moved:
                break
            run.shared_tokens += prefix[run.shared].tokens
            run.shared += 1
            run.blocks -= moved

    def _prefilled(self, run: Run, chunk: int) -> None:
        run.computed += chunk
        if run.computed < run.target:
            return
        del self._prefilling[run.request.request_id]
        run.generated += 1
        if run.first_token is None:
            run.first_token = self._clock
        if run.generated >= run.output_tokens:
            self._finish(run)
        else:
            self._batch.enter(run)

    def _blocks(self, prefix: tuple[PrefixBlock, ...], tokens: int) -> int:
        """Return the blocks of so many tokens that begin with a prefix not in the cache."""
        if not self.cache.keeps_prefixes:
            return self.cache.blocks(tokens)
        blocks, own = 0, tokens
        for block in prefix:
            blocks += self.cache.blocks(block.tokens)
            own -= block.tokens
        return blocks + self.cache.blocks(own)

    # Decode

    def _make_room(self) -> None:
        """Preempt, the least important first, until every decoding call has a block for its next token."""
        while self._batch and self._batch.growth(1) > self.cache.free:
            victim = max([*self._batch.runs.values(), *self._prefilling.values()], key=lambda run: run.key)
            if victim.entered >= 0:
                self._leave(victim)
            else:
                del self._prefilling[victim.request.request_id]
            self._free(victim)
            victim.target, victim.computed = victim.context, 0
            self._fewest = min(self._fewest, victim.output_tokens - victim.generated)
            victim.preemptions += 1
            self._preemptions += 1
            self._wait(victim)

    # Ends

    def _leave(self, run: Run) -> None:
        self._batch.leave(run)
        self._settle_blocks(run)

    def _settle_blocks(self, run: Run) -> None:
        """Write down the blocks that a run has come to while it decoded."""
        run.blocks = self.cache.blocks(run.context - run.shared_tokens)

    def _free(self, run: Run) -> None:
        self.cache.give_back(run.blocks)
        self.cache.release(run.request.prefix[: run.shared])
        run.blocks = run.shared = run.shared_tokens = 0

    def _finish(self, run: Run) -> None:
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
