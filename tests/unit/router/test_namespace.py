"""The watches over a namespace, with an API server that is a few lists and streams."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

from hexflow_cluster import Cluster, Forbidden, WatchEvent
from hexflow_router.namespace import NamespaceWatch
from support.waiting import eventually

SYNCED = WatchEvent("Synced", {})


def an_object(name: str, uid: str = "1", **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": uid, "labels": labels}}


class FakeCluster:
    """Tells each watch what the test puts into its queue, or that it may not list."""

    def __init__(self) -> None:
        self.queues: dict[str, asyncio.Queue[WatchEvent]] = {}
        self.forbidden: set[str] = set()

    def of(self, which: str) -> "asyncio.Queue[WatchEvent]":
        return self.queues.setdefault(which, asyncio.Queue())

    async def watch(
        self,
        kind: Any,
        *,
        namespace: str,
        labels: str | None = None,
        fields: str | None = None,
        relist_seconds: float,
    ) -> AsyncIterator[WatchEvent]:
        which = fields or f"{kind.kind} {labels}"
        if which in self.forbidden:
            raise Forbidden("pods is forbidden")
        while True:
            yield await self.of(which).get()


class Scene:
    def __init__(self) -> None:
        self.api = FakeCluster()
        self.config_maps: list[Any] = []
        self.pods = 0
        self.policies: list[Any] = []
        self.watch = NamespaceWatch(
            cast("Cluster", self.api),
            "team",
            config_map="hexflow-router",
            on_config_map=self.config_maps.append,
            on_pods=self._pods,
            on_policies=self.policies.append,
        )

    def _pods(self) -> None:
        self.pods += 1

    async def __aenter__(self) -> "Scene":
        self.task = asyncio.create_task(self.watch.run())
        return self

    async def __aexit__(self, *reason: object) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def test_nothing_is_told_before_everything_was_listed() -> None:
    async with Scene() as scene:
        queue = scene.api.of("metadata.name=hexflow-router")
        queue.put_nowait(WatchEvent("Added", an_object("hexflow-router")))
        await eventually(queue.empty)
        assert scene.config_maps == []
        queue.put_nowait(SYNCED)
        await eventually(lambda: len(scene.config_maps) == 1)
        queue.put_nowait(WatchEvent("Deleted", an_object("hexflow-router")))
        await eventually(lambda: scene.config_maps[-1] is None)


async def test_an_object_that_came_back_under_its_name_stays_when_the_old_one_is_told_gone() -> None:
    async with Scene() as scene:
        scene.watch.select(["hexflow.dev/pool"])
        queue = scene.api.of("metadata.name=hexflow-router")
        new = an_object("hexflow-router", uid="2")
        for event in (
            WatchEvent("Added", an_object("hexflow-router", uid="1")),
            SYNCED,
            WatchEvent("Added", new),
            WatchEvent("Deleted", an_object("hexflow-router", uid="1")),
        ):
            queue.put_nowait(event)
        await eventually(lambda: len(scene.config_maps) == 3)
        assert scene.config_maps[-1] == new


async def test_only_config_maps_of_the_right_name_are_policies() -> None:
    async with Scene() as scene:
        queue = scene.api.of("ConfigMap hexflow.dev/part=policy")
        right = an_object("shop-policy", **{"hexflow.dev/workflow": "shop"})
        wrong = an_object("mine", uid="2", **{"hexflow.dev/workflow": "shop"})
        for event in (WatchEvent("Added", right), WatchEvent("Added", wrong), SYNCED):
            queue.put_nowait(event)
        await eventually(lambda: scene.policies == [{"shop": right}])


async def test_pods_are_followed_by_the_selectors_that_are_asked_for_and_no_others() -> None:
    async with Scene() as scene:
        scene.watch.select(["app=vllm"])
        await asyncio.sleep(0)
        queue = scene.api.of("Pod app=vllm")
        queue.put_nowait(WatchEvent("Added", an_object("one")))
        assert not scene.watch.pods_listed
        queue.put_nowait(SYNCED)
        await eventually(lambda: scene.watch.pods_listed)
        assert [each["metadata"]["name"] for each in scene.watch.pods["app=vllm"]] == ["one"]
        assert scene.pods == 1
        scene.watch.select(["hexflow.dev/pool"])
        assert dict(scene.watch.pods) == {"hexflow.dev/pool": ()}
        assert not scene.watch.pods_listed
        scene.api.of("Pod hexflow.dev/pool").put_nowait(SYNCED)
        await eventually(lambda: scene.watch.pods_listed)
        assert set(scene.watch.ages(asyncio.get_running_loop().time())) == {"pods"}


async def test_what_may_not_be_listed_is_told_and_keeps_nobody_waiting() -> None:
    scene = Scene()
    scene.api.forbidden = {"Pod hexflow.dev/pool"}
    async with scene:
        scene.watch.select(["hexflow.dev/pool"])
        await eventually(lambda: scene.watch.pods_listed)
        assert scene.watch.troubles == {"pods hexflow.dev/pool": "pods is forbidden"}
        scene.api.forbidden.clear()
        scene.api.of("Pod hexflow.dev/pool").put_nowait(SYNCED)
        await eventually(lambda: not scene.watch.troubles)
