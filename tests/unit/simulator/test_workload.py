"""Workloads: the same seed, the same queries; prompts that share what real ones share."""

import gc
import tracemalloc
from collections import Counter
from itertools import islice

import pytest

from hexflow_simulator.arrivals import Poisson
from hexflow_simulator.complaint import InvalidWorkload
from hexflow_simulator.mix import MIXES
from hexflow_simulator.shape import calls_of
from hexflow_simulator.workload import THREE_CLASSES, Tenant, merged
from support.workloads import a_workload, averages


def test_the_same_seed_gives_the_same_queries_and_another_seed_others() -> None:
    workload = a_workload(databases=10)
    assert list(workload.queries(1, count=20)) == list(workload.queries(1, count=20))
    assert list(workload.queries(1, count=20)) != list(workload.queries(2, count=20))


def test_a_seed_gives_the_same_queries_at_any_rate() -> None:
    slow, fast = (a_workload(arrivals=Poisson(rate)).queries(7, count=30) for rate in (0.1, 10.0))
    assert [query.stages for query in slow] == [query.stages for query in fast]


def test_the_first_query_of_a_seed_never_changes() -> None:
    """Figures are compared across versions and machines: what changes this changes every benchmark."""
    first = next(a_workload("natural", databases=10).queries(1))
    lengths = [(stage, call.prompt_tokens, call.output_tokens) for stage, call in calls_of(first.stages)]
    assert round(first.arrival, 6) == 1.11987
    assert lengths[4:10] == [
        ("retriever-again", 305, 4),
        ("candidate", 12_630, 928),
        ("candidate", 8764, 587),
        ("tester", 278, 4),
        ("unit-tests", 994, 84),
        ("tester-2", 271, 4),
    ]
    assert len(lengths) == 17


def test_queries_can_be_had_for_some_time() -> None:
    found = list(a_workload().queries(1, seconds=100.0))
    assert 60 < len(found) < 140
    assert max(query.arrival for query in found) < 100


@pytest.mark.parametrize("mix", MIXES)
def test_every_prefix_leaves_something_of_its_prompt_to_compute(mix: str) -> None:
    for query in a_workload(mix, databases=3).queries(1, count=200):
        for _, call in calls_of(query.stages):
            assert sum(block.tokens for block in call.prefix) < call.prompt_tokens
            assert all(block.tokens > 0 for block in call.prefix)
            assert call.output_tokens > 0


@pytest.mark.parametrize("mix", ["natural", "modern", "short"])
def test_a_prefix_key_always_stands_for_the_same_tokens(mix: str) -> None:
    tokens: dict[str, int] = {}
    for query in a_workload(mix, databases=5).queries(1, count=200):
        for _, call in calls_of(query.stages):
            for block in call.prefix:
                assert tokens.setdefault(block.key, block.tokens) == block.tokens


def test_prompts_are_chains_of_template_schema_and_question() -> None:
    queries = list(a_workload("financial", databases=2).queries(1, count=60))
    corrections = [call for query in queries for stage, call in calls_of(query.stages) if stage == "revise"]
    assert {len(call.prefix) for call in corrections} == {3}
    assert len({call.prefix[0] for call in corrections}) == 1
    assert len({call.prefix[1] for call in corrections}) == 2
    assert {call.prefix[0].tokens for call in corrections} == {3059}


def test_prompts_share_nothing_where_they_are_told_not_to() -> None:
    query = next(a_workload(prefixes=False).queries(1))
    assert all(not call.prefix for _, call in calls_of(query.stages))


def test_a_hundred_databases_are_asked_by_zipfs_law_and_mean_the_same_work() -> None:
    queries = list(a_workload("financial", databases=100).queries(1, count=2000))
    asked = Counter(
        call.prefix[1].key
        for query in queries
        for stage, call in calls_of(query.stages)
        if stage == "candidate"
    )
    _, most = asked.most_common(1)[0]
    assert most == pytest.approx(2000 / sum(place**-0.8 for place in range(1, 101)), rel=0.15)
    assert len(asked) == 200  # two kinds of draft, each with its own template
    one = averages(a_workload("financial").queries(1, count=2000))
    assert averages(queries).prompt_tokens == pytest.approx(one.prompt_tokens, rel=0.03)


def test_tenants_have_their_share_and_their_deadline() -> None:
    workload = a_workload(tenants=THREE_CLASSES, base_seconds=40.0)
    queries = list(workload.queries(1, count=2000))
    counts = Counter(query.tenant for query in queries)
    assert [counts[tenant.name] / 2000 for tenant in THREE_CLASSES] == pytest.approx(
        [0.3, 0.5, 0.2], abs=0.03
    )
    by_tenant = {query.tenant: (query.base_seconds, query.slo_seconds) for query in queries}
    assert by_tenant == {"hurried": (24.0, 120.0), "usual": (40.0, 200.0), "patient": (80.0, 400.0)}


def test_queries_have_no_deadline_without_a_base() -> None:
    query = next(a_workload().queries(1))
    assert (query.slo_seconds, query.base_seconds) == (None, None)


def test_tenants_without_a_share_are_refused() -> None:
    with pytest.raises(InvalidWorkload, match="share above zero"):
        next(a_workload(tenants=(Tenant(share=0.0),)).queries(1))


def test_merged_workloads_arrive_in_order_under_ids_of_their_own() -> None:
    streams = [a_workload(name=name).queries(1, count=40) for name in ("a", "b")]
    queries = list(merged(*streams))
    assert [query.arrival for query in queries] == sorted(query.arrival for query in queries)
    assert len({query.query_id for query in queries}) == 80


def test_memory_stays_flat_however_many_queries_come() -> None:
    found = a_workload(databases=10).queries(1)
    for _ in islice(found, 100):
        pass
    gc.collect()
    tracemalloc.start()
    for _ in islice(found, 400):
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 300_000
