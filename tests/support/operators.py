"""Operator processes of a test: installed with the rights of `operator/manifests`, started, frozen, killed.

Each serves the namespaces of its test alone, with a Lease there, so that tests do not meet each other's operators.
"""

import os
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from sys import executable
from typing import Any

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from support.apiserver import ApiServer
from support.controllers import ControlPlane
from support.kubernetes import Api, Object
from support.waiting import until

MANIFESTS = Path(__file__).parents[2] / "operator" / "manifests"
ACCOUNT = "hexflow-operator"
PATHS = {
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
}
QUIET_SECONDS = 1.5
"""Nothing waits and nothing was written for so long: all is done. A key comes back within a second if at all."""


def install(api: Api, namespace: str, *, account: str = ACCOUNT) -> None:
    """Give a ServiceAccount of this namespace the rights that the manifests give the operator, for this namespace."""
    documents: list[Object] = []
    for file in ("base/clusterroles.yaml", "base/operator.yaml", "namespaced/binding.yaml"):
        documents += yaml.safe_load_all((MANIFESTS / file).read_text(encoding="utf-8"))
    for document in documents:
        if document["kind"] not in PATHS:
            continue
        if document["kind"] != "ClusterRole":
            document["metadata"]["namespace"] = namespace
        for subject in document.get("subjects", ()):
            subject |= {"namespace": namespace, "name": account}
        if document["kind"] in ("RoleBinding", "ServiceAccount"):
            document["metadata"]["name"] = document["metadata"]["name"].replace(ACCOUNT, account)
        path = f"{PATHS[document['kind']].format(namespace)}/{document['metadata']['name']}"
        api.patch(path, document, kind="apply", fieldManager="tests", force="true")


@dataclass(kw_only=True)
class OperatorProcess:
    """An operator that was started."""

    server: ApiServer
    name: str
    command: list[str | Path]
    port: int

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.server.folder.pid(self.name)

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.server.folder.running(self.name)

    def start(self) -> None:
        """Start it, or start it anew."""
        self.server.folder.start(self.name, self.command)

    def stop(self, *, grace_seconds: float = 20) -> None:
        """Ask it to end, and wait."""
        self.server.folder.stop(self.name, grace_seconds=grace_seconds)

    def kill(self) -> None:
        """End it with no chance to do anything."""
        self.server.folder.stop(self.name, grace_seconds=0)

    def freeze(self) -> None:
        """Stop it where it is (SIGSTOP)."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen one go on."""
        os.kill(self.pid, signal.SIGCONT)

    def log(self) -> str:
        """Return all it has written."""
        return self.server.folder.log(self.name).read_text(errors="replace")

    def metrics(self) -> dict[str, float]:
        """Return the sum of each metric over its labels; nothing while it does not answer."""
        try:
            text = httpx.get(f"http://127.0.0.1:{self.port}/metrics", timeout=10, trust_env=False).text
        except httpx.TransportError:
            return {}
        sums: dict[str, float] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                sums[sample.name] = sums.get(sample.name, 0.0) + sample.value
        return sums

    def probe(self, path: str) -> int:
        """Return the status that a probe gets; 0 where nobody answers."""
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}{path}", timeout=10, trust_env=False).status_code
        except httpx.TransportError:
            return 0

    def until_leading(self) -> None:
        """Wait until it leads and has looked at something, or there is nothing."""
        self._until(lambda: self.metrics().get("hexflow_operator_leading") == 1.0, "it does not lead")

    def until_quiet(self) -> None:
        """Wait until it has done all that there is to do."""
        seen: list[tuple[float, float]] = []

        def quiet() -> bool:
            metrics = self.metrics()
            if metrics.get("hexflow_operator_leading") != 1.0 or metrics["hexflow_operator_queue_length"]:
                seen.clear()
                return False
            writes = metrics.get("hexflow_operator_writes_total", 0.0)
            if seen and seen[0][1] != writes:
                seen.clear()
            seen.append((time.monotonic(), writes))
            return seen[-1][0] - seen[0][0] >= QUIET_SECONDS

        self._until(quiet, "it does not come to rest")

    def _until(self, condition: Any, complaint: str) -> None:
        try:
            until(lambda: not self.running or condition(), seconds=60)
        except AssertionError:
            raise AssertionError(f"{complaint}:\n{self.log()[-4000:]}") from None
        assert self.running, f"it ended:\n{self.log()[-4000:]}"


@dataclass
class Operators:
    """Start operators for one namespace; all have ended when the test has."""

    server: ApiServer
    namespace: str
    started: list[OperatorProcess] = field(default_factory=list)

    def start(self, *flags: str, url: str | None = None, account: str = ACCOUNT) -> OperatorProcess:
        """Start one more, with the flags; `url` puts a proxy between it and the API server.

        `account` is a ServiceAccount that was installed, by which the audit log tells operators apart.
        """
        name = f"operator-{self.namespace}-{len(self.started)}"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        kubeconfig = self.server.service_account(account, namespace=self.namespace, url=url)
        command: list[str | Path] = [
            *(executable, "-m", "hexflow_operator"),
            *(f"--kubeconfig={kubeconfig}", f"--namespaces={self.namespace}"),
            *(f"--lease-namespace={self.namespace}", f"--identity={name}"),
            *(f"--port={port}", "--router-url=", *flags),
        ]
        operator = OperatorProcess(server=self.server, name=name, command=command, port=port)
        operator.start()
        self.started.append(operator)
        return operator

    @property
    def user(self) -> str:
        """The name of their ServiceAccount in the audit log."""
        return self.user_of(ACCOUNT)

    def user_of(self, account: str) -> str:
        """Return the name of a ServiceAccount in the audit log."""
        return f"system:serviceaccount:{self.namespace}:{account}"

    def close(self) -> None:
        """End all of them, and print what they have written: a failure shows it."""
        for operator in self.started:
            if operator.running:
                operator.kill()
            print(f"--- {operator.name}", operator.log(), sep="\n")  # noqa: T201


@pytest.fixture
def operators(
    control_plane: ControlPlane, definitions: None, api_server: ApiServer, namespace: str
) -> Iterator[Operators]:
    """Start operators that serve the test's namespace, with the rights that the manifests give."""
    install(api_server.api, namespace)
    started = Operators(api_server, namespace)
    yield started
    started.close()


@pytest.fixture
def operator(operators: Operators) -> OperatorProcess:
    """Start one operator for the test's namespace and wait until it leads."""
    started = operators.start()
    started.until_leading()
    return started
