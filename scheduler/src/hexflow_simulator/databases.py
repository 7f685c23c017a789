"""The databases that queries are about: how often each is asked, and how long its schema is."""

from bisect import bisect
from collections.abc import Callable, Sequence
from itertools import accumulate
from random import Random

from hexflow_simulator.complaint import InvalidWorkload
from hexflow_simulator.shape import Database

ZIPF = 0.8
"""The k-th most popular database is asked in proportion to k to the power of minus this."""
SCHEMA_SIGMA = 0.35
"""Standard deviation of the logarithm of schema sizes."""

Choice = Callable[[Random], Database]


def choice(databases: Sequence[tuple[float, int]], *, name: str) -> Choice:
    """Return what draws one of some databases, given as share and tokens of the schema."""
    known = [Database(f"{name}{number}", tokens) for number, (_, tokens) in enumerate(databases)]
    if not known:
        raise InvalidWorkload("queries are about one database at least")
    if len(known) == 1:
        return lambda _: known[0]
    shares = list(accumulate(share for share, _ in databases))
    last, whole = len(known) - 1, shares[-1]
    return lambda random: known[min(last, bisect(shares, random.random() * whole))]


def zipf(count: int, *, mean_tokens: float, name: str) -> tuple[tuple[float, int], ...]:
    """Return ``count`` databases with sizes of their own, the mean over queries being ``mean_tokens``.

    The sizes depend on ``name`` and the place of the database alone, so that they are the same for every seed.
    """
    if count < 1:
        raise InvalidWorkload(f"queries are about one database at least, not {count}")
    shares = [place**-ZIPF for place in range(1, count + 1)]
    sizes = [Random(f"{name}/{place}").lognormvariate(0, SCHEMA_SIGMA) for place in range(count)]  # noqa: S311
    scale = mean_tokens * sum(shares) / sum(share * size for share, size in zip(shares, sizes, strict=True))
    return tuple((share, max(1, round(scale * size))) for share, size in zip(shares, sizes, strict=True))
