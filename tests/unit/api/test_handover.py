import base64
import gzip
from typing import Any

import pytest

from hexflow_api import ConfigMapKeyRef, ResourceError
from hexflow_api.handover import MOST_BYTES, PLAIN_BYTES, handed_over, packed, taken_over
from support.observations import Object, a_pool, a_workflow


def handed(*resources: Object, config_maps: tuple[Object, ...] = ()) -> Object:
    pools = [each for each in resources if each["kind"] == "GPUPool"]
    workflows = [each for each in resources if each["kind"] != "GPUPool"]
    content = packed(handed_over(pools, workflows, config_maps))
    assert content is not None
    return {"metadata": {"name": "hexflow-router"}, **content}


def tenants(count: int) -> list[Object]:
    return [{"name": f"t{n}", "apiKeySecretRef": {"name": f"key-{n}", "key": "k"}} for n in range(count)]


def test_what_is_handed_over_is_taken_over_oldest_first() -> None:
    profile = {"configMapRef": {"name": "speeds", "key": "a100"}}
    speeds = {"metadata": {"name": "speeds", "namespace": "team"}, "data": {"a100": "{}", "other": "x"}}
    young = a_workflow("a-young", created="2026-11-30T09:00:00Z")
    old = a_workflow("b-old", created="2026-11-30T08:00:00Z")
    pool = a_pool(profile=profile, engine={"port": 9000, "args": ["--left-out"]})
    resources, notes = taken_over(handed(pool, young, old, config_maps=(speeds,)))
    assert [each.name for each in resources.workflows] == ["b-old", "a-young"]
    assert resources.pools[0].spec.engine is not None
    assert (resources.pools[0].spec.engine.port, resources.pools[0].spec.engine.args) == (9000, ())
    assert resources.namespace == "team"
    assert resources.config_value(ConfigMapKeyRef(name="speeds", key="a100"), namespace="team") == "{}"
    assert resources.config_value(ConfigMapKeyRef(name="speeds", key="other"), namespace="team") is None
    assert notes == ()


def test_a_large_namespace_comes_back_from_its_compressed_form() -> None:
    flows = [a_workflow(f"flow-{number}", tenants=tenants(150)) for number in range(40)]
    config_map = handed(a_pool(), *flows)
    assert set(config_map) == {"metadata", "binaryData"}
    compressed = base64.b64decode(config_map["binaryData"]["resources.json.gz"])
    assert len(compressed) < PLAIN_BYTES < len(gzip.decompress(compressed)) < MOST_BYTES
    assert len(taken_over(config_map)[0].workflows) == 40


def test_one_that_cannot_be_read_stops_none_of_the_others() -> None:
    resources, notes = taken_over(handed(a_pool(), a_pool("broken", gpuType=7), a_pool("newer", future=1)))
    assert [each.name for each in resources.pools] == ["a100", "newer"]
    assert len(notes) == 2
    assert notes[0].startswith("GPUPool broken is passed over: ")
    assert notes[1] == "GPUPool newer: spec.future of a newer version is passed over"


def test_what_a_resource_names_need_not_be_there() -> None:
    resources, notes = taken_over(handed(a_workflow(pools={"names": ["nobody"]})))
    assert (len(resources.workflows), notes) == (1, ())


def compressed(text: bytes) -> Object:
    return {"binaryData": {"resources.json.gz": base64.b64encode(gzip.compress(text)).decode()}}


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"data": None},
        {"data": {"resources.json": "{"}},
        {"data": {"resources.json": "[]"}},
        {"binaryData": {"resources.json.gz": "no base64"}},
        {"binaryData": {"resources.json.gz": "AAAA"}},
        compressed(b"{"),
        compressed(b" " * (65 * MOST_BYTES)),
    ],
)
def test_what_is_no_list_of_resources_is_refused_in_a_sentence(content: dict[str, Any]) -> None:
    with pytest.raises(ResourceError, match="ConfigMap hexflow-router: holds no list of resources"):
        taken_over({"metadata": {"name": "hexflow-router"}, **content})
