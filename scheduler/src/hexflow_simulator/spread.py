"""How a length or a count spreads: a table of equally likely values.

One draw is one look-up, so a million calls are made in seconds. Tables are made from the aggregates that
are published of a quantity (least, median, mean, 95th percentile, most) or from a named distribution. Knows no
workload.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

from hexflow_simulator.complaint import InvalidWorkload

BITS = 10
SIZE = 1 << BITS
"""Values of a table: a share is right to one in 1,024."""


@dataclass(frozen=True)
class Spread:
    """Hold the quantiles of a quantity, as whole numbers."""

    values: tuple[int, ...]
    """``SIZE`` of them, in order; each is as likely as any other."""

    def __post_init__(self) -> None:
        if len(self.values) != SIZE:
            raise InvalidWorkload(f"a spread has {SIZE} values, not {len(self.values)}")

    @cached_property
    def mean(self) -> float:
        """The mean of a draw."""
        return sum(self.values) / SIZE

    @property
    def least(self) -> int:
        """The smallest value that can be drawn."""
        return self.values[0]

    @property
    def most(self) -> int:
        """The largest."""
        return self.values[-1]

    def quantile(self, share: float) -> int:
        """Return the value that a share of the draws does not exceed."""
        return self.values[min(SIZE - 1, int(share * SIZE))]

    def plus(self, amount: int) -> "Spread":
        """Return the spread moved by an amount, never below zero."""
        return Spread(tuple(max(0, value + amount) for value in self.values))

    def or_none(self, share: float) -> "Spread":
        """Return the spread of a count that is zero in a share of the draws and this one in the others."""
        zeros = round(share * SIZE)
        kept = SIZE - zeros
        return Spread((0,) * zeros + tuple(self.values[int((at + 0.5) * SIZE / kept)] for at in range(kept)))


def constant(value: int) -> Spread:
    """Return the spread of what never varies."""
    return Spread((value,) * SIZE)


NONE = constant(0)
"""Never any."""
ONE = constant(1)
"""Always one."""


def evenly(least: int, most: int) -> Spread:
    """Return the spread in which each whole number from ``least`` to ``most`` is as likely as any other."""
    return Spread(tuple(least + (most - least + 1) * at // SIZE for at in range(SIZE)))


def through(*, least: float, median: float, mean: float, p95: float, most: float) -> Spread:
    """Return a spread with these aggregates.

    The quantile function goes through the four points; between two of them it is a power curve, with one
    exponent everywhere, chosen so that the mean is met. Raises InvalidWorkload if no curve does.
    """
    points = ((0.0, least), (0.5, median), (0.95, p95), (1.0, most))
    if not (0 <= least <= median <= p95 <= most):
        raise InvalidWorkload(f"quantiles must rise: {least}, {median}, {p95}, {most}")

    def quantiles(power: float) -> list[float]:
        found, segment = [], 0
        for at in range(SIZE):
            share = (at + 0.5) / SIZE
            while share > points[segment + 1][0]:
                segment += 1
            (low, left), (high, right) = points[segment], points[segment + 1]
            found.append(left + (right - left) * ((share - low) / (high - low)) ** power)
        return found

    return _solved(quantiles, mean=mean, bounds=(math.log(200), math.log(1 / 200)))


def lognormal(*, mean: float, sigma: float, least: int = 1, most: int = 1_000_000) -> Spread:
    """Return the log-normal spread of a mean, cut at ``least`` and ``most``; ``sigma`` is that of the logarithm."""
    normal = NormalDist()
    steps = [math.exp(sigma * normal.inv_cdf((at + 0.5) / SIZE)) for at in range(SIZE)]
    scale = mean * SIZE / sum(steps)
    return Spread(tuple(min(most, max(least, round(scale * step))) for step in steps))


def tilted(*, least: int, most: int, mean: float) -> Spread:
    """Return the spread over whole numbers in which each next one is so many times as likely, to meet a mean.

    A mean in the middle gives all the same weight; a smaller one a geometric distribution cut at ``most``.
    """

    def weights(tilt: float) -> list[float]:
        return [math.exp(tilt * (value - most)) for value in range(least, most + 1)]

    return _counts(least, weights, mean=mean, bounds=(-20.0, 20.0))


def declining(*, least: int, most: int, mean: float) -> Spread:
    """Return the spread over whole numbers from 1 up that falls like a power of them, to meet a mean.

    Long ones are rare, and less so than under a geometric distribution of the same mean.
    """
    if least < 1:
        raise InvalidWorkload(f"a power falls from 1 on, not from {least}")

    def weights(power: float) -> list[float]:
        return [(value / most) ** power for value in range(least, most + 1)]

    return _counts(least, weights, mean=mean, bounds=(-20.0, 20.0))


def binomial(*, least: int, most: int, mean: float) -> Spread:
    """Return ``least`` plus a binomial number of up to ``most - least``, with a mean between the two."""
    tries = most - least
    share = (mean - least) / tries
    if not 0 < share < 1:
        raise InvalidWorkload(f"a mean of {mean} does not lie between {least} and {most}")
    return _of_weights(
        least, [math.comb(tries, k) * share**k * (1 - share) ** (tries - k) for k in range(tries + 1)]
    )


def pooled(parts: Sequence[tuple[float, Spread]]) -> Spread:
    """Return the spread of a draw from one of several, by weight."""
    total = sum(weight for weight, _ in parts)
    values = sorted((value, weight / total / SIZE) for weight, spread in parts for value in spread.values)
    found, passed, place = [], values[0][1], 0
    for at in range(SIZE):
        share = (at + 0.5) / SIZE
        while passed < share and place < len(values) - 1:
            place += 1
            passed += values[place][1]
        found.append(values[place][0])
    return Spread(tuple(found))


def _counts(
    least: int, weights: Callable[[float], list[float]], *, mean: float, bounds: tuple[float, float]
) -> Spread:
    low, high = bounds
    for _ in range(60):
        middle = (low + high) / 2
        if _mean(least, weights(middle)) < mean:
            low = middle
        else:
            high = middle
    if abs(_mean(least, weights(low)) - mean) > 0.01 * mean:
        raise InvalidWorkload(f"a mean of {mean} does not fit that range")
    return _of_weights(least, weights(low))


def _mean(least: int, weights: Sequence[float]) -> float:
    return sum((least + k) * weight for k, weight in enumerate(weights)) / sum(weights)


def _of_weights(least: int, weights: Sequence[float]) -> Spread:
    total, passed, k = sum(weights), weights[0], 0
    values = []
    for at in range(SIZE):
        while passed / total < (at + 0.5) / SIZE and k < len(weights) - 1:
            k += 1
            passed += weights[k]
        values.append(least + k)
    return Spread(tuple(values))


def _solved(quantiles: Callable[[float], list[float]], *, mean: float, bounds: tuple[float, float]) -> Spread:
    low, high = bounds  # logarithms of the power; the mean rises from the first to the second
    for _ in range(50):
        middle = (low + high) / 2
        if sum(quantiles(math.exp(middle))) < mean * SIZE:
            low = middle
        else:
            high = middle
    spread = Spread(tuple(round(value) for value in quantiles(math.exp((low + high) / 2))))
    if abs(spread.mean - mean) > max(1.0, 0.02 * mean):
        raise InvalidWorkload(f"no spread between {spread.least} and {spread.most} has a mean of {mean}")
    return spread
