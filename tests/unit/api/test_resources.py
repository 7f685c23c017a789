"""What is asked of a set of resources."""

import pytest

from hexflow_api import ResourceError
from support.resources import MODEL, a_pool, a_secret, a_workflow, resources_of

CANDIDATES = {"name": "candidates", "kind": "CandidateGeneration"}


def test_objects_are_found_by_name() -> None:
    resources = resources_of(a_pool("a"), a_workflow("w"), a_secret("s"))
    assert resources.pool("a") is resources.pools[0]
    assert resources.workflow("w") is resources.workflows[0]
    assert resources.secret("s") is resources.secrets[0]
    assert resources.pool("b") is None
    assert resources.workflow("w", namespace="other") is None


def test_a_workflow_without_pools_may_use_all() -> None:
    resources = resources_of(a_pool("a"), a_pool("b"))
    assert [pool.name for pool in resources.pools_of(a_workflow())] == ["a", "b"]


def test_pools_are_chosen_by_name_then_narrowed_by_stage_and_model() -> None:
    small = a_pool("c", model={"name": "small-7b"})
    resources = resources_of(a_pool("a"), a_pool("b"), small)
    workflow = a_workflow(
        pools={"names": ["b", "c"]},
        stages=[CANDIDATES | {"model": MODEL}, CANDIDATES | {"name": "more", "pools": ["c"]}],
    )
    first, second = workflow.spec.effective_stages()
    assert [pool.name for pool in resources.pools_of(workflow, first)] == ["b"]
    assert [pool.name for pool in resources.pools_of(workflow, second)] == ["c"]
    assert resources.model_of(workflow, second) == "small-7b"


def test_a_stage_without_one_model_is_an_error() -> None:
    resources = resources_of(a_pool("a"), a_pool("b", model={"name": "small-7b"}))
    (stage,) = a_workflow(stages=[CANDIDATES]).spec.effective_stages()
    with pytest.raises(ResourceError, match="may run on several models"):
        resources.model_of(a_workflow(), stage)
    with pytest.raises(ResourceError, match="has no pool that may serve it"):
        resources_of().model_of(a_workflow(), stage)


def test_a_router_serves_one_namespace() -> None:
    assert resources_of(a_pool()).namespace == "default"
    other = a_pool().model_copy(update={"metadata": a_pool().metadata.model_copy(update={"namespace": "b"})})
    with pytest.raises(ResourceError, match="in the namespaces b, default"):
        _ = resources_of(a_pool(), other).namespace
