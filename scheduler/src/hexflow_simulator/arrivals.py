"""When queries arrive: processes that yield instants, each from its own random numbers.

Pure and endless (a replay ends with its recording): whoever asks for the times gives the random numbers
and stops when enough have come. Instants are seconds from the start, in order; rates are queries a second.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random
from typing import Protocol, Self

from hexflow_simulator.complaint import InvalidWorkload


class Arrivals(Protocol):
    """Yield the instants at which queries arrive."""

    def times(self, random: Random) -> Iterator[float]:
        """Yield instants in order, in seconds from the start."""
        ...

    def at_rate(self, rate: float) -> Self:
        """Return the same process with another mean rate, in queries a second."""
        ...


@dataclass(frozen=True, slots=True)
class Poisson:
    """Let queries arrive independently of each other: the coefficient of variation of the gaps is 1."""

    rate: float

    def __post_init__(self) -> None:
        _positive(rate=self.rate)

    def times(self, random: Random) -> Iterator[float]:
        """Yield instants in order."""
        now, gap, rate = 0.0, random.expovariate, self.rate
        while True:
            now += gap(rate)
            yield now

    def at_rate(self, rate: float) -> Self:
        """Return the same process with another mean rate."""
        return replace(self, rate=rate)


@dataclass(frozen=True, slots=True)
class Gamma:
    """Let the gaps follow a gamma distribution: with a coefficient of variation above 1, queries come in clumps."""

    rate: float
    cv: float

    def __post_init__(self) -> None:
        _positive(rate=self.rate, cv=self.cv)

    def times(self, random: Random) -> Iterator[float]:
        """Yield instants in order."""
        shape = 1 / self.cv**2
        scale = 1 / (self.rate * shape)
        now, gap = 0.0, random.gammavariate
        while True:
            now += gap(shape, scale)
            yield now

    def at_rate(self, rate: float) -> Self:
        """Return the same process with another mean rate."""
        return replace(self, rate=rate)


@dataclass(frozen=True, slots=True)
class Bursts:
    """Let the rate rise to ``factor`` times its usual one for ``seconds`` out of ``every`` seconds.

    ``rate`` is that between the bursts; the first begins after ``every - seconds``.
    """

    rate: float
    factor: float = 10.0
    seconds: float = 30.0
    every: float = 600.0

    def __post_init__(self) -> None:
        _positive(rate=self.rate, factor=self.factor, seconds=self.seconds)
        if self.every <= self.seconds:
            raise InvalidWorkload(f"a burst of {self.seconds} s cannot come every {self.every} s")

    def times(self, random: Random) -> Iterator[float]:
        """Yield instants in order."""
        calm = self.every - self.seconds
        work = calm + self.factor * self.seconds  # of one period, in seconds at the usual rate
        for unit in Poisson(self.rate).times(random):
            periods, rest = divmod(unit, work)
            yield periods * self.every + (rest if rest < calm else calm + (rest - calm) / self.factor)

    def at_rate(self, rate: float) -> Self:
        """Return the same process with another rate between its bursts."""
        return replace(self, rate=rate)


@dataclass(frozen=True, slots=True)
class Diurnal:
    """Let the rate swing like a day: ``rate * (1 - swing * cos(2 pi t / period))``, lowest at the start."""

    rate: float
    swing: float = 0.8
    period: float = 86_400.0

    def __post_init__(self) -> None:
        _positive(rate=self.rate, period=self.period)
        if not 0 <= self.swing <= 1:
            raise InvalidWorkload(f"a rate cannot swing by {self.swing}; give 0 to 1")

    def times(self, random: Random) -> Iterator[float]:
        """Yield instants in order (thinning of a process at the highest rate)."""
        turn = 2 * math.pi / self.period
        for now in Poisson(self.rate * (1 + self.swing)).times(random):
            if random.random() * (1 + self.swing) < 1 - self.swing * math.cos(turn * now):
                yield now

    def at_rate(self, rate: float) -> Self:
        """Return the same process with another mean rate."""
        return replace(self, rate=rate)


@dataclass(frozen=True, slots=True)
class Replay:
    """Let queries arrive when they did in a recording, as often as the recording is repeated.

    A repetition begins one mean gap after the last instant. Raises InvalidWorkload for instants out of order.
    """

    instants: tuple[float, ...]
    repeat: bool = True

    def __post_init__(self) -> None:
        if len(self.instants) < 2 or self.instants[-1] <= self.instants[0]:
            raise InvalidWorkload("a recording needs at least two instants that differ")
        if any(later < earlier for earlier, later in pairwise(self.instants)):
            raise InvalidWorkload("a recording's instants must be in order")

    @property
    def rate(self) -> float:
        """Mean rate of the recording."""
        return (len(self.instants) - 1) / (self.instants[-1] - self.instants[0])

    def times(self, random: Random) -> Iterator[float]:
        """Yield instants in order; takes no random number."""
        del random
        first = self.instants[0]
        length = self.instants[-1] - first + 1 / self.rate
        round_ = 0
        while True:
            for instant in self.instants:
                yield round_ * length + instant - first
            if not self.repeat:
                return
            round_ += 1

    def at_rate(self, rate: float) -> Self:
        """Return the recording stretched or pressed to another mean rate."""
        stretch = self.rate / rate
        return replace(self, instants=tuple(instant * stretch for instant in self.instants))


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise InvalidWorkload(f"{name} must be a number above zero, not {value}")
