"""GPUPool: what it takes, what it means, what it refuses."""

from typing import Any

import pytest
from pydantic import ValidationError

from hexflow_api import GPUPool
from support.resources import a_pool, pool_data


def test_a_pool_reads_camel_case_and_speaks_snake_case() -> None:
    pool = a_pool("l40s", gpuType="L40S", maxModelLen=8192, maxNumSeqs=64)
    assert pool.name == "l40s"
    assert pool.spec.gpu_type == "L40S"
    assert pool.spec.max_model_len == 8192
    assert pool.spec.prefix_caching
    assert pool.spec.priority_scheduling


def test_a_pool_can_be_made_in_python_with_python_names() -> None:
    pool = GPUPool.model_validate(
        {"metadata": {"name": "a"}, "spec": {"gpu_type": "L40S", "model": {"name": "m-7b"}}}
    )
    assert pool.kind == "GPUPool"
    assert pool.metadata.namespace == "default"


def test_a_pool_never_changes() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        a_pool().spec.replicas = 3  # type: ignore[misc]


def test_status_and_foreign_metadata_are_tolerated_and_ignored() -> None:
    data = pool_data()
    data["metadata"] |= {"resourceVersion": "7", "managedFields": [{}], "uid": "u"}
    data["status"] = {"readyReplicas": "what the operator wrote"}
    pool = GPUPool.model_validate(data)
    assert pool.metadata.uid == "u"
    assert "status" not in pool.model_dump()


def test_dumping_and_reading_a_pool_gives_the_same_pool() -> None:
    pool = a_pool(
        endpoints=[{"url": "http://h:1"}], cache={"emptyDir": {}}, placement={"nodeSelector": {"a": "b"}}
    )
    assert GPUPool.model_validate(pool.model_dump(by_alias=True, exclude_unset=True)) == pool


@pytest.mark.parametrize(
    ("spec", "source", "replicas"),
    [
        ({}, "Pods", 1),
        ({"replicas": 3}, "Pods", 3),
        ({"replicas": 0}, "Pods", 0),
        ({"emulated": True, "replicas": 2}, "Emulated", 2),
        ({"selector": {"matchLabels": {"app": "vllm"}}}, "Selector", 1),
        ({"endpoints": [{"url": "http://a:1"}, {"url": "http://b:1"}]}, "Endpoints", 2),
        ({"replicas": 3, "suspend": True}, "Pods", 0),
    ],
)
def test_a_pool_knows_where_its_instances_come_from(spec: dict[str, Any], source: str, replicas: int) -> None:
    pool = a_pool(**spec)
    assert (pool.spec.source, pool.spec.effective_replicas) == (source, replicas)


@pytest.mark.parametrize(
    ("spec", "size"),
    [
        ({"tensorParallelSize": 4}, 4),
        ({"tensorParallelSize": None, "gpu": {"count": 2}}, 2),
        ({"tensorParallelSize": None}, 1),
        ({"tensorParallelSize": 2, "gpu": {"count": 4}}, 2),
    ],
)
def test_a_model_is_spread_over_the_gpus_of_one_instance(spec: dict[str, Any], size: int) -> None:
    assert a_pool(**spec).spec.effective_tensor_parallel_size == size


@pytest.mark.parametrize("url", ["http://h:8000", "http://h:8000/", "http://h:8000/v1", "http://h:8000/v1/"])
def test_an_endpoint_is_the_root_of_a_server_however_it_is_written(url: str) -> None:
    endpoints = a_pool(endpoints=[{"url": url}]).spec.endpoints
    assert endpoints is not None
    assert endpoints[0].url == "http://h:8000"


def test_an_endpoint_keeps_a_path_before_v1() -> None:
    endpoints = a_pool(endpoints=[{"url": "https://h/llm/v1"}]).spec.endpoints
    assert endpoints is not None
    assert endpoints[0].url == "https://h/llm"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("localhost:8000", "must be the http:// or https:// address"),
        ("ftp://h:8000", "must be the http:// or https:// address"),
        ("http://:8000", "must be the http:// or https:// address"),
        ("http://h:99999", "must be the http:// or https:// address"),
        ("http://h h/", "must be the http:// or https:// address"),
        ("http://[::1", "must be the http:// or https:// address"),
        ("http://u:secret@h", "put the key into a Secret"),
        ("http://h/?key=1", "must not hold a query"),
    ],
)
def test_an_address_that_is_none_is_refused(url: str, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        a_pool(endpoints=[{"url": url}])


@pytest.mark.parametrize(
    ("field", "value"),
    [("replicas", "2"), ("replicas", True), ("maxNumSeqs", 1.5), ("emulated", "true"), ("gpuType", 4)],
)
def test_a_value_of_another_type_is_never_converted(field: str, value: object) -> None:
    with pytest.raises(ValidationError, match=field):
        a_pool(**{field: value})
