"""A simulation forgets what has ended: its memory does not grow with the number of queries."""

import gc
import tracemalloc
from collections.abc import Iterator

from hexflow_scheduler import Policy
from hexflow_simulator import SimulatedQuery, simulate
from support.engine_model import blocks
from support.simulated import a_call, a_query, a_stage, instances

SHARED = blocks(("template", 160), ("schema", 320))


def queries(count: int) -> Iterator[SimulatedQuery]:
    for number in range(count):
        yield a_query(
            f"q{number}",
            a_stage("draft", a_call(500, 5 + number % 7, prefix=SHARED), a_call(500, 9, prefix=SHARED)),
            a_stage("judge", a_call(100, 3)),
            arrival=number * 0.5,
            slo_seconds=10.0,
            base_seconds=2.0,
            workflow="w",
            tenant=f"t{number % 3}",
        )


def test_memory_stays_flat_while_queries_come_and_go() -> None:
    seen: dict[int, int] = {}

    def look(ended: int) -> None:
        if ended in (200, 800):
            gc.collect()
            seen[ended] = tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        result = simulate(
            queries(801),
            instances(2),
            Policy.named("LeastHarm"),
            on_query=lambda query: None,
            progress=look,
        )
    finally:
        tracemalloc.stop()
    assert result.call_count == 3 * 801
    # Results of 600 queries and 1,800 calls would take more than a hundred kilobytes.
    assert seen[800] - seen[200] < 10_000
