"""The fixtures of a test Kubernetes: `api_server`, `control_plane`, `namespace`, `kubectl`, `audit_log` and more.

A test that uses one of them is marked `cluster`. One server serves all test files of a run; each test has a
namespace of its own. `tests/cluster/README.md` tells how to use them.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.apiproxy import ApiProxy
from support.apiserver import ApiServer
from support.auditlog import AuditLog
from support.binaries import BinariesMissing, binaries
from support.controllers import ControlPlane
from support.kubelet import FakeKubelet
from support.kubernetes import ApiError, Kubectl
from support.runfolder import RunFolder
from support.waiting import until


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses a cluster, and give it time: a server on busy cores may need a minute to start."""
    for item in items:
        if "api_server" in getattr(item, "fixturenames", ()):
            item.add_marker("cluster")
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(300))


@pytest.fixture(scope="session")
def api_server() -> Iterator[ApiServer]:
    """Run etcd and an API server: custom resources, CEL, rights; nobody acts on what is written (tier a)."""
    binaries = binaries_or_skip("a")
    with RunFolder() as folder:
        server = ApiServer(binaries=binaries, folder=folder)
        try:
            yield server
        finally:
            server.close()


@pytest.fixture(scope="session")
def control_plane(api_server: ApiServer, definitions: None) -> Iterator[ControlPlane]:
    """Add the controllers and the scheduler to the API server of all tests (tier b).

    Our custom resources come first: the garbage collector looks for new kinds but every half minute.
    """
    binaries_or_skip("b")
    controllers = ControlPlane(api_server)
    try:
        yield controllers
    finally:
        controllers.close()


@pytest.fixture
def kubelet(control_plane: ControlPlane) -> Iterator[FakeKubelet]:
    """Play the kubelet; the nodes that a test adds are gone after it."""
    yield control_plane.kubelet
    control_plane.kubelet.forget()


@pytest.fixture
def namespace(api_server: ApiServer, request: pytest.FixtureRequest) -> Iterator[str]:
    """Make a namespace for one test; it is deleted after it, without waiting."""
    if not api_server.folder.running("apiserver"):
        api_server.start()  # a test that stopped it has failed in between; that is no fault of the others
    name: str = api_server.api.create("/api/v1/namespaces", {"metadata": {"generateName": "test-"}})[
        "metadata"
    ]["name"]
    if api_server.controllers:  # no pod is made in a namespace before this is there
        until(lambda: api_server.api.exists(f"/api/v1/namespaces/{name}/serviceaccounts/default"), seconds=60)
    yield name
    with contextlib.suppress(ApiError):  # the test may have deleted it
        api_server.api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def kubectl(api_server: ApiServer, namespace: str) -> Kubectl:
    """Call kubectl as an administrator, in the test's namespace."""
    return api_server.kubectl(api_server.kubeconfig_as("admin", namespace=namespace))


@pytest.fixture
def audit_log(api_server: ApiServer) -> AuditLog:
    """Return what the API server is asked from the test's start on."""
    return api_server.audit_log().from_now_on()


@pytest.fixture
def api_proxy(api_server: ApiServer) -> Iterator[ApiProxy]:
    """Put a proxy that misbehaves on demand in front of the API server; `kubeconfig_as(…, url=api_proxy.url)`."""
    with ApiProxy(api_server) as proxy:
        yield proxy


def binaries_or_skip(tier: str) -> Path:
    """Return the folder of the binaries, or skip the test where one is missing; under CI that is an error."""
    try:
        return binaries(tier)
    except BinariesMissing as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing))
        pytest.skip(str(missing))
