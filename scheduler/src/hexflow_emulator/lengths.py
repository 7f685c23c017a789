"""Distributions of output lengths, for load tests where what is said does not matter.

Written as on the command line: ``fixed:100``, ``uniform:50:400``, ``lognormal:400:0.5`` (median, sigma),
``exponential:300`` (mean).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from hexflow_emulator.errors import EmulatorError

FORMS = "fixed:TOKENS, uniform:LOW:HIGH, lognormal:MEDIAN:SIGMA or exponential:MEAN"

_DRAWS: dict[str, tuple[int, Callable[..., float]]] = {
    "fixed": (1, lambda _, tokens: tokens),
    "uniform": (2, lambda random, low, high: random.uniform(low, high + 1 - 1e-9)),
    "lognormal": (2, lambda random, median, sigma: random.lognormvariate(math.log(median), sigma)),
    "exponential": (1, lambda random, mean: random.expovariate(1 / mean)),
}


@dataclass(frozen=True, slots=True)
class Lengths:
    """Draw output lengths in tokens."""

    name: str
    values: tuple[float, ...]

    @classmethod
    def parse(cls, text: str) -> "Lengths":
        """Read a distribution. Raises EmulatorError with the forms that exist."""
        name, *rest = text.split(":")
        try:
            values = tuple(float(value) for value in rest)
        except ValueError:
            values = ()
        known = _DRAWS.get(name)
        positive = all(math.isfinite(value) and value > 0 for value in values)
        if known is None or len(values) != known[0] or not positive:
            raise EmulatorError(f"{text!r} is no distribution of lengths; write {FORMS}")
        return cls(name, values)

    def draw(self, random: Random) -> int:
        """Return a length of at least one token."""
        return max(1, int(_DRAWS[self.name][1](random, *self.values)))
