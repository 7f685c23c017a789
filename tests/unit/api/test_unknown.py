"""What a newer version has written is read without the fields that only it knows."""

import json
from typing import Any

import pytest

from hexflow_api import ResourceError, load_text, parse_resource
from hexflow_api.gpupool import GPUPool
from hexflow_api.lenient import parse_leniently
from hexflow_api.unknown import as_served, without_unknown_fields
from support.badresources import BAD, UNKNOWN_FIELDS, Bad
from support.resources import pool_data, workflow_data

NEWER = pool_data(
    emulated=True,
    powerLimitWatts=300,
    model={"name": "Qwen/Qwen2.5-Coder-32B-Instruct", "adapter": {"rank": 8}},
    endpoints=None,
)


def test_fields_of_a_newer_version_are_taken_out_at_every_depth() -> None:
    kept, unknown = without_unknown_fields(NEWER, GPUPool)
    assert set(unknown) == {("spec", "powerLimitWatts"), ("spec", "model", "adapter")}
    assert kept["spec"] == pool_data(emulated=True)["spec"]
    assert "powerLimitWatts" in NEWER["spec"]


def test_the_operator_reads_a_newer_object_and_is_told_what_it_passed_over() -> None:
    pool, passed_over = parse_leniently(NEWER)
    assert pool.name == "a100"
    assert passed_over == ("spec.model.adapter", "spec.powerLimitWatts")
    assert parse_leniently(pool_data())[1] == ()


@pytest.mark.parametrize("bad", UNKNOWN_FIELDS, ids=[bad.path for bad in UNKNOWN_FIELDS])
def test_an_unknown_field_in_a_list_or_a_group_is_passed_over(bad: Bad) -> None:
    assert parse_leniently(bad.data)[1] == (bad.path,)


def test_everything_else_is_as_wrong_as_ever() -> None:
    with pytest.raises(ResourceError, match="at least 0"):
        parse_leniently(pool_data(replicas=-1, powerLimitWatts=300))
    for bad in BAD:
        with pytest.raises(ResourceError):
            parse_leniently(bad.data)


def test_a_null_is_no_value_where_the_api_server_takes_it_so() -> None:
    given = pool_data(
        replicas=0,
        placement={"nodeSelector": {"a": None, "b": "c"}, "affinity": None},
        endpoints=[{"url": "http://h", "caSecretRef": None}],
    )
    given["spec"]["replicas"] = None
    assert (
        as_served(given, GPUPool)["spec"]
        == pool_data(placement={"nodeSelector": {"b": "c"}}, endpoints=[{"url": "http://h"}])["spec"]
    )


def test_a_whole_number_may_be_written_with_a_point() -> None:
    pool = parse_resource(pool_data(replicas=2.0))
    assert isinstance(pool, GPUPool)
    assert pool.spec.replicas == 2
    with pytest.raises(ResourceError, match="whole number"):
        parse_resource(pool_data(replicas=2.5))


def test_a_null_within_a_native_piece_means_something_and_stays() -> None:
    native = {"spec": {"terminationGracePeriodSeconds": None}}
    assert parse_leniently(pool_data(podTemplate=native))[0].model_dump()["spec"]["pod_template"] == native


def test_an_unknown_field_is_unknown_with_and_without_a_value() -> None:
    data = pool_data()
    data["spec"]["powerLimitWatts"] = None
    with pytest.raises(ResourceError, match="powerLimitWatts"):
        parse_resource(data)
    assert parse_leniently(data)[1] == ("spec.powerLimitWatts",)


def text(*objects: dict[str, Any]) -> str:
    return "\n---\n".join(map(json.dumps, objects))


def test_the_router_reads_newer_files_and_names_what_it_passed_over() -> None:
    workflow = workflow_data(slo={"deadlineSeconds": 5, "onDeadline": None, "gracePercent": 10})
    resources = load_text(text(NEWER, workflow), name="f", secrets_elsewhere=True, lenient=True)
    assert resources.unknown_fields == (
        "f:1: GPUPool a100: spec.model.adapter: there is no such field in this version; it is passed over",
        "f:1: GPUPool a100: spec.powerLimitWatts: there is no such field in this version; it is passed over",
        "f:3: TextToSQLWorkflow shop-questions: spec.slo.gracePercent: there is no such field in this version; it is passed over",
    )


def test_the_command_line_reads_strictly() -> None:
    with pytest.raises(ResourceError, match="powerLimitWatts"):
        load_text(text(NEWER), secrets_elsewhere=True)
