"""Runs of the tuner as its CronJob makes them: a process with the token and the rights of its ServiceAccount."""

import os
import subprocess
import sys
from dataclasses import dataclass

from hexflow_api.tuned import Tuned, read_tuned
from hexflow_operator.children.account import role_binding
from support.apiserver import ApiServer
from support.kubernetes import ApiError, Object
from support.operators import install


@dataclass(frozen=True, kw_only=True)
class Tuner:
    """The tuner of one workflow."""

    server: ApiServer
    namespace: str
    workflow: str

    @property
    def account(self) -> str:
        """Its ServiceAccount."""
        return f"{self.workflow}-tuner"

    @property
    def user(self) -> str:
        """Its name in the audit log."""
        return f"system:serviceaccount:{self.namespace}:{self.account}"

    def install(self) -> None:
        """Give it the rights that operator and manifests give it."""
        install(self.server.api, self.namespace)
        binding = role_binding(
            {"name": self.account, "namespace": self.namespace}, cluster_role="hexflow-tuner"
        )
        path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{self.namespace}/rolebindings"
        self.server.api.create(path, binding)

    def run(self, router: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Make one run; ``router`` is the address of an admin port."""
        kubeconfig = self.server.service_account(self.account, namespace=self.namespace)
        return subprocess.run(
            [
                *(sys.executable, "-m", "hexflow_simulator.tuner", "--workflow", self.workflow),
                *("--router", router, "--kubeconfig", str(kubeconfig), *arguments),
            ],
            env=os.environ | {"HEXFLOW_NAMESPACE": self.namespace},
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )

    def config_map(self) -> Object | None:
        """Return what it has written."""
        path = f"/api/v1/namespaces/{self.namespace}/configmaps/{self.workflow}-policy"
        try:
            return self.server.api.get(path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def tuned(self) -> Tuned:
        """Return what it has written, understood."""
        return read_tuned(self.config_map())
