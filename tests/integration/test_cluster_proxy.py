"""The proxy in front of the test Kubernetes: each fault reaches the client, and only those that it is meant for."""

import time
from collections.abc import Iterator

import httpx
import pytest

from support.apiproxy import Answer, ApiProxy, Cut, LoseAnswer, Slow
from support.apiserver import ApiServer
from support.kubernetes import Api, ApiError, Kubectl, Object


@pytest.fixture
def proxied(api_server: ApiServer, api_proxy: ApiProxy) -> Iterator[Api]:
    api = api_server.api_as("admin", url=api_proxy.url)
    yield api
    api.close()


@pytest.fixture
def path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def a_configmap(name: str = "a") -> Object:
    return {"metadata": {"name": name}}


def test_what_meets_no_fault_is_passed_on(
    api_server: ApiServer, api_proxy: ApiProxy, kubectl: Kubectl, namespace: str
) -> None:
    through = kubectl.with_kubeconfig(
        api_server.kubeconfig_as("admin", url=api_proxy.url, namespace=namespace)
    )
    through("create", "configmap", "a", "--from-literal=x=ä &?")
    assert through.json("get", "configmap", "a") == kubectl.json("get", "configmap", "a")
    assert any(seen.method == "POST" and "configmaps" in seen.path for seen in api_proxy.seen)


@pytest.mark.parametrize(
    ("status", "reason"), [(409, "Conflict"), (429, "TooManyRequests"), (500, "InternalError")]
)
def test_an_error_is_answered_so_often_and_to_nobody_else(
    api_proxy: ApiProxy, proxied: Api, path: str, status: int, reason: str
) -> None:
    rule = api_proxy.fault(
        Answer(status, headers={"Retry-After": "1"}), method="POST", path="configmaps", times=1
    )
    assert proxied.items(path, labelSelector="none") == []
    with pytest.raises(ApiError, match="the test says so") as refused:
        proxied.create(path, a_configmap())
    assert (refused.value.status, refused.value.reason) == (status, reason)
    proxied.create(path, a_configmap())
    assert rule.hits == 1


def test_an_answer_is_lost_and_the_deed_is_done(api_proxy: ApiProxy, proxied: Api, path: str) -> None:
    api_proxy.fault(LoseAnswer(), method="POST", times=1)
    with pytest.raises(httpx.TransportError):
        proxied.create(path, a_configmap())
    assert proxied.exists(f"{path}/a")


def test_a_request_is_cut_and_nothing_is_done(api_proxy: ApiProxy, proxied: Api, path: str) -> None:
    api_proxy.fault(Cut(), method="POST", times=1)
    with pytest.raises(httpx.TransportError):
        proxied.create(path, a_configmap())
    assert not proxied.exists(f"{path}/a")


def test_a_slow_request_arrives_late(api_proxy: ApiProxy, proxied: Api, path: str) -> None:
    api_proxy.fault(Slow(0.3), method="POST", times=1)
    began = time.monotonic()
    proxied.create(path, a_configmap())
    assert time.monotonic() - began >= 0.3


def test_a_watch_is_cut(api_proxy: ApiProxy, proxied: Api, path: str) -> None:
    proxied.create(path, a_configmap())
    with proxied.watch(path, fieldSelector="metadata.name=a") as watch:
        events = iter(watch)
        assert next(events)[0] == "ADDED"
        assert api_proxy.cut(watches=True) == 1
        with pytest.raises(httpx.TransportError):
            next(events)


def test_a_watch_hears_that_its_version_is_too_old(api_proxy: ApiProxy, proxied: Api, path: str) -> None:
    proxied.create(path, a_configmap())
    with proxied.watch(path, fieldSelector="metadata.name=a") as watch:
        events = iter(watch)
        next(events)
        assert api_proxy.expire() == 1
        kind, status = next(events)
    assert (kind, status["code"], status["reason"]) == ("ERROR", 410, "Expired")


def test_nobody_listens_until_all_is_well(api_proxy: ApiProxy, proxied: Api, path: str) -> None:
    proxied.items(path)
    api_proxy.refuse()
    with pytest.raises(httpx.ConnectError):
        proxied.items(path)
    api_proxy.well()
    proxied.create(path, a_configmap())


def test_a_frozen_connection_is_silent_until_all_is_well(
    api_server: ApiServer, api_proxy: ApiProxy, proxied: Api, path: str
) -> None:
    with proxied.watch(path, fieldSelector="metadata.name=a") as watch:
        api_proxy.freeze()
        api_server.api.create(path, a_configmap())
        with pytest.raises(httpx.ReadTimeout):
            httpx.get(
                f"{api_proxy.url}/readyz",
                verify=api_server.trust(),
                timeout=0.3,
            )
        api_proxy.well()
        assert next(iter(watch))[0] == "ADDED"


def test_the_proxy_breaks_when_the_api_server_does(api_server: ApiServer, proxied: Api, path: str) -> None:
    with proxied.watch(path) as watch:
        api_server.restart()
        with pytest.raises(httpx.TransportError):
            for _ in watch:
                pass
    assert proxied.items(path, labelSelector="none") == []
