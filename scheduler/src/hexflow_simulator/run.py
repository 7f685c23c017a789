"""One request inside a modelled engine, and the stretch of equal steps that it may be part of."""

import math
from dataclasses import dataclass, field

from hexflow_simulator.request import EngineRequest


@dataclass(slots=True, kw_only=True, eq=False)
class Run:
    """Follow one request through the engine."""

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
    """Whether it is finished or cancelled; heaps may still hold it."""

    @property
    def context(self) -> int:
        """Tokens it had when it last began to decode."""
        return self.request.prompt_tokens + self.generated

    @property
    def end(self) -> int:
        """Step count at which its last token is written, while it decodes."""
        return self.entered + self.request.output_tokens - self.generated


@dataclass(slots=True, kw_only=True)
class Segment:
    """Steps in progress: ``steps`` of them from ``start``, the first ``first`` seconds, each ``growth`` longer."""

    start: float
    steps: int
    first: float
    growth: float
    chunks: list[tuple[Run, int]] = field(default_factory=list)
    """Prefill of this (single) step: a run and the tokens it gets."""

    def at(self, steps: int) -> float:
        """Return when so many of the steps are complete."""
        return self.start + steps * self.first + self.growth * (steps * (steps - 1) / 2)

    @property
    def end(self) -> float:
        """When all of them are."""
        return self.at(self.steps)

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
