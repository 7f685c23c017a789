"""Draws: numbers as good as random that come out the same in every replay.

The n-th draw under a seed depends on both and nothing else.
"""

MASK = (1 << 64) - 1


def draw(seed: int, count: int, below: int) -> int:
    """Return the ``count``-th number of a seed, from 0 to ``below - 1`` (SplitMix64, Steele et al. 2014)."""
    state = (seed * 0xD1B54A32D192ED03 + (count + 1) * 0x9E3779B97F4A7C15) & MASK
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & MASK
    return (state ^ (state >> 31)) % below


def draw_two(seed: int, count: int, below: int) -> tuple[int, int]:
    """Return two different numbers below ``below``, which is at least 2, all pairs being as likely."""
    first = draw(seed, 2 * count, below)
    second = draw(seed, 2 * count + 1, below - 1)
    return first, second + (second >= first)
