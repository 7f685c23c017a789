"""Scenarios: the study's table, and what was added to it."""

from collections import Counter

import pytest

from hexflow_simulator.complaint import InvalidWorkload
from hexflow_simulator.fleet import FleetChange
from hexflow_simulator.gpus import FLEETS, profile
from hexflow_simulator.scenario import SCENARIOS, scenario_named


def test_there_are_the_eighteen_of_the_study_and_six_more() -> None:
    assert list(SCENARIOS) == [*(f"S{n}" for n in range(1, 19)), *(f"X{n}" for n in range(1, 7))]


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_query_of_a_scenario_can_be_served_by_its_fleet(name: str) -> None:
    scenario = scenario_named(name)
    ids = [each.instance.instance_id for each in scenario.fleet]
    assert len(set(ids)) == len(ids)
    queries = list(scenario.queries(1, load=0.8, count=20))
    assert len({query.query_id for query in queries}) == len(queries) == 20
    assert [query.arrival for query in queries] == sorted(query.arrival for query in queries)
    served = {model for each in scenario.fleet for model in each.instance.models}
    assert {query.model for query in queries} == served
    assert all(query.slo_seconds and query.base_seconds for query in queries)


def test_load_scales_the_rate_and_leaves_the_queries_alone() -> None:
    scenario = scenario_named("S2")
    light, heavy = (list(scenario.queries(3, load=load, count=50)) for load in (0.4, 0.8))
    assert [query.stages for query in light] == [query.stages for query in heavy]
    assert light[-1].arrival == pytest.approx(2 * heavy[-1].arrival)
    # the published rate is that at load 0.8
    assert scenario.rate * 0.8 == pytest.approx(0.69, abs=1e-4)


def test_fleets_have_the_instances_of_the_study() -> None:
    sizes = {name: sum(count for _, count in gpus) for name, gpus in FLEETS.items()}
    assert sizes == {"het1": 4, "het2": 4, "het3": 5, "homo": 4, "mix16": 16, "fleet64": 64}


def test_an_l40s_is_as_measured_in_hetero_2_and_as_computed_beside_an_h100() -> None:
    a100, measured, computed = (
        profile("A100-80GB", "70B"),
        profile("L40S-measured", "70B"),
        profile("L40S", "70B"),
    )
    assert measured.c1 / a100.c1 == pytest.approx(2.8)
    assert measured.t0 / a100.t0 == pytest.approx(1.6)
    assert computed.prefill_seconds(8192) / a100.prefill_seconds(8192) == pytest.approx(7.5, rel=0.06)
    assert measured.kv_tokens == computed.kv_tokens < a100.kv_tokens
    assert profile("L40S-measured", "7B") == profile("L40S", "7B")


def test_slots_and_tenants_are_those_of_the_scenario() -> None:
    assert {each.instance.profile.slots for each in scenario_named("S16").fleet} == {16}
    assert {each.instance.profile.slots for each in scenario_named("S3").fleet} == {128}
    tenants = Counter(query.tenant for query in scenario_named("S17").queries(1, load=0.8, count=400))
    assert tenants["hurried"] < tenants["usual"]


def test_two_models_share_a_fleet_and_not_an_instance() -> None:
    scenario = scenario_named("X1")
    models = Counter(model for each in scenario.fleet for model in each.instance.models)
    assert models == {"Qwen2.5-Coder-32B": 4, "Qwen2.5-Coder-7B": 3}
    queries = Counter(query.model for query in scenario.queries(1, load=0.8, count=100))
    assert queries == {"Qwen2.5-Coder-32B": 30, "Qwen2.5-Coder-7B": 70}


def test_an_instance_dies_and_returns_at_its_share_of_the_time() -> None:
    scenario = scenario_named("X2")
    events = scenario.events(load=0.5, count=100)
    seconds = 100 / (scenario.rate * 0.5)
    assert [event.kind for event in events] == [FleetChange.DIES, FleetChange.RETURNS]
    assert [event.at / seconds for event in events] == pytest.approx([0.4, 0.6])
    assert events[0].instance_id == "a100-80gb-0"
    assert scenario_named("S1").events(load=1.0) == ()


def test_prompts_of_x5_share_nothing() -> None:
    assert all(
        not call.prefix
        for query in scenario_named("X5").queries(1, load=1.0, count=5)
        for stage in query.stages
        for call in stage.calls
    )


def test_an_unknown_scenario_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(InvalidWorkload, match="there are: S1, S2"):
        scenario_named("S0")
    with pytest.raises(InvalidWorkload, match="no profile is known"):
        profile("L4", "70B")
