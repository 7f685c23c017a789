"""Who acts on what the API server keeps: controller manager, scheduler, and a fake kubelet for the nodes."""

import time
from collections.abc import Sequence
from pathlib import Path

from support.apiserver import ApiServer
from support.kubelet import FakeKubelet

READY_SECONDS = 60.0


class ControlPlane:
    """Run the controllers of an API server: garbage collection, Deployments, Jobs, budgets, scheduling."""

    def __init__(self, api_server: ApiServer) -> None:
        self.api_server = api_server
        self._kubelet_api = api_server.api_as("kubelet")
        folder = api_server.folder.path
        common = ("--leader-elect=false", "--secure-port=0", "--kube-api-qps=500", "--kube-api-burst=1000")
        managing: Sequence[str | Path] = (
            api_server.binaries / "kube-controller-manager",
            f"--kubeconfig={api_server.kubeconfig_as('controllers')}",
            f"--service-account-private-key-file={folder / 'accounts.key'}",
            f"--root-ca-file={api_server.ca}",
            "--use-service-account-credentials",
            f"--flex-volume-plugin-dir={folder / 'volume-plugins'}",
            "--node-monitor-grace-period=24h",  # nobody renews the leases of fake nodes
            *common,
        )
        scheduling: Sequence[str | Path] = (
            api_server.binaries / "kube-scheduler",
            f"--kubeconfig={api_server.kubeconfig_as('scheduler')}",
            *common,
        )
        api_server.folder.start("controllers", managing)
        api_server.folder.start("scheduler", scheduling)
        api_server.controllers = True
        self._await_ready()
        self.kubelet = FakeKubelet(self._kubelet_api)

    def close(self) -> None:
        """Stop them all."""
        self.kubelet.stop()
        self._kubelet_api.close()
        self.api_server.controllers = False
        for name in ("scheduler", "controllers"):
            self.api_server.folder.stop(name, grace_seconds=0)

    def _await_ready(self) -> None:
        """Wait for the first thing that the controllers do: the ServiceAccount of a namespace."""
        end = time.monotonic() + READY_SECONDS
        while not self.api_server.api.exists("/api/v1/namespaces/default/serviceaccounts/default"):
            for name in ("controllers", "scheduler"):
                assert self.api_server.folder.running(name), (
                    f"{name} ended:\n{self.api_server.folder.tail(name)}"
                )
            assert time.monotonic() < end, (
                f"no controller acted within {READY_SECONDS:g} s:\n{self.api_server.folder.tail('controllers')}"
            )
            time.sleep(0.1)
