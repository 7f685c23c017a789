"""What no watch tells is found: kopf keeps objects that were deleted while its watch was down."""

import asyncio
from typing import Any, cast

import pytest

from hexflow_cluster import Cluster, Kind, Listing, Unavailable
from hexflow_operator.cache import Cache
from hexflow_operator.feed import Feed
from hexflow_operator.observed import Key
from hexflow_operator.resync import Resync
from support.fakecluster import FakeCluster
from support.resources import pool_data

POOL = Kind("hexflow.dev/v1alpha1", "GPUPool")
DEPLOYMENT = Kind("apps/v1", "Deployment")


class World:
    """An API server and an operator's picture of it."""

    def __init__(self) -> None:
        self.server = FakeCluster()
        self.cache = Cache()
        self.woken: set[str] = set()
        self.feed = Feed(
            self.cache, wake=self._wake, edited=lambda key: None, relisted=lambda: None, clock=lambda: 0.0
        )
        self.resync = Resync(
            cast("Cluster", self.server),
            self.cache,
            self.feed,
            kinds=[(POOL, None), (DEPLOYMENT, "hexflow.dev/part")],
            namespaces=(),
        )

    def _wake(self, key: Key) -> None:
        self.woken.add(key.name)

    def told_of(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Make an object of which a watch tells."""
        made = self.server.put(manifest)
        self.feed.seen(made)
        self.feed.told("ADDED", made)
        self.woken.clear()
        return made

    def run(self) -> dict[str, int]:
        return asyncio.run(self.resync.run())


def a_deployment(name: str) -> dict[str, Any]:
    labels = {"hexflow.dev/part": "engine", "hexflow.dev/pool": name.removesuffix("-engine")}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
    }


def test_an_object_that_was_deleted_while_the_watch_was_down_is_forgotten() -> None:
    world = World()
    world.told_of(pool_data("ghost"))
    world.told_of(pool_data("alive"))
    world.server.remove("GPUPool", "ghost")
    assert world.run() == {"GPUPool": 1}
    assert [each["metadata"]["name"] for each in world.cache.pools("team")] == ["alive"]
    assert "ghost" in world.woken


def test_one_that_was_deleted_and_made_anew_is_known_by_its_uid() -> None:
    world = World()
    old = world.told_of(pool_data("a100"))
    world.server.remove("GPUPool", "a100")
    new = world.server.put(pool_data("a100", replicas=2))
    assert old["metadata"]["uid"] != new["metadata"]["uid"]
    world.run()
    assert world.cache.find("GPUPool", "team", "a100") == new


def test_what_was_made_or_changed_unseen_is_read() -> None:
    world = World()
    world.told_of(a_deployment("a-engine"))
    world.server.put({**a_deployment("a-engine"), "spec": {"replicas": 7}})
    world.server.put(a_deployment("b-engine"))
    assert world.run() == {"Deployment": 2}
    assert world.woken == {"a", "b"}
    assert world.run() == {}, "and then nothing is missed any more"


def test_a_right_picture_costs_one_list_a_kind() -> None:
    world = World()
    for number in range(20):
        world.told_of(pool_data(f"pool-{number}"))
    assert world.run() == {}
    assert world.server.reads == [("list", "GPUPool"), ("list", "Deployment")]
    assert world.woken == set()


def test_what_appears_while_the_list_is_read_is_not_taken_for_deleted() -> None:
    world = World()
    late: dict[str, Any] = {}

    async def slow(kind: Kind, **_: Any) -> Listing:
        listing = Listing(items=(), resource_version="1")
        if kind == POOL and not late:
            late.update(world.told_of(pool_data("late")))
        return listing

    world.server.list = slow  # type: ignore[method-assign]
    world.run()
    assert world.cache.find("GPUPool", "team", "late") == late


def test_an_api_server_that_is_down_in_the_middle_leaves_the_picture_as_it_is() -> None:
    world = World()
    world.told_of(pool_data("a100"))
    world.server.refuse["list", "GPUPool"] = Unavailable("down")
    with pytest.raises(Unavailable):
        world.run()
    assert len(world.cache.pools("team")) == 1


def test_one_namespace_is_compared_by_itself_and_the_answer_is_whether_it_was_right() -> None:
    world = World()
    world.told_of(pool_data("here"))
    elsewhere = pool_data("there")
    elsewhere["metadata"]["namespace"] = "other"
    world.told_of(elsewhere)
    assert asyncio.run(world.resync.namespace(POOL, "team"))
    world.server.remove("GPUPool", "here")
    assert not asyncio.run(world.resync.namespace(POOL, "team"))
    assert len(world.cache.pools("other")) == 1
