import asyncio
from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest

from hexflow_cluster import (
    Cluster,
    Conflict,
    Forbidden,
    Invalid,
    KindUnknown,
    NotFound,
    Terminating,
    Unavailable,
)
from hexflow_operator.cache import Cache
from hexflow_operator.decision import Event, Plan, Reference, reference_to
from hexflow_operator.defaults import Defaults
from hexflow_operator.feed import Feed
from hexflow_operator.observed import ROUTER_NAME, Key, Observed
from hexflow_operator.observer import KINDS, Observer
from hexflow_operator.reconcile import Incomplete, Reconciler, Result
from hexflow_operator.resync import Resync
from support.fakecluster import FakeCluster, Object
from support.resources import pool_data, workflow_data

KEY = Key("GPUPool", "team", "a100")
ROUTER = Key("Router", "team", ROUTER_NAME)


def a_child(kind: str = "Service", name: str = "a100-engine", **spec: Any) -> Object:
    labels = {"hexflow.dev/part": "engine", "hexflow.dev/pool": "a100"}
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "team", "labels": labels},
        "spec": spec,
    }


class World:
    """An API server, an operator's picture of it, and a plan that a test writes."""

    def __init__(self, plan: Callable[[Key, Observed], Plan]) -> None:
        self.server = FakeCluster()
        self.cache = Cache()
        self.woken: list[Key] = []
        self.observed: list[Observed] = []
        cluster = cast("Cluster", self.server)
        self.feed = Feed(
            self.cache,
            wake=self.woken.append,
            edited=lambda key: None,
            relisted=lambda: None,
            clock=lambda: 0.0,
        )
        resync = Resync(
            cluster, self.cache, self.feed, kinds=[(kind, None) for kind in KINDS.values()], namespaces=()
        )

        def planned(key: Key, observed: Observed, defaults: Defaults, now: float) -> Plan:
            self.observed.append(observed)
            return plan(key, observed)

        self.reconciler = Reconciler(
            cluster,
            self.cache,
            self.feed,
            Observer(cluster, self.cache, self.feed, resync, reports={}),
            plan=planned,
            defaults=Defaults(),
            wake=self.woken.append,
            now=lambda: 1_796_000_000.25,
            instance="operator-1",
            wrote=lambda verb, kind: None,
        )

    def told_of(self, manifest: Object) -> Object:
        made = self.server.put(manifest)
        self.feed.seen(made)
        self.feed.told("ADDED", made)
        self.woken.clear()
        return made

    def reconcile(self, key: Key = KEY) -> Result:
        return asyncio.run(self.reconciler.reconcile(key))


def applying(
    *manifests: Object, status: Object | None = None, **more: Any
) -> Callable[[Key, Observed], Plan]:
    """Plan the manifests that are not there, and a status that the object does not have."""

    def plan(key: Key, observed: Observed) -> Plan:
        if observed.primary is None:
            return Plan()
        there = {each["metadata"]["name"] for each in observed.children}
        missing = tuple(each for each in manifests if each["metadata"]["name"] not in there)
        changed = status if observed.primary.get("status") != status else None
        return Plan(apply=missing, status=changed, **more)

    return plan


def test_where_nothing_is_to_do_the_api_server_is_asked_nothing() -> None:
    world = World(lambda key, observed: Plan(requeue_after=60.0))
    world.told_of(pool_data("a100"))
    assert world.reconcile() == Result(again_after=60.0)
    assert (world.server.reads, world.server.writes) == ([], [])


def test_the_children_come_first_and_the_status_speaks_of_what_is_there_then() -> None:
    world = World(applying(a_child(), status={"ready": "0/1"}))
    world.told_of(pool_data("a100"))
    world.reconcile()
    assert world.server.writes == [("apply", "Service", "a100-engine"), ("status", "GPUPool", "a100")]
    assert len(world.observed[-1].children) == 1
    world.server.writes.clear()
    world.reconcile()
    assert world.server.writes == [], "what it wrote it knows without being told"


def test_a_resource_that_is_gone_though_no_watch_told_gets_no_children() -> None:
    world = World(applying(a_child()))
    world.told_of(pool_data("a100"))
    world.server.remove("GPUPool", "a100")
    assert world.reconcile() == Result(gone=True)
    assert world.server.writes == []


def test_a_resource_that_was_made_anew_is_planned_anew() -> None:
    world = World(applying(a_child()))
    old = world.told_of(pool_data("a100"))
    world.server.remove("GPUPool", "a100")
    world.server.put(pool_data("a100"))
    world.reconcile()
    primary = world.observed[-1].primary
    assert primary is not None
    assert primary["metadata"]["uid"] != old["metadata"]["uid"]


def test_a_router_is_made_only_for_resources_that_are_there() -> None:
    world = World(
        lambda key, observed: Plan(apply=(a_child(),)) if observed.pools or observed.workflows else Plan()
    )
    world.told_of(pool_data("ghost"))
    world.server.remove("GPUPool", "ghost")
    assert world.reconcile(ROUTER).gone
    assert world.server.writes == []


def test_what_is_refused_is_told_to_the_plan_and_the_rest_is_done() -> None:
    other = a_child("ConfigMap", "a100-other")
    world = World(applying(a_child(), other))
    world.told_of(pool_data("a100"))
    world.server.refuse["apply", "Service"] = Forbidden("exceeded quota", status=403, reason="Forbidden")
    with pytest.raises(Incomplete, match="exceeded quota"):
        world.reconcile()
    assert world.server.writes == [("apply", "ConfigMap", "a100-other")]
    assert [(each.kind, each.name, each.reason, each.message) for each in world.observed[-1].refused] == [
        ("Service", "a100-engine", "Forbidden", "exceeded quota")
    ]
    world.server.refuse.clear()
    world.reconcile()
    assert world.observed[-1].refused == ()


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Invalid("no", status=422, reason="Invalid"), "Invalid"),
        (Conflict("no", status=409, reason="Conflict"), "Conflict"),
        (KindUnknown("no such kind", status=404), "KindUnknown"),
    ],
)
def test_each_kind_of_refusal_has_its_reason(error: Any, reason: str) -> None:
    world = World(applying(a_child()))
    world.told_of(pool_data("a100"))
    world.server.refuse["apply", "Service"] = error
    with pytest.raises(Incomplete):
        world.reconcile()
    assert [each.reason for each in world.observed[-1].refused] == [reason]


def test_a_refusal_is_forgotten_when_what_was_refused_is_no_longer_wanted() -> None:
    wanted = [a_child()]
    world = World(lambda key, observed: applying(*wanted)(key, observed))
    world.told_of(pool_data("a100"))
    world.server.refuse["apply", "Service"] = Invalid("no", status=422)
    with pytest.raises(Incomplete):
        world.reconcile()
    wanted.clear()
    world.reconcile()
    assert world.observed[-1].refused == ()


def test_what_is_refused_to_the_router_concerns_every_resource_of_the_namespace() -> None:
    world = World(lambda key, observed: Plan(apply=(a_child(),)) if key == ROUTER else Plan())
    world.told_of(pool_data("a100"))
    world.told_of(workflow_data("shop"))
    world.server.refuse["apply", "Service"] = Forbidden("no", status=403)
    with pytest.raises(Incomplete):
        world.reconcile(ROUTER)
    assert {key.name for key in world.woken} == {"a100", "shop"}
    world.reconcile()
    assert len(world.observed[-1].refused) == 1


def test_a_fault_of_the_api_server_is_no_refusal() -> None:
    world = World(applying(a_child()))
    world.told_of(pool_data("a100"))
    world.server.refuse["apply", "Service"] = Unavailable("down")
    with pytest.raises(Unavailable):
        world.reconcile()


@pytest.mark.parametrize(
    "error", [Terminating("being terminated", status=403), NotFound("namespaces not found", status=404)]
)
def test_in_a_namespace_that_goes_away_nothing_is_tried_again(error: Any) -> None:
    world = World(applying(a_child()))
    world.told_of(pool_data("a100"))
    world.server.refuse["apply", "Service"] = error
    assert world.reconcile() == Result(gone=True)


def test_no_status_and_no_event_is_written_for_a_resource_that_went_meanwhile() -> None:
    def plan(key: Key, observed: Observed) -> Plan:
        if observed.primary is None:
            return Plan()
        return Plan(status={"ready": "1/1"}, events=(an_event(observed.primary),))

    world = World(plan)
    world.told_of(pool_data("a100"))
    world.server.refuse["status", "GPUPool"] = NotFound("gone", status=404)
    world.reconcile()
    assert world.server.writes == []


def an_event(manifest: Mapping[str, Any]) -> Event:
    return Event(
        regarding=reference_to(manifest),
        type="Warning",
        reason="Unschedulable",
        action="Reconcile",
        note="n" * 2000,
    )


def test_events_are_written_after_the_status_and_say_whom_they_are_about() -> None:
    world = World(
        lambda key, observed: (
            Plan(status={"ready": "1/1"}, events=(an_event(observed.primary),))
            if observed.primary
            else Plan()
        )
    )
    pool = world.told_of(pool_data("a100"))
    world.reconcile()
    assert [write[:2] for write in world.server.writes] == [("status", "GPUPool"), ("create", "Event")]
    event = next(each for (kind, _, _), each in world.server.objects.items() if kind == "Event")
    assert event["regarding"]["uid"] == pool["metadata"]["uid"]
    assert event["eventTime"] == "2026-11-30T00:53:20.250000Z"
    assert len(event["note"]) == 1024
    assert event["metadata"]["name"].startswith("a100.")


def test_an_event_that_cannot_be_written_is_no_reason_to_stop() -> None:
    world = World(
        lambda key, observed: (
            Plan(status={"ready": "1/1"}, events=(an_event(observed.primary),))
            if observed.primary
            else Plan()
        )
    )
    world.told_of(pool_data("a100"))
    world.server.refuse["create", "Event"] = Forbidden("no right", status=403)
    assert world.reconcile() == Result()


def test_what_is_superfluous_is_deleted_first_and_only_the_very_object() -> None:
    def plan(key: Key, observed: Observed) -> Plan:
        superfluous = Reference(
            api_version="v1", kind="Service", namespace="team", name="old", uid="uid-of-old"
        )
        return Plan(delete=(superfluous,), apply=(a_child(),)) if not observed.children else Plan()

    world = World(plan)
    world.told_of(pool_data("a100"))
    world.server.put({**a_child(name="old"), "metadata": {"name": "old", "uid": "another"}})
    world.reconcile()
    assert [write[:2] for write in world.server.writes] == [("delete", "Service"), ("apply", "Service")]
    assert ("Service", "team", "old") in world.server.objects


def test_an_object_of_somebody_else_is_not_taken_over() -> None:
    world = World(applying(a_child(selector={"app": "ours"}), status={"ready": "0/1"}))
    world.told_of(pool_data("a100"))
    theirs = world.server.put({**a_child(selector={"app": "theirs"}), "metadata": {"name": "a100-engine"}})
    with pytest.raises(Incomplete, match="rename or delete it"):
        world.reconcile()
    assert world.server.writes == [("status", "GPUPool", "a100")]
    assert world.server.objects["Service", "team", "a100-engine"] == theirs
    assert [each.reason for each in world.observed[-1].refused] == ["NameTaken"]
    world.server.remove("Service", "a100-engine")
    world.reconcile()
    assert world.server.writes[1:] == [("apply", "Service", "a100-engine")]


def test_a_child_that_has_lost_its_labels_is_known_by_who_applied_it() -> None:
    world = World(applying(a_child()))
    world.told_of(pool_data("a100"))
    managed = [{"manager": "kubectl-edit"}, {"manager": "hexflow-operator", "operation": "Apply"}]
    world.server.put({**a_child(), "metadata": {"name": "a100-engine", "managedFields": managed}})
    world.reconcile()
    assert world.server.writes == [("apply", "Service", "a100-engine")]


def test_a_delete_that_is_refused_stops_neither_the_children_nor_the_status() -> None:
    old = Reference(api_version="v1", kind="ConfigMap", namespace="team", name="old")
    world = World(applying(a_child(), status={"ready": "0/1"}, delete=(old,)))
    world.told_of(pool_data("a100"))
    world.server.refuse["delete", "ConfigMap"] = Forbidden("a webhook says no", status=403)
    for _ in range(2):
        with pytest.raises(Incomplete, match="a webhook says no"):
            world.reconcile()
        assert [(each.name, each.reason) for each in world.observed[-1].refused] == [("old", "Forbidden")]
    assert world.server.writes == [("apply", "Service", "a100-engine"), ("status", "GPUPool", "a100")]


def test_pods_of_a_pool_that_brings_its_own_are_asked_for_by_its_selector() -> None:
    world = World(lambda key, observed: Plan())
    world.told_of(pool_data("a100", selector={"matchLabels": {"app": "vllm"}}))
    world.server.put(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "mine", "labels": {"app=vllm": ""}}}
    )
    world.reconcile()
    assert [each["metadata"]["name"] for each in world.observed[-1].pods] == ["mine"]


def test_the_config_maps_that_pools_name_are_read() -> None:
    world = World(lambda key, observed: Plan())
    profile = {"configMapRef": {"name": "speed", "key": "a100"}}
    world.told_of(pool_data("a100", profile=profile))
    world.told_of(pool_data("l40s", profile=profile))
    world.server.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "speed"}})
    for key in (KEY, ROUTER):
        world.reconcile(key)
        assert [each["metadata"]["name"] for each in world.observed[-1].config_maps] == ["speed"]
    assert world.server.reads.count(("get", "ConfigMap")) == 2


async def test_the_routers_service_monitor_is_read_anew_while_it_is_there_since_nobody_watches_it() -> None:
    world = World(lambda key, observed: Plan())
    labels = {"hexflow.dev/part": "router"}
    monitor = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {"name": ROUTER_NAME, "namespace": "team", "labels": labels},
        "spec": {},
    }
    world.feed.wrote(world.server.put(monitor), by=ROUTER)
    world.server.put({**monitor, "spec": {"changed": "by hand"}})
    await world.reconciler.reconcile(ROUTER)
    assert [each["spec"] for each in world.observed[-1].children] == [{"changed": "by hand"}]
    world.server.remove("ServiceMonitor", ROUTER_NAME)
    await world.reconciler.reconcile(ROUTER)
    assert world.observed[-1].children == ()
    world.server.put({**monitor, "metadata": {"name": ROUTER_NAME, "namespace": "team"}})
    await world.reconciler.reconcile(ROUTER)
    assert world.observed[-1].children == (), "that of somebody else is not ours to delete"
    assert world.server.reads.count(("get", "ServiceMonitor")) == 2, "nobody asks for what was not there"
    world.told_of(workflow_data("shop", router={"serviceMonitor": True}))
    await world.reconciler.reconcile(ROUTER)
    assert world.server.reads.count(("get", "ServiceMonitor")) == 3
