"""A fleet comes from the resources that people have anyway."""

from pathlib import Path

import pytest

from hexflow_api import ResourceError
from hexflow_simulator.fleetfile import read_fleet
from hexflow_simulator.request import EngineOrder

ROOT = Path(__file__).parents[3]
POOL = """
apiVersion: hexflow.dev/v1alpha1
kind: GPUPool
metadata: {name: NAME}
spec: {gpuType: GPU, model: {name: Qwen/Qwen2.5-Coder-32B-Instruct}, tensorParallelSize: 2, REST}
"""


def a_pool(name: str, gpu: str = "A100-80GB", rest: str = "replicas: 2") -> str:
    return POOL.replace("NAME", name).replace("GPU,", f"{gpu},").replace("REST", rest)


def written(folder: Path, *pools: str) -> Path:
    path = folder / "fleet.yaml"
    path.write_text("---".join(pools))
    return path


def test_the_pools_of_the_example_are_a_fleet() -> None:
    fleet = read_fleet(ROOT / "examples/laptop/pools.yaml")
    assert [each.instance.gpu_type for each in fleet.instances] == ["A100-80GB", "L40S", "A6000"]
    assert fleet.models == ("Qwen/Qwen2.5-Coder-32B-Instruct",)
    assert len(set(fleet.profiles)) == 3
    assert any("a6000" in note and "estimate" in note for note in fleet.notes)


def test_a_pool_of_four_lines_is_enough(tmp_path: Path) -> None:
    fleet = read_fleet(written(tmp_path, a_pool("a100"), a_pool("l40s", "L40S", "replicas: 3")))
    assert [each.instance.instance_id for each in fleet.instances] == [
        "a100-0",
        "a100-1",
        "l40s-0",
        "l40s-1",
        "l40s-2",
    ]
    assert [each.instance.pool for each in fleet.instances] == ["a100"] * 2 + ["l40s"] * 3
    assert fleet.profiles[0].t0 < fleet.profiles[2].t0


def test_the_settings_of_a_pool_are_those_of_its_instances(tmp_path: Path) -> None:
    rest = "replicas: 1, maxNumSeqs: 16, maxModelLen: 8192, prefixCaching: false, priorityScheduling: false"
    (one,) = read_fleet(written(tmp_path, a_pool("a", rest=rest))).instances
    assert (one.instance.profile.slots, one.instance.max_context) == (16, 8192)
    assert (one.instance.prefix_caching, one.instance.takes_priority) == (False, False)
    assert (one.options.keep_prefixes, one.options.order) == (False, EngineOrder.FCFS)


def test_a_profile_of_ones_own_is_taken(tmp_path: Path) -> None:
    rest = "profile: {inline: {t0: 0.5, t1: 0, t2: 0, c1: 0.001, c2: 0, kvTokens: 5000}}"
    (one,) = read_fleet(written(tmp_path, a_pool("a", "Abacus", rest))).instances
    assert (one.true_profile.t0, one.true_profile.kv_tokens) == (0.5, 5000)


def test_a_fleet_of_unknown_speed_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(
        ResourceError, match=r"GPUPool a: spec.profile: nothing is known of the speed of .* Abacus"
    ):
        read_fleet(written(tmp_path, a_pool("a", "Abacus")))


def test_a_fleet_has_an_instance_at_least(tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match="no GPUPool with an instance"):
        read_fleet(written(tmp_path, a_pool("a", rest="suspend: true")))
    with pytest.raises(ResourceError):
        read_fleet(tmp_path / "none.yaml")
    fleet = read_fleet(written(tmp_path, a_pool("a"), a_pool("b", rest="suspend: true")))
    assert any("GPUPool b: no instances" in note for note in fleet.notes)
