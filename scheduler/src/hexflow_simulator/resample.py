"""Traffic like that of a trace: the trace itself, cut into blocks that are drawn anew (a block bootstrap).

Neighbours stay together, so bursts stay bursts; how much of each kind of traffic there was is what changes.
What holds in most of the drawn traces does not hang on the accidents of the one that was recorded.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil, sqrt
from random import Random

from hexflow_scheduler import PrefixBlock
from hexflow_simulator.query import SimulatedCall, SimulatedQuery, SimulatedStage


def resampled(
    queries: Sequence[SimulatedQuery], seed: int, *, block: int | None = None
) -> list[SimulatedQuery]:
    """Return as many queries as there are, drawn block by block with the gaps before them; by default sqrt(n) long.

    A query that is drawn twice is two queries: what only its own calls shared is not shared between the two.
    """
    if not queries:
        return []
    length = block or max(1, ceil(sqrt(len(queries))))
    random = Random(seed)  # noqa: S311
    own = _own_keys(queries)
    mean_gap = (queries[-1].arrival - queries[0].arrival) / max(1, len(queries) - 1)
    made: list[SimulatedQuery] = []
    now = 0.0
    while len(made) < len(queries):
        first = random.randrange(len(queries))
        for place in range(first, min(first + length, len(queries), first + len(queries) - len(made))):
            # The first query of the trace has nothing before it.
            now += queries[place].arrival - queries[place - 1].arrival if place else mean_gap
            made.append(_renamed(queries[place], len(made), now, own))
    return made


def _renamed(query: SimulatedQuery, number: int, arrival: float, own: frozenset[str]) -> SimulatedQuery:
    def call(old: SimulatedCall) -> SimulatedCall:
        return replace(old, prefix=tuple(map(blocks, old.prefix)), then=tuple(map(call, old.then)))

    def blocks(block: PrefixBlock) -> PrefixBlock:
        return replace(block, key=f"{block.key}~{number}") if block.key in own else block

    def stage(old: SimulatedStage) -> SimulatedStage:
        return replace(old, calls=tuple(map(call, old.calls)))

    return replace(
        query,
        query_id=f"{query.query_id}~{number}",
        arrival=arrival,
        stages=tuple(map(stage, query.stages)),
    )


def _own_keys(queries: Sequence[SimulatedQuery]) -> frozenset[str]:
    """Return the keys of prefix blocks that one query alone has."""
    users = Counter(key for query in queries for key in set(_keys(query)))
    return frozenset(key for key, count in users.items() if count == 1)


def _keys(query: SimulatedQuery) -> Iterator[str]:
    waiting = [call for stage in query.stages for call in stage.calls]
    while waiting:
        call = waiting.pop()
        yield from (block.key for block in call.prefix)
        waiting.extend(call.then)
