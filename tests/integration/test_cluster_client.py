"""The way to the Kubernetes API: on a real server, through a proxy that fails, and with credentials that rotate."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from hexflow_cluster import (
    NO_RETRIES,
    Access,
    Busy,
    Cluster,
    Conflict,
    Forbidden,
    Invalid,
    Kind,
    KindUnknown,
    LeaseRecord,
    Leases,
    NotFound,
    Retries,
    Unauthorized,
    Unavailable,
    WatchEvent,
    connect,
)
from support.apiproxy import Answer, ApiProxy, Cut, LoseAnswer, Slow
from support.apiserver import ApiServer

CONFIG_MAP = Kind("v1", "ConfigMap")
QUICK = Retries(first_seconds=0.01, longest_seconds=1.0)


@pytest.fixture
async def cluster(api_server: ApiServer, api_proxy: ApiProxy) -> AsyncIterator[Cluster]:
    connection = await connect(Access(kubeconfig=api_server.kubeconfig_as("admin", url=api_proxy.url)))
    yield Cluster(connection, retries=QUICK)
    await connection.close()


def a_config_map(namespace: str, name: str = "a", **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": {"test": "client"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def test_what_is_applied_is_read_listed_and_deleted(cluster: Cluster, namespace: str) -> None:
    made = await cluster.apply(a_config_map(namespace, x="1"))
    again = await cluster.apply(a_config_map(namespace, x="1"))
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert (await cluster.get(CONFIG_MAP, "a", namespace=namespace))["data"] == {"x": "1"}
    names = await cluster.list(CONFIG_MAP, namespace=namespace, labels="test=client", names_only=True)
    assert [(each["kind"], each["metadata"]["name"], "data" in each) for each in names.items] == [
        ("ConfigMap", "a", False)
    ]
    with pytest.raises(Conflict):
        await cluster.delete(CONFIG_MAP, "a", namespace=namespace, uid="another")
    for _ in range(2):  # one that is gone is well
        await cluster.delete(CONFIG_MAP, "a", namespace=namespace, uid=made["metadata"]["uid"])
    assert await cluster.find(CONFIG_MAP, "a", namespace=namespace) is None
    assert (
        await cluster.list(CONFIG_MAP, namespace=namespace, labels="test=client", names_only=True)
    ).items == ()


async def test_a_long_list_comes_in_pages(
    cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hexflow_cluster.cluster.PAGE", 3)
    await asyncio.gather(*(cluster.apply(a_config_map(namespace, f"m-{number}")) for number in range(8)))
    listing = await cluster.list(CONFIG_MAP, namespace=namespace, labels="test=client")
    assert sorted(each["metadata"]["name"] for each in listing.items) == [
        f"m-{number}" for number in range(8)
    ]


async def test_each_refusal_has_a_class_of_its_own(cluster: Cluster, namespace: str) -> None:
    made = await cluster.apply(a_config_map(namespace))
    with pytest.raises(NotFound):
        await cluster.get(CONFIG_MAP, "none", namespace=namespace)
    with pytest.raises(KindUnknown, match="no kind Nothing in v1"):
        await cluster.list(Kind("v1", "Nothing"))
    with pytest.raises(KindUnknown):
        await cluster.list(Kind("nowhere.example/v1", "Nothing"))
    with pytest.raises(Conflict):
        await cluster.create(a_config_map(namespace))
    other = a_config_map(namespace)
    other["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    with pytest.raises(Conflict):
        await cluster.apply(other)
    with pytest.raises(Invalid):
        await cluster.apply({**a_config_map(namespace), "bogus": {"field": 1}})
    made["metadata"]["resourceVersion"] = "1"
    with pytest.raises(Conflict):
        await cluster.replace(made)


async def test_who_has_no_right_is_told_so(api_server: ApiServer, namespace: str) -> None:
    connection = await connect(Access(kubeconfig=api_server.service_account("nobody", namespace=namespace)))
    try:
        with pytest.raises(Forbidden, match="nobody"):
            await Cluster(connection).list(CONFIG_MAP, namespace=namespace)
    finally:
        await connection.close()


@pytest.mark.parametrize(
    "fault",
    [Answer(429, headers={"Retry-After": "1"}), Answer(503), Answer(500), Cut(), LoseAnswer()],
    ids=repr,
)
async def test_what_passes_is_tried_again(
    fault: Any, cluster: Cluster, api_proxy: ApiProxy, namespace: str
) -> None:
    await cluster.knows(CONFIG_MAP)
    rule = api_proxy.fault(fault, path="configmaps", times=2)
    assert (await cluster.apply(a_config_map(namespace, x="1")))["data"] == {"x": "1"}
    assert rule.hits == 2


async def test_what_does_not_pass_comes_out(
    api_server: ApiServer, api_proxy: ApiProxy, namespace: str
) -> None:
    connection = await connect(Access(kubeconfig=api_server.kubeconfig_as("admin", url=api_proxy.url)))
    cluster = Cluster(connection, retries=NO_RETRIES, read_seconds=0.5)
    try:
        await cluster.knows(CONFIG_MAP)
        for fault, error in ((Answer(429), Busy), (Slow(5.0), Unavailable), (Cut(), Unavailable)):
            rule = api_proxy.fault(fault, path="configmaps")
            with pytest.raises(error):
                await cluster.get(CONFIG_MAP, "a", namespace=namespace)
            assert rule.hits == (2 if fault == Cut() else 1), (
                "aiohttp takes a new connection for one that was cut"
            )
            api_proxy.well()
    finally:
        await connection.close()


async def test_a_guard_that_says_no_lets_no_write_out(api_server: ApiServer, namespace: str) -> None:
    connection = await connect(Access(kubeconfig=api_server.admin_kubeconfig))

    class NotAllowed(Exception):
        pass

    async def guard() -> None:
        raise NotAllowed

    cluster = Cluster(connection, guard=guard)
    try:
        for write in (
            cluster.apply(a_config_map(namespace)),
            cluster.create(a_config_map(namespace)),
            cluster.delete(CONFIG_MAP, "a", namespace=namespace),
        ):
            with pytest.raises(NotAllowed):
                await write
        assert await cluster.find(CONFIG_MAP, "a", namespace=namespace) is None, (
            "and reads are nobody's concern"
        )
    finally:
        await connection.close()


async def test_a_watch_goes_on_after_cuts_and_410_and_tells_what_it_missed(
    cluster: Cluster, api_server: ApiServer, api_proxy: ApiProxy, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    api = api_server.api
    api.create(path, a_config_map(namespace, "kept"))
    api.create(path, a_config_map(namespace, "ghost"))
    events = cluster.watch(CONFIG_MAP, namespace=namespace, labels="test=client")

    async def told(count: int) -> set[tuple[str, str]]:
        found: set[tuple[str, str]] = set()
        while len(found) < count:
            event: WatchEvent = await anext(events)
            found.add((event.type, event.object.get("metadata", {}).get("name", "")))
        return found

    async with asyncio.timeout(60), aclosing(events):  # type: ignore[type-var]
        assert await told(3) == {("Added", "kept"), ("Added", "ghost"), ("Synced", "")}
        first = asyncio.ensure_future(told(1))
        await asyncio.sleep(0.5)
        api.patch(f"{path}/kept", {"data": {"x": "1"}})
        assert await first == {("Modified", "kept")}
        second = asyncio.ensure_future(told(1))
        await asyncio.sleep(0.2)
        api_proxy.cut(watches=True)
        api.create(path, a_config_map(namespace, "new"))
        assert await second == {("Added", "new")}
        third = asyncio.ensure_future(told(3))
        await asyncio.sleep(1.0)
        api_proxy.refuse()
        api.delete(f"{path}/ghost")
        api.patch(f"{path}/kept", {"data": {"x": "2"}})
        api_proxy.well()
        api_proxy.fault(Answer(410), path="configmaps", watch=True, times=1)
        assert await third == {("Deleted", "ghost"), ("Modified", "kept"), ("Synced", "")}


async def test_a_lease_is_written_only_over_the_version_that_was_read(
    cluster: Cluster, namespace: str
) -> None:
    leases = Leases(cluster, namespace=namespace, name="lead")
    assert await leases.read() is None
    free = LeaseRecord(holder="", duration_seconds=15)
    mine = await leases.write(free.held_by("me", at=1_796_000_000.5, duration_seconds=15))
    with pytest.raises(Conflict):
        await leases.write(free.held_by("you", at=1_796_000_000.5, duration_seconds=15))
    yours = await leases.write(mine.held_by("you", at=1_796_000_020.0, duration_seconds=15))
    assert (yours.holder, yours.transitions) == ("you", 1)
    assert yours.acquired == yours.renewed
    assert await leases.read() == yours


@pytest.fixture
def account(api_server: ApiServer, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lay out a pod's ServiceAccount, whose token is of no use."""
    host, _, port = api_server.url.removeprefix("https://").partition(":")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    (tmp_path / "ca.crt").write_bytes(api_server.ca.read_bytes())
    (tmp_path / "token").write_text("stale")
    return tmp_path


async def test_a_token_that_was_rotated_is_read_again_by_both_clients(
    api_server: ApiServer, account: Path, namespace: str
) -> None:
    connection = await connect(Access(service_account=account))
    session = connection.session()
    try:
        cluster = Cluster(connection)
        with pytest.raises(Unauthorized):
            await cluster.knows(CONFIG_MAP)
        kubeconfig = api_server.service_account("poor", namespace=namespace).read_text(encoding="utf-8")
        (account / "token").write_text(kubeconfig.partition('"token": "')[2].partition('"')[0])
        assert await cluster.knows(CONFIG_MAP)
        (account / "token").write_text("stale again")
        await connection.reload()
        (account / "token").write_text(kubeconfig.partition('"token": "')[2].partition('"')[0])
        async with session.get(f"{connection.server}/api/v1") as answer:
            assert answer.status == 200
    finally:
        await session.close()
        await connection.close()
