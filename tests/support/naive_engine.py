"""Both engine models once more, token by token and counting everything anew: slow, short, and without a heap.

What the real ones jump over is walked through here, so a property test can hold them to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from hexflow_scheduler import PrefixBlock, Profile
from hexflow_simulator import EngineOptions, EngineOrder, EngineRequest
from hexflow_simulator.authors import AuthorsSpeed

Times = dict[str, tuple[float, float, float]]
"""Start, first token and end of each request."""


@dataclass(eq=False)
class Naive:
    """Follow a request."""

    request: EngineRequest
    key: tuple[int, int]
    ready: float
    written: int = 0
    computed: int = 0
    target: int = 0
    shared: list[PrefixBlock] = field(default_factory=list)
    unpublished: list[PrefixBlock] = field(default_factory=list)
    started: float = inf
    first: float = inf
    preempted: int = 0

    @property
    def tokens(self) -> int:
        return self.request.prompt_tokens + self.written


def requests_in_order(asked: Sequence[tuple[float, EngineRequest]], options: EngineOptions) -> list[Naive]:
    by_priority = options.order is EngineOrder.PRIORITY
    return [
        Naive(request, (request.priority if by_priority else 0, number), at + options.overhead_seconds)
        for number, (at, request) in enumerate(asked)
    ]


def our_times(asked: Sequence[tuple[float, EngineRequest]], p: Profile, options: EngineOptions) -> Times:
    """Return the times of our engine model."""
    size, capacity = options.block_tokens, p.kv_tokens // options.block_tokens
    incoming = requests_in_order(asked, options)
    waiting: list[Naive] = []
    prefilling: list[Naive] = []
    decoding: list[Naive] = []
    idle: list[PrefixBlock] = []  # longest unused first
    times: Times = {}
    clock = -inf

    def up(tokens: int) -> int:
        return -(-tokens // size)

    def private(run: Naive, tokens: int) -> int:
        own = tokens - sum(block.tokens for block in (*run.shared, *run.unpublished))
        return sum(up(block.tokens) for block in run.unpublished) + up(own)

    def held() -> dict[str, int]:
        return {block.key: up(block.tokens) for run in (*prefilling, *decoding) for block in run.shared}

    def used() -> int:
        blocks = sum(private(run, run.tokens) for run in decoding)
        blocks += sum(private(run, run.target + 1) for run in prefilling)
        return blocks + sum(held().values())

    def growth() -> int:
        return sum(private(run, run.tokens + 1) - private(run, run.tokens) for run in decoding)

    def evict() -> None:
        while idle and used() + sum(up(block.tokens) for block in idle) > capacity:
            idle.pop(0)

    def let_go(run: Naive) -> None:
        """Leave its prefix to whoever comes next; the run itself is in no list any more."""
        for block in reversed(run.shared):
            if block.key not in held():
                idle.append(block)
        run.shared, run.unpublished = [], []

    def admit(run: Naive) -> bool:
        if len(prefilling) + len(decoding) >= p.slots:
            return False
        found: list[PrefixBlock] = []
        cached = 0
        known = {*held(), *(block.key for block in idle)}
        for block in run.request.prefix if options.keep_prefixes else ():
            cached += block.tokens
            if cached > run.target - 1 or block.key not in known:
                break
            found.append(block)
        run.shared = found
        run.unpublished = [*run.request.prefix[len(found) :]] if options.keep_prefixes else []
        needed = private(run, run.target + 1)
        needed += sum(up(block.tokens) for block in idle if block.key in {each.key for each in found})
        if needed + growth() > capacity - used():
            run.shared, run.unpublished = [], []
            return False
        run.computed = sum(block.tokens for block in found)
        keys = {block.key for block in found}
        idle[:] = [block for block in idle if block.key not in keys]
        waiting.remove(run)
        prefilling.append(run)
        if run.started == inf:
            run.started = clock
        evict()
        return True

    def finish(run: Naive) -> None:
        times[run.request.request_id] = (run.started, run.first, clock)
        let_go(run)

    def scheduled(run: Naive, budget: int) -> tuple[Naive, int]:
        """Give a run its chunk of the step; the blocks that it completes are there for whoever is next."""
        chunk = min(budget, run.target - run.computed)
        while run.unpublished and run.computed + chunk >= sum(
            block.tokens for block in (*run.shared, run.unpublished[0])
        ):
            block = run.unpublished.pop(0)
            run.shared.append(block)
            idle[:] = [other for other in idle if other.key != block.key]
        return run, chunk

    while incoming or waiting or prefilling or decoding:
        if not (waiting or prefilling or decoding):
            clock = max(clock, min(run.ready for run in incoming))
        for run in sorted((run for run in incoming if run.ready <= clock), key=lambda run: run.ready):
            incoming.remove(run)
            run.target = run.request.prompt_tokens
            waiting.append(run)
        while decoding and growth() > capacity - used():
            victim = max((*decoding, *prefilling), key=lambda run: run.key)
            (decoding if victim in decoding else prefilling).remove(victim)
            let_go(victim)
            victim.target = victim.tokens
            victim.preempted += 1
            waiting.append(victim)
        budget, chunks = options.step_tokens - len(decoding), []
        for run in (*prefilling,):
            if budget > 0:
                chunks.append(scheduled(run, budget))
                budget -= chunks[-1][1]
        while budget > 0 and waiting and admit(head := min(waiting, key=lambda run: run.key)):
            chunks.append(scheduled(head, budget))
            budget -= chunks[-1][1]
        clock += p.t0 + p.t1 * len(decoding) + p.t2 * sum(run.tokens for run in decoding)
        clock += sum(chunk * (p.c1 + p.c2 * (run.computed + chunk / 2)) for run, chunk in chunks)
        for run in decoding:
            run.written += 1
        evict()
        for run in [run for run in decoding if run.written == run.request.output_tokens]:
            decoding.remove(run)
            finish(run)
        for run, chunk in chunks:
            run.computed += chunk
            if run.computed == run.target:
                prefilling.remove(run)
                run.written += 1
                run.first = min(run.first, clock)
                if run.written == run.request.output_tokens:
                    finish(run)
                else:
                    decoding.append(run)
    return times


def authors_times(
    asked: Sequence[tuple[float, EngineRequest]], speed: AuthorsSpeed, options: EngineOptions
) -> Times:
    """Return the times of the authors' engine model."""
    incoming = requests_in_order(asked, options)
    waiting: list[Naive] = []
    decoding: list[Naive] = []
    times: Times = {}
    clock = since = -inf
    steps = 0

    def blocks(run: Naive) -> int:
        return -(-run.request.prompt_tokens // 16)

    while incoming or waiting or decoding:
        if not (waiting or decoding):
            clock, steps = max(clock, min(run.ready for run in incoming)), 0
            since = clock
        for run in [run for run in incoming if run.ready <= clock]:
            incoming.remove(run)
            waiting.append(run)
        head = min(waiting, key=lambda run: run.key, default=None)
        if head is not None and sum(map(blocks, decoding)) + blocks(head) <= speed.kv_blocks:
            waiting.remove(head)
            head.started = clock
            clock += speed.prefill_seconds(head.request.stage, head.request.prompt_tokens)
            head.first, head.written, since, steps = clock, 1, clock, 0
            decoding.append(head)
        else:
            steps += 1
            clock = since + steps * speed.decode
            for run in decoding:
                run.written += 1
        for run in [run for run in decoding if run.written == run.request.output_tokens]:
            decoding.remove(run)
            times[run.request.request_id] = (run.started, run.first, clock)
    return times
