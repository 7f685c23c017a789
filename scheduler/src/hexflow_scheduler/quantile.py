"""Streaming quantiles: what was observed of one number, in a few dozen counters.

Observations fall into buckets whose bounds grow geometrically, so a quantile is off by at most 2.5 %
of itself whatever the distribution. Old observations fade: past ``MEMORY`` all counts are halved.
"""

from bisect import insort
from collections.abc import Mapping
from math import ceil, log, sqrt
from typing import Any

GROWTH = 1.05
"""Ratio of neighbouring bucket bounds."""
MEMORY = 2000.0
"""Weight of observations at which all are halved, so that drift is followed."""

_BELOW_ONE = -1
_LOG_GROWTH = log(GROWTH)


class Quantiles:
    """Keep the distribution of a number that is zero or more."""

    __slots__ = ("_buckets", "_counts", "_known", "_mean", "count")

    def __init__(self) -> None:
        self._counts: dict[int, float] = {}
        self._buckets: list[int] = []
        self._known: dict[float, float] = {}
        """Quantiles that were asked for since the last observation."""
        self._mean: float | None = None
        """The mean, where it was asked for since."""
        self.count = 0.0
        """Weight of the observations that are remembered."""

    def observe(self, value: float) -> None:
        """Add one observation."""
        self.count_in(bucket_of(value))

    def count_in(self, bucket: int) -> None:
        """Add one observation by its bucket (``bucket_of``)."""
        self._known.clear()
        self._mean = None
        if bucket not in self._counts:
            insort(self._buckets, bucket)
            self._counts[bucket] = 0.0
        self._counts[bucket] += 1.0
        self.count += 1.0
        if self.count > MEMORY:
            self._fade()

    def quantile(self, share: float) -> float:
        """Return the value below which ``share`` of the observations lie; 0 when empty."""
        known = self._known.get(share)
        if known is None:
            known = self._known[share] = self._reckon(share)
        return known

    def mean(self) -> float:
        """Return the mean of the observations; 0 when empty."""
        if self._mean is None:
            total = 0.0
            for bucket in self._buckets:
                total += self._counts[bucket] * _middle(bucket)
            self._mean = total / self.count if self.count else 0.0
        return self._mean

    def to_data(self) -> dict[str, Any]:
        """Return plain data that ``from_data`` takes."""
        return {"counts": [[bucket, self._counts[bucket]] for bucket in self._buckets]}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Quantiles":
        """Return the quantiles that ``to_data`` described."""
        made = cls()
        made._counts = {int(bucket): float(count) for bucket, count in data["counts"]}
        made._buckets = sorted(made._counts)
        made.count = sum(made._counts.values())
        return made

    def _reckon(self, share: float) -> float:
        counts = self._counts
        wanted = share * self.count
        reached = 0.0
        for bucket in self._buckets:
            reached += counts[bucket]
            if reached >= wanted:
                return _middle(bucket)
        return 0.0

    def _fade(self) -> None:
        for bucket in self._buckets:
            self._counts[bucket] /= 2
        self.count /= 2


def bucket_of(value: float) -> int:
    """Return the bucket that a value falls into."""
    return _BELOW_ONE if value < 1 else ceil(log(value) / _LOG_GROWTH)


def _middle(bucket: int) -> float:
    return 0.5 if bucket == _BELOW_ONE else GROWTH**bucket / sqrt(GROWTH)
