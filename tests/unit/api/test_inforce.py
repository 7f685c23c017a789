"""The profile in force: what the pool says, else what is built in, else what can be reckoned."""

from typing import Any

import pytest

from hexflow_api import ResourceError, Resources, profile_of
from hexflow_api.manifest import ConfigMap
from support.resources import a_pool

INLINE = {"t0": 0.02, "t1": 0, "t2": 0, "c1": 0.0001, "c2": 0, "kvTokens": 50_000, "slots": 8}


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ({}, "a100-80gb-qwen2.5-32b-tp2"),
        ({"profile": {"inline": INLINE}}, "inline"),
        ({"profile": {"builtin": "l40s-qwen2.5-32b-tp4"}}, "l40s-qwen2.5-32b-tp4"),
        ({"tensorParallelSize": 4}, "estimate-a100-80gb-qwen2.5-32b-tp4"),
        ({"gpuType": "MI300X"}, "unknown"),
        ({"model": {"name": "mystery"}, "endpoints": [{"url": "http://h"}]}, "unknown"),
    ],
)
def test_a_pool_has_a_profile_in_force(spec: dict[str, Any], name: str) -> None:
    assert profile_of(a_pool(**spec)).name == name


def test_the_pools_own_slots_win() -> None:
    assert profile_of(a_pool()).slots == 128
    assert profile_of(a_pool(maxNumSeqs=16)).slots == 16
    assert profile_of(a_pool(profile={"inline": INLINE})).slots == 8


def test_a_config_map_may_hold_the_profile_as_json_or_yaml() -> None:
    pool = a_pool(profile={"configMapRef": {"name": "speeds", "key": "a100"}})
    text = '{"t0": 0.02, "t1": 0, "t2": 0, "c1": 1e-4, "c2": 0, "kvTokens": 9000, "slots": 4}'
    profile = profile_of(pool, Resources(config_maps=(ConfigMap(name="speeds", data={"a100": text}),)))
    assert (profile.name, profile.kv_tokens, profile.slots, profile.c1) == ("speeds/a100", 9000, 4, 1e-4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t0: [", "ConfigMap speeds/a100:1: not YAML"),
        ("{t0: 0.02}", "speeds/a100: t1 is missing"),
        (
            "{t0: 0.02, tl: 0, t1: 0, t2: 0, c1: 0, c2: 0, kvTokens: 9000}",
            "speeds/a100: tl there is no such field",
        ),
        ("a: 1\n---\nb: 1\n", "speeds/a100 must hold one profile"),
    ],
)
def test_a_config_map_that_holds_none_says_why(text: str, message: str) -> None:
    pool = a_pool(profile={"configMapRef": {"name": "speeds", "key": "a100"}})
    with pytest.raises(ResourceError, match=message):
        profile_of(pool, Resources(config_maps=(ConfigMap(name="speeds", data={"a100": text}),)))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"gpuType": "A1000"},
            r"spec.gpuType: no GPU is known as 'A1000', and an emulated instance keeps a GPU's time; did you mean",
        ),
        ({"gpuType": "Voodoo2"}, r"known are A100-80GB, .*; or give spec.profile.inline"),
        (
            {"model": {"name": "mystery"}},
            "spec.model.name: the size of 'mystery' cannot be told from its name",
        ),
        (
            {"gpuType": "L40S", "tensorParallelSize": 1},
            r"do not fit 1 x L40S; set tensorParallelSize: 2",
        ),
        ({"gpuType": "L4", "model": {"name": "llama-3.1-405B"}}, "choose a smaller model"),
        (
            {"profile": {"builtin": "a100"}},
            "there is no built-in profile 'a100'.*built in are a100-80gb-llama",
        ),
    ],
)
def test_an_emulated_pool_of_unknown_speed_is_refused(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ResourceError, match=message):
        profile_of(a_pool(emulated=True, **spec))
