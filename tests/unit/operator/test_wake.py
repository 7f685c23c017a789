from typing import Any

import pytest

from hexflow_operator.cache import Change
from hexflow_operator.observed import ROUTER_NAME, Key
from hexflow_operator.wake import affected, all_of

POOL = Key("GPUPool", "team", "a100")
SHOP, BANK = (Key("TextToSQLWorkflow", "team", name) for name in ("shop", "bank"))
ROUTER = Key("Router", "team", ROUTER_NAME)


def a_resource(key: Key, *, generation: int = 1, **fields: Any) -> dict[str, Any]:
    metadata = {
        "name": key.name,
        "namespace": key.namespace,
        "uid": f"uid-{key.name}",
        "generation": generation,
    }
    return {"kind": key.kind, "metadata": metadata | fields.pop("metadata", {}), **fields}


def a_child(kind: str, part: str, **labels: str) -> dict[str, Any]:
    named = {f"hexflow.dev/{key}": value for key, value in labels.items()}
    return {
        "kind": kind,
        "metadata": {"name": "x", "namespace": "team", "labels": {"hexflow.dev/part": part} | named},
    }


WORKFLOWS = (a_resource(SHOP), a_resource(BANK))


@pytest.mark.parametrize(
    "change",
    [
        Change(None, a_resource(POOL)),
        Change(a_resource(POOL), None),
        Change(a_resource(POOL), a_resource(POOL, generation=2)),
        Change(a_resource(POOL), a_resource(POOL, metadata={"labels": {"size": "large"}})),
        Change(a_resource(POOL), a_resource(POOL, metadata={"deletionTimestamp": "2026-11-30T07:00:00Z"})),
        Change(a_resource(POOL), a_resource(POOL, metadata={"uid": "another"})),
    ],
)
def test_what_a_pool_asks_for_concerns_the_router_and_every_workflow(change: Change) -> None:
    assert affected(change, WORKFLOWS) == {POOL, ROUTER, SHOP, BANK}


def test_how_a_pool_is_concerns_the_workflows_and_nothing_that_is_made() -> None:
    change = Change(a_resource(POOL), a_resource(POOL, status={"readyReplicas": 1}))
    assert affected(change, WORKFLOWS) == {POOL, SHOP, BANK}


def test_how_a_workflow_is_concerns_it_alone() -> None:
    assert affected(Change(a_resource(SHOP), a_resource(SHOP, status={"url": "x"})), WORKFLOWS) == {SHOP}


def test_a_new_workflow_concerns_the_others_whose_settings_it_may_outrank() -> None:
    assert affected(Change(None, a_resource(SHOP)), WORKFLOWS) == {SHOP, BANK, ROUTER}


def test_a_child_concerns_the_key_that_it_is_labelled_for() -> None:
    assert affected(Change(None, a_child("Service", "engine", pool="a100")), WORKFLOWS) == {POOL}
    assert affected(Change(a_child("CronJob", "tuner", workflow="shop"), None), WORKFLOWS) == {SHOP}
    moved = Change(a_child("Pod", "engine", pool="a100"), a_child("Pod", "engine", pool="l40s"))
    assert affected(moved, WORKFLOWS) == {POOL, Key("GPUPool", "team", "l40s")}


def test_the_routers_pods_concern_the_workflows_and_its_config_map_does_not() -> None:
    assert affected(Change(None, a_child("Deployment", "router")), WORKFLOWS) == {ROUTER, SHOP, BANK}
    assert affected(Change(None, a_child("ConfigMap", "router")), WORKFLOWS) == {ROUTER}


def test_an_object_of_somebody_else_concerns_nobody() -> None:
    stranger = {"kind": "Pod", "metadata": {"name": "x", "namespace": "team"}}
    assert affected(Change(None, stranger), WORKFLOWS) == set()


def test_all_of_a_namespace_is_its_resources_and_its_router() -> None:
    assert all_of("team", [a_resource(POOL)], WORKFLOWS) == {POOL, SHOP, BANK, ROUTER}
