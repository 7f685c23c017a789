"""Bounds against times reckoned by hand, and no simulated query beats them."""

import pytest

from hexflow_scheduler import Policy, Profile
from hexflow_simulator import simulate
from hexflow_simulator.bounds import alone_seconds, clairvoyant, critical_path, fluid_rate
from hexflow_simulator.measure import latencies
from support.engine_model import ROUND, blocks
from support.simulated import a_call, a_query, a_stage, an_instance, instances, latency, random_queries

FAST = Profile(t0=0.01, t1=0.0, t2=0.0, c1=0.001, c2=0.0, kv_tokens=100_000, slots=1)
SLOW = Profile(t0=0.02, t1=0.0, t2=0.0, c1=0.001, c2=0.0, kv_tokens=100_000, slots=1)
WARM = blocks(("template", 160), ("schema", 320))


@pytest.mark.parametrize("prompt", [600, 5000])
@pytest.mark.parametrize("output", [1, 2, 77])
def test_a_call_alone_takes_what_the_engine_model_gives_it(prompt: int, output: int) -> None:
    profile = Profile(**{**{name: getattr(ROUND, name) for name in ROUND.__slots__}, "c2": 1e-8})
    source = an_instance(profile=profile, options={"overhead_seconds": 0.015})
    call = a_call(prompt, output, prefix=WARM)
    warmer = a_query("warmer", a_stage("a", call))
    timed = a_query("q", a_stage("a", call), arrival=1000.0)
    result = simulate([warmer, timed], [source], Policy.named("RoundRobin"))
    assert latency(result) == pytest.approx(alone_seconds(call, profile, source.options))


def test_a_critical_path_takes_the_slowest_sibling_of_each_stage_on_the_fastest_instance() -> None:
    fleet = [an_instance("slow", profile=SLOW), an_instance("fast", profile=FAST)]
    query = a_query(
        "q", a_stage("a", a_call(100, 11), a_call(100, 5, a_call(50, 31))), a_stage("b", a_call(10, 2))
    )
    assert critical_path(query, fleet) == pytest.approx((0.11 + 0.04 + 0.06 + 0.3) + (0.02 + 0.01))


def test_a_critical_path_follows_the_dependencies_of_stages() -> None:
    query = a_query(
        "q",
        a_stage("a", a_call(100, 1)),
        a_stage("b", a_call(200, 1), after=["a"]),
        a_stage("c", a_call(300, 1), after=["a"]),
        a_stage("d", a_call(400, 1), after=["b", "c"]),
    )
    assert critical_path(query, [an_instance(profile=FAST)]) == pytest.approx(0.11 + 0.31 + 0.41)


@pytest.mark.parametrize("policy", ["RoundRobin", "HexGenFlow"])
def test_no_query_is_answered_before_its_bound(policy: str) -> None:
    queries = random_queries(30, rate=0.5)
    fleet = [*instances(2), an_instance("fast", profile=FAST)]
    result = simulate(queries, fleet, Policy.named(policy))
    for reached, bound in zip(latencies(result.queries), latencies(clairvoyant(queries, fleet)), strict=True):
        assert reached > bound - 1e-9


def test_the_fluid_fills_equal_instances_alike() -> None:
    queries = [a_query("q", a_stage("a", a_call(100, 91)))]
    seconds = 0.1 + 90 * 0.01
    fleet = [an_instance("a", profile=FAST), an_instance("b", profile=FAST)]
    assert fluid_rate(queries, fleet) == pytest.approx(2 / seconds)


def test_the_fluid_gives_each_instance_what_it_is_best_at() -> None:
    # One prefills twice as fast, the other decodes twice as fast: each takes one kind of call, 1 s of each.
    prefiller = Profile(t0=0.02, t1=0.0, t2=0.0, c1=0.001, c2=0.0, kv_tokens=100_000, slots=1)
    decoder = Profile(t0=0.01, t1=0.0, t2=0.0, c1=0.002, c2=0.0, kv_tokens=100_000, slots=1)
    queries = [a_query("q", a_stage("a", a_call(1000, 1), a_call(1, 101)))]
    fleet = [an_instance("a", profile=prefiller), an_instance("b", profile=decoder)]
    assert fluid_rate(queries, fleet) == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize("many", [20, 999])
def test_the_fluid_of_a_large_fleet_in_which_one_is_best_for_all(many: int) -> None:
    slow = Profile(t0=0.01, t1=0.0, t2=0.0, c1=0.002, c2=0.0, kv_tokens=100_000, slots=1)
    queries = [a_query("q", a_stage("a", a_call(1000, 1)))]  # 1 s on the fast one, 2 s on a slow one
    fleet = [an_instance("fast", profile=FAST), *(an_instance(f"{n}", profile=slow) for n in range(many))]
    assert fluid_rate(queries, fleet) == pytest.approx(1.0 + many / 2, rel=0.01)


def test_the_fluid_has_full_batches_and_a_share_of_cold_prompts() -> None:
    profile = Profile(t0=0.064, t1=0.001, t2=0.0, c1=0.001, c2=0.0, kv_tokens=100_000, slots=128)
    queries = [a_query("q", a_stage("a", a_call(1480, 101, prefix=WARM)))]
    decode = 100 * (0.064 / 64 + 0.001)
    warm = fluid_rate(queries, [an_instance(profile=profile)])
    assert warm == pytest.approx(1 / (1.0 + decode))
    cold = fluid_rate(queries, [an_instance(profile=profile)], cold_share=0.5)
    assert cold == pytest.approx(1 / (1.24 + decode))


def test_a_query_that_nobody_serves_has_no_rate() -> None:
    assert fluid_rate([a_query(pools=frozenset({"other"}))], instances(1)) == 0.0
    assert critical_path(a_query(pools=frozenset({"other"})), instances(1)) == float("inf")
