"""Chance that falls the same way on every machine and every Python.

Only ``Random.random()`` is drawn from: the one sequence that Python promises to keep for a seed.
"""

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Draw the same numbers everywhere."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed).random  # noqa: S311 - a sample, not a secret

    def below(self, bound: int) -> int:
        """Draw a whole number from 0 to ``bound`` - 1, each as likely as the others."""
        return int(self._draw() * bound)

    def low(self, bound: int) -> int:
        """Draw a whole number below ``bound``, small ones more often."""
        return int(self._draw() * self._draw() * bound)

    def chance(self, percent: int) -> bool:
        """Say yes ``percent`` times in a hundred."""
        return self._draw() * 100 < percent

    def pick(self, things: Sequence[T]) -> T:
        """Draw one of ``things``."""
        return things[self.below(len(things))]
