"""Harm: by how much a placement raises the sum over all queries of (predicted latency / SLO)^e.

Arithmetic alone, on rows that ``outlook.py`` keeps: no instance, no call and no policy is known here.
Times are seconds; a latency is counted from its query's arrival.
"""

from collections.abc import Iterable
from dataclasses import dataclass

Row = tuple[float, float, float, float, float, float]
"""A call on an instance: reading of the instance's token clock at its end (infinite
while it waits); tokens it gives in all; tokens it has left at least; seconds from its end to the end of its
query, less the query's arrival; latency of its query by the query's calls on other instances; SLO of its query.
"""


def rise(before: float, after: float, slo: float, exponent: float) -> float:
    """Return ``slo * ((after / slo)^e - (before / slo)^e)``: the harm done to one query, in seconds."""
    if exponent == 3.0:
        # The same without the difference of two large powers.
        return (after - before) * (after * after + after * before + before * before) / (slo * slo)
    return slo * float((after / slo) ** exponent - (before / slo) ** exponent)


def harm_to_others(
    rows: Iterable[Row],
    *,
    start: float,
    step: float,
    clock: float,
    stall: float,
    margin: float,
    output: float,
    exponent: float,
    limit: float,
) -> float:
    """Return the harm that a new call does to the queries that have one call each on an instance.

    ``start`` is the instant from which what runs goes on decoding, a token every ``step`` seconds, at token
    ``clock`` now. The new call stops all of them for ``stall`` seconds, and makes each of the next
    ``output`` tokens ``margin`` seconds slower. A sum that passes ``limit``
    is given up and returned as far as it got, since every term is zero or more.
    """
    total = 0.0
    for end, tokens, least, tail, elsewhere, slo in rows:
        left = end - clock
        if left > tokens:
            left = tokens
        elif left < least:
            left = least
        before = start + left * step + tail
        after = before + stall + margin * (left if left < output else output)
        if after <= elsewhere:
            continue
        if before < elsewhere:
            before = elsewhere
        if exponent == 3.0:
            total += (after - before) * (after * after + after * before + before * before) / (slo * slo)
        else:
            total += slo * float((after / slo) ** exponent - (before / slo) ** exponent)
        if total > limit:
            break
    return total


@dataclass(slots=True)
class Pressure:
    """Say what a delay costs at least to the queries of an instance, harm for each second.

    A power's slope grows, so the slope at the latency without the delay is a lower bound. Latencies do not
    fall while nothing changes on the instance, so that the bound stays one.
    """

    slope: float = 0.0
    """Of a second by which all are stopped."""
    long: float = 0.0
    """Of a second by which each of the next ``LONG`` tokens is slower."""
    middle: float = 0.0
    short: float = 0.0

    def harm(self, stall: float, margin: float, output: float) -> float:
        """Return the least harm of a call that stalls all and then slows ``output`` tokens by ``margin``."""
        if output >= LONG:
            return self.slope * stall + self.long * margin
        if output >= MIDDLE:
            return self.slope * stall + self.middle * margin
        if output >= SHORT:
            return self.slope * stall + self.short * margin
        return self.slope * stall


LONG, MIDDLE, SHORT = 256.0, 64.0, 16.0
"""Tokens for which a pressure is reckoned; the largest that a call reaches serve as its bound."""
SURELY = 1 - 1e-6
"""Factor on a bound, so that rounding (of instants since 1970, too) does not take it past what it bounds."""


def pressure(rows: Iterable[Row], *, start: float, step: float, clock: float, exponent: float) -> Pressure:
    """Return the pressure of the queries that have one call each on an instance."""
    all_slopes = long = middle = short = 0.0
    for end, tokens, least, tail, elsewhere, slo in rows:
        left = end - clock
        if left > tokens:
            left = tokens
        elif left < least:
            left = least
        before = start + left * step + tail
        if before < elsewhere:
            continue
        late = before / slo
        slope = 3.0 * late * late if exponent == 3.0 else exponent * float(late ** (exponent - 1.0))
        all_slopes += slope
        long += slope * (least if least < LONG else LONG)
        middle += slope * (least if least < MIDDLE else MIDDLE)
        short += slope * (least if least < SHORT else SHORT)
    return Pressure(all_slopes, long, middle, short)


def latencies(
    rows: Iterable[Row],
    *,
    start: float,
    step: float,
    clock: float,
    stall: float,
    margin: float,
    output: float,
) -> tuple[float, float]:
    """Return the latency of one query by all its ``rows`` on an instance: without the new call, and with it."""
    least_before = least_after = 0.0
    for end, tokens, least, tail, elsewhere, _ in rows:
        left = max(least, min(tokens, end - clock))
        before = start + left * step + tail
        after = before + stall + margin * min(left, output)
        least_before = max(least_before, before, elsewhere)
        least_after = max(least_after, after, elsewhere)
    return least_before, least_after
