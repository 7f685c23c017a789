"""Sustainable rate: how many queries a second a fleet takes under a policy while enough of them are in time."""

from collections.abc import Callable

TOLERANCE = 0.02
"""Ratio, less one, of the bounds between which a rate is known in the end."""
WIDEST = 64.0
"""Ratio to the first guess beyond which nothing is looked for."""


def sustainable_rate(
    holds: Callable[[float], bool], *, guess: float, tolerance: float = TOLERANCE
) -> float | None:
    """Return the highest arrival rate that holds, by bisection; None if none within ``WIDEST`` of the guess does.

    ``holds`` says of a rate whether enough queries are in time, with the same queries for every rate, closer
    together or wider apart. It need not be monotone to the last query: what is returned held, and what is
    ``tolerance`` above it did not, or lies ``WIDEST`` above the guess.
    """
    if not guess > 0:
        raise ValueError(f"a rate is a positive number of queries a second, not {guess!r}")
    low = high = guess
    if holds(guess):
        while holds(high := low * 2):
            low = high
            if low >= guess * WIDEST:
                return low
    else:
        while not holds(low := high / 2):
            high = low
            if high <= guess / WIDEST:
                return None
    while high > low * (1 + tolerance):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
