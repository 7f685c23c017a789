"""One request inside a modelled engine, and the stretch of equal steps that it may be part of."""

import math

from hexflow_simulator.request import EngineRequest


class Run:
    """Follow one request through the engine."""

    __slots__ = (
        "blocks",
        "cached_tokens",
        "computed",
        "entered",
        "first_token",
        "generated",
        "gone",
        "key",
        "output_tokens",
        "preemptions",
        "prompt_tokens",
        "request",
        "sequence",
        "shared",
        "shared_tokens",
        "started",
        "submitted",
        "target",
    )

    def __init__(
        self, *, request: EngineRequest, sequence: int, submitted: float, key: tuple[int, int]
    ) -> None:
        self.request = request
        self.prompt_tokens = request.prompt_tokens
        self.output_tokens = request.output_tokens
        self.sequence = sequence
        self.submitted = submitted
        self.key = key
        """Place in the waiting queue; the largest of all is preempted first."""
        self.computed = 0
        """Tokens whose KV is there, while it prefills."""
        self.target = 0
        """Tokens to prefill: the prompt, and what it had written before a preemption."""
        self.generated = 0
        """Tokens written before it last began to decode."""
        self.entered = -1
        """Step count at which it began to decode; -1 while it does not."""
        self.shared = 0
        """Leading prefix blocks it holds."""
        self.shared_tokens = 0
        self.blocks = 0
        """Private blocks; while it decodes, those at ``entered``."""
        self.started: float | None = None
        self.first_token: float | None = None
        self.cached_tokens = 0
        self.preemptions = 0
        self.gone = False
        """Whether it is finished or cancelled; heaps may still hold it."""

    @property
    def context(self) -> int:
        """Tokens it had when it last began to decode."""
        return self.prompt_tokens + self.generated

    @property
    def end(self) -> int:
        """Step count at which its last token is written, while it decodes."""
        return self.entered + self.output_tokens - self.generated


class Segment:
    """Steps in progress: ``steps`` of them from ``start``, the first ``first`` seconds, each ``growth`` longer."""

    __slots__ = ("chunks", "end", "first", "growth", "start", "steps")

    def __init__(
        self,
        *,
        start: float,
        steps: int,
        first: float,
        growth: float,
        chunks: list[tuple[Run, int]] | None = None,
    ) -> None:
        self.start = start
        self.steps = steps
        self.first = first
        self.growth = growth
        self.chunks: list[tuple[Run, int]] = chunks or []
        """Prefill of this (single) step: a run and the tokens it gets."""
        self.end = self.at(steps)
        """When all of the steps are complete."""

    def at(self, steps: int) -> float:
        """Return when so many of the steps are complete."""
        return self.start + steps * self.first + self.growth * (steps * (steps - 1) / 2)

    def shorten(self, steps: int) -> None:
        """Leave out all but the first steps."""
        self.steps = steps
        self.end = self.at(steps)

    def done(self, now: float) -> int:
        """Return how many steps are complete at ``now``."""
        if now < self.at(1):
            return 0
        passed = now - self.start
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
