"""Levels: classes of like numbers, each reaching from one power of a ratio to the next.

They are counted from the first number seen, so that nothing depends on a unit.
"""

from math import exp, floor, log


class Levels:
    """Put positive numbers into classes of which there are few, however many numbers there are."""

    __slots__ = ("_log_ratio", "_unit")

    def __init__(self, ratio: float) -> None:
        self._log_ratio = log(ratio)
        self._unit: float | None = None

    def level(self, number: float) -> int:
        """Return the class of a number above zero; that of the first is 0, those of smaller ones negative."""
        if self._unit is None:
            self._unit = number
        # Rounding lets equals be equal: a quotient may differ in its last bit with the unit.
        return floor(round(log(number / self._unit) / self._log_ratio, 9))

    def number(self, level: int) -> float:
        """Return the number that stands for a class: its lower end."""
        return (self._unit or 1.0) * exp(level * self._log_ratio)
