"""The test Kubernetes itself: what the fixtures promise to the tests that use them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from support.apiserver import ApiServer
from support.auditlog import AuditLog
from support.kubernetes import ApiError, Kubectl, KubectlError
from support.waiting import until

A_CONFIGMAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}}


def test_the_api_server_keeps_what_it_is_given(kubectl: Kubectl, namespace: str) -> None:
    kubectl.apply(A_CONFIGMAP)
    read = kubectl.json("get", "configmap", "a")
    assert read["data"] == {"x": "1"}
    assert read["metadata"]["namespace"] == namespace


def test_each_test_has_an_empty_namespace(kubectl: Kubectl) -> None:
    assert kubectl("get", "configmap", "a", "--ignore-not-found") == ""


def test_a_refusal_carries_the_api_servers_words(
    kubectl: Kubectl, api_server: ApiServer, namespace: str
) -> None:
    bad = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "a"},
        "spec": {"ports": [{"port": 70000}]},
    }
    with pytest.raises(KubectlError, match="must be between 1 and 65535"):
        kubectl.apply(bad)
    with pytest.raises(ApiError, match="not found") as refused:
        api_server.api.get(f"/api/v1/namespaces/{namespace}/configmaps/none")
    assert (refused.value.status, refused.value.reason) == (404, "NotFound")


def test_a_service_account_may_do_what_a_role_grants_and_nothing_else(
    api_server: ApiServer, kubectl: Kubectl, namespace: str
) -> None:
    kubectl.apply(A_CONFIGMAP)
    account = kubectl.with_kubeconfig(api_server.service_account("reader", namespace=namespace))
    with pytest.raises(KubectlError, match="Forbidden"):
        account("get", "configmap", "a")
    kubectl("create", "role", "reader", "--verb=get,list", "--resource=configmaps")
    kubectl("create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={namespace}:reader")
    assert account("get", "configmap", "a", "-o", "name") == "configmap/a\n"
    with pytest.raises(KubectlError, match="Forbidden"):
        account("get", "secrets")


def test_the_audit_log_holds_what_was_asked_and_by_whom(
    api_server: ApiServer, audit_log: AuditLog, kubectl: Kubectl, namespace: str
) -> None:
    kubectl.apply(A_CONFIGMAP)
    account = kubectl.with_kubeconfig(api_server.service_account("somebody", namespace=namespace))
    account.run("delete", "configmap", "a")
    created, refused = audit_log.writes(namespace=namespace)
    assert (created.right, created.user, created.status) == (("create", "", "configmaps"), "admin", 201)
    assert refused.right == ("delete", "", "configmaps")
    assert refused.user == f"system:serviceaccount:{namespace}:somebody"
    assert refused.status == 403


def test_what_was_written_survives_a_restart_of_the_api_server(
    api_server: ApiServer, kubectl: Kubectl
) -> None:
    kubectl.apply(A_CONFIGMAP)
    before = kubectl.json("get", "configmap", "a")
    api_server.restart()
    assert kubectl.json("get", "configmap", "a") == before


def test_objects_change_while_the_api_server_is_stopped(
    api_server: ApiServer, kubectl: Kubectl, namespace: str
) -> None:
    kubectl.apply(A_CONFIGMAP)
    api_server.stop()
    try:
        with api_server.second() as other:
            other.delete(f"/api/v1/namespaces/{namespace}/configmaps/a")
        assert "refused" in kubectl.run("get", "configmaps").stderr
    finally:
        api_server.start()
    assert kubectl("get", "configmap", "a", "--ignore-not-found") == ""


def processes_of(folder: Path) -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if any(str(folder) in word for word in process.info["cmdline"] or ())
    ]


ROOT = Path(__file__).parents[2]
A_RUN = """
import time

def test_it(control_plane):
    print(control_plane.api_server.folder.path, flush=True)
    time.sleep(300)
"""


@pytest.mark.usefixtures("api_server")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_test_run_leaves_no_process_and_no_file(tmp_path: Path, how: signal.Signals) -> None:
    test = tmp_path / "test_run.py"
    test.write_text(A_RUN)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-s",
        "-q",
        "-p",
        "support.cluster",
        "-p",
        "support.definitions",
        "-c",
        str(ROOT / "pyproject.toml"),
    ]
    with subprocess.Popen(
        [*command, f"--rootdir={tmp_path}", str(test)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
    ) as run:
        assert run.stdout is not None
        folder = next(Path(line.strip()) for line in run.stdout if line.startswith("/"))
        assert len(processes_of(folder)) == 4
        run.send_signal(how)
        until(lambda: processes_of(folder) == [] and not folder.exists(), seconds=30)


@pytest.mark.usefixtures("api_server")
def test_make_cluster_up_keeps_one_with_gpu_nodes_until_it_is_interrupted() -> None:
    command = [sys.executable, str(ROOT / "tests" / "cluster" / "up.py"), "--nodes=1", "--gpus=3"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as up:
        assert up.stdout is not None
        said = dict(
            line.removeprefix("export ").strip().split("=")
            for line in (up.stdout.readline(), up.stdout.readline())
        )
        kubectl = Kubectl(
            binary=Path(said["PATH"].partition(":")[0]) / "kubectl",
            kubeconfig=Path(said["KUBECONFIG"]),
            cache=Path(said["KUBECONFIG"]).parent / "cache",
        )
        (node,) = kubectl.json("get", "nodes")["items"]
        assert node["status"]["allocatable"]["nvidia.com/gpu"] == "3"
        assert kubectl("get", "gpupools") == ""
        up.send_signal(signal.SIGINT)
        assert up.wait(30) == 0
    assert not kubectl.kubeconfig.exists()
