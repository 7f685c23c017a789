"""Harm: by how much a placement raises the sum over all queries of (predicted latency / SLO)^e.

Arithmetic alone, on rows that ``outlook.py`` keeps: no instance, no call and no policy is known here.
Times are seconds; a latency is counted from its query's arrival.
"""

from collections.abc import Iterable

Row = tuple[object, float, float, float, float, float, float]
"""A call on an instance: its query, whatever that is; reading of the instance's token clock at its end (infinite
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
    but: object,
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
    ``output`` tokens ``margin`` seconds slower. The query ``but`` is left out. A sum that passes ``limit``
    is given up and returned as far as it got, since every term is zero or more.
    """
    total = 0.0
    for query, end, tokens, least, tail, elsewhere, slo in rows:
        left = end - clock
        if left > tokens:
            left = tokens
        elif left < least:
            left = least
        before = start + left * step + tail
        after = before + stall + margin * (left if left < output else output)
        if after <= elsewhere or query is but:
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
    for _, end, tokens, least, tail, elsewhere, _ in rows:
        left = max(least, min(tokens, end - clock))
        before = start + left * step + tail
        after = before + stall + margin * min(left, output)
        least_before = max(least_before, before, elsewhere)
        least_after = max(least_after, after, elsewhere)
    return least_before, least_after
