"""What a laptop cannot honour is said, once each; the examples are honoured whole."""

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from hexflow_api import laptop_warnings, load_resources, profile_of
from support.resources import a_pool, a_workflow, resources_of

LAPTOP = Path(__file__).parents[3] / "examples" / "laptop"


@pytest.mark.parametrize(
    ("spec", "warning"),
    [
        ({}, "GPUPool a100 has pods in a cluster and no instance here; add `emulated: true`"),
        ({"selector": {"matchLabels": {"app": "vllm"}}}, "has pods in a cluster and no instance here"),
        ({"emulated": True, "suspend": True}, "GPUPool a100 is suspended and has no instance"),
        ({"endpoints": [{"url": "http://h"}], "replicas": 2}, "replicas is ignored"),
        (
            {"emulated": True, "sharedMemory": "8Gi", "engine": {"image": "vllm"}},
            "GPUPool a100: engine, sharedMemory only matter to pods in a cluster",
        ),
    ],
)
def test_a_pool_that_a_laptop_cannot_honour(spec: dict[str, Any], warning: str) -> None:
    (found,) = laptop_warnings(resources_of(a_pool(**spec)))
    assert warning in found


@pytest.mark.parametrize(
    ("spec", "warning"),
    [
        ({"tuning": {"mode": "Auto"}}, "tuning.mode Auto needs the cluster's tuner"),
        ({"router": {"image": "x"}}, "router only matters to the router's pods"),
        (
            {"tenants": [{"name": "big", "weight": 3}], "scheduling": {"policy": "RoundRobin+FCFS"}},
            "the weight of big has no effect under RoundRobin+FCFS; write RoundRobin+VTC",
        ),
        (
            {"tenants": [{"name": "big", "weight": 3}], "scheduling": {"fairness": {"value": 0}}},
            "no effect under LeastHarm; set scheduling.fairness, or write LeastHarm+VTC",
        ),
    ],
)
def test_a_workflow_that_a_laptop_cannot_honour(spec: dict[str, Any], warning: str) -> None:
    (found,) = laptop_warnings(resources_of(a_workflow(**spec)))
    assert warning in found


@pytest.mark.parametrize("scheduling", [{"policy": "LeastHarm+VTC"}, {"fairness": {"value": 0.5}}])
def test_weights_count_where_queue_or_placement_look_at_them(scheduling: dict[str, Any]) -> None:
    spec = {"tenants": [{"name": "big", "weight": 3}], "scheduling": scheduling}
    assert laptop_warnings(resources_of(a_workflow(**spec))) == []


def test_the_examples_are_right_and_a_laptop_honours_them_whole() -> None:
    resources = load_resources(LAPTOP)
    assert laptop_warnings(resources) == []
    assert [pool.name for pool in resources.pools] == ["a100", "l40s", "a6000"]
    assert [tenant.name for tenant in resources.workflows[0].spec.tenants] == ["analytics", "support"]
    assert resources.workflow("shop-questions") is not None


def test_the_examples_fleet_is_unequal() -> None:
    pools = load_resources(LAPTOP).pools
    profiles = [profile_of(pool) for pool in pools]
    assert len({profile.t0 for profile in profiles}) == 3
    assert all(
        profile.kv_tokens >= 2 * (pool.spec.max_model_len or 0)
        for pool, profile in zip(pools, profiles, strict=True)
    )


def test_the_endpoints_example_takes_the_place_of_the_pools(tmp_path: Path) -> None:
    for file in LAPTOP.glob("*.yaml"):
        (tmp_path / file.name).write_text(file.read_text())
    (tmp_path / "pools.yaml").write_text((LAPTOP / "endpoints.yaml.example").read_text())
    resources = load_resources(tmp_path)
    assert [pool.spec.source for pool in resources.pools_of(resources.workflows[0])] == ["Endpoints"]
    assert laptop_warnings(resources) == []


def test_one_line_turns_an_emulated_pool_into_a_real_server(tmp_path: Path) -> None:
    for file in LAPTOP.glob("*.yaml"):
        text = file.read_text().replace(
            "  emulated: true\n", "  endpoints: [{url: http://127.0.0.1:8000}]\n", 1
        )
        (tmp_path / file.name).write_text(text)
    sources = [pool.spec.source for pool in load_resources(tmp_path).pools]
    assert sources == ["Endpoints", "Emulated", "Emulated"]


def test_the_examples_are_plain_yaml() -> None:
    for file in LAPTOP.glob("*.yaml*"):
        assert list(YAML(typ="safe", pure=True).load_all(file.read_text()))
