"""A router process in a test's namespace, with the token and the rights of its ServiceAccount, over emulated pods.

Pods are objects without a node; where their status says that they run, an emulated instance listens in this process,
each at a loopback address of its own. The ConfigMap is written as the operator writes it.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from sys import executable
from typing import Any

import httpx

from hexflow_api.handover import handed_over, packed
from hexflow_api.tuned import Tuned
from hexflow_emulator import emulator_app
from hexflow_operator.children.account import role_binding
from support.apiserver import ApiServer
from support.kubernetes import ApiError, Object
from support.operators import ACCOUNT as OPERATOR
from support.operators import install
from support.router import Laptop, a_laptop, emulator_options
from support.serving import serving
from support.waiting import eventually

ACCOUNT = "hexflow-router"
TIME_SCALE = 50.0


@dataclass(kw_only=True)
class RouterCluster:
    """A namespace as the operator leaves it for its router."""

    server: ApiServer
    namespace: str
    laptop: Laptop
    secrets: Path
    stack: contextlib.AsyncExitStack
    engine_port: int
    engines: dict[str, contextlib.AsyncExitStack] = field(default_factory=dict)
    routers: int = 0

    # what the operator writes

    def hand_over(self, *resources: Object, gzipped: bool = False) -> None:
        """Write the router's ConfigMap, oldest resource first."""
        complete = [self._stored(each, age) for age, each in enumerate(resources)]
        pools = [each for each in complete if each["kind"] == "GPUPool"]
        workflows = [each for each in complete if each["kind"] != "GPUPool"]
        text = handed_over(pools, workflows, ())
        content = packed(text + b" " * (300 * 1024) if gzipped else text)
        assert content is not None
        self.write_config_map({"metadata": {"name": ACCOUNT}, **content})

    def _stored(self, resource: Object, age: int) -> Object:
        metadata = {
            "namespace": self.namespace,
            "uid": f"00000000-0000-4000-8000-{age:012}",
            "creationTimestamp": f"2026-11-30T07:{age:02}:00Z",
            **resource["metadata"],
        }
        return {**resource, "metadata": metadata}

    def write_config_map(self, config_map: Object) -> None:
        """Write a ConfigMap whole."""
        path = f"/api/v1/namespaces/{self.namespace}/configmaps"
        try:
            self.server.api.create(path, config_map)
        except ApiError as error:
            if error.status != 409:
                raise
            self.server.api.replace(f"{path}/{config_map['metadata']['name']}", config_map)

    def delete_config_map(self, name: str) -> None:
        """Delete a ConfigMap."""
        self.server.api.delete(f"/api/v1/namespaces/{self.namespace}/configmaps/{name}")

    def tune(
        self, workflow: str, tuned: Tuned | None = None, *, data: Mapping[str, str] | None = None
    ) -> None:
        """Write what a tuner has found for a workflow, or the very data."""
        labels = {"hexflow.dev/part": "policy", "hexflow.dev/workflow": workflow}
        content = dict(data or {}) if tuned is None else tuned.as_data()
        self.write_config_map({"metadata": {"name": f"{workflow}-policy", "labels": labels}, "data": content})

    def write_secret(self, name: str, key: str, value: str) -> None:
        """Write a file as the kubelet projects a Secret's key."""
        (self.secrets / name).mkdir(parents=True, exist_ok=True)
        (self.secrets / name / key).write_text(value)

    # pods

    async def make_pod(
        self,
        name: str,
        pool: str,
        *,
        ready: bool = True,
        labels: Mapping[str, str] | None = None,
        answers: bool = True,
        **status: Any,
    ) -> str:
        """Make a pod of a pool, with an emulated instance behind its address; return its UID."""
        address = f"127.0.0.{10 + len(self.engines)}"
        own = {"hexflow.dev/part": "engine", "hexflow.dev/pool": pool} if labels is None else dict(labels)
        pod = self.server.api.create(
            self._pods,
            {
                # the finalizer keeps a deleted pod in sight for as long as the test wants it to be Terminating
                "metadata": {"name": name, "labels": own, "finalizers": ["hexflow.dev/test"]},
                "spec": {
                    "schedulerName": "nobody",
                    "serviceAccountName": OPERATOR,  # the default one is there only beside controllers
                    "automountServiceAccountToken": False,
                    "containers": [
                        {
                            "name": "engine",
                            "image": "emulator",
                            "ports": [{"containerPort": self.engine_port}],
                        }
                    ],
                },
            },
        )
        stack = self.engines[name] = await self.stack.enter_async_context(contextlib.AsyncExitStack())
        if answers:
            app = emulator_app(emulator_options(self.laptop, time_scale=TIME_SCALE))
            await stack.enter_async_context(serving(app, host=address, port=self.engine_port))
        self.put_pod(name, ready=ready, podIP=address, podIPs=[{"ip": address}], **status)
        uid: str = pod["metadata"]["uid"]
        return uid

    def put_pod(self, name: str, *, ready: bool, **status: Any) -> None:
        """Write a pod's status, as its kubelet does."""
        condition = {"type": "Ready", "status": str(ready)}
        body = {"status": {"phase": "Running", "conditions": [condition], **status}}
        self.server.api.patch(f"{self._pods}/{name}/status", body)

    def delete_pod(self, name: str) -> None:
        """Delete a pod: it is Terminating until `end_pod`."""
        self.server.api.delete(f"{self._pods}/{name}")

    def end_pod(self, name: str) -> None:
        """Let a deleted pod go."""
        self.server.api.patch(f"{self._pods}/{name}", {"metadata": {"finalizers": None}})

    async def kill_engine(self, name: str) -> None:
        """End what listens at a pod's address; the pod stays as it is."""
        await self.engines[name].aclose()

    @property
    def _pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    # routers

    async def router(
        self,
        *arguments: str,
        url: str | None = None,
        ready: bool = True,
        ports: tuple[int, int] | None = None,
    ) -> "ClusterRouter":
        """Start a router process; ``url`` puts a proxy between it and the API server."""
        self.routers += 1
        name = f"router-{self.namespace}-{self.routers}"
        kubeconfig = self.server.service_account(ACCOUNT, namespace=self.namespace, url=url)
        ports = ports or (_free_port(), _free_port())
        command: list[str | Path] = [
            *(executable, "-m", "hexflow_router", f"--kubeconfig={kubeconfig}"),
            *("--config-map", ACCOUNT, "--secrets-dir", self.secrets, f"--time-scale={TIME_SCALE}"),
            *(f"--port={ports[0]}", f"--admin-port={ports[1]}", "--grace-seconds=2"),
            *arguments,
        ]
        # HEXFLOW_NAMESPACE is how a pod is told
        environment = {"HEXFLOW_NAMESPACE": self.namespace}
        self.server.folder.start(name, command, environment=environment)
        client, admin = [
            await self.stack.enter_async_context(
                httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30, trust_env=False)
            )
            for port in ports
        ]
        router = ClusterRouter(cluster=self, name=name, client=client, admin=admin)
        self.stack.callback(router.close)
        await router.until_up()
        if ready:
            await router.until(lambda: router.readiness("/readyz"), "it is not ready")
        return router

    @property
    def user(self) -> str:
        """The router's name in the audit log."""
        return f"system:serviceaccount:{self.namespace}:{ACCOUNT}"


@dataclass(kw_only=True)
class ClusterRouter:
    """A router process, with clients of both of its ports."""

    cluster: RouterCluster
    name: str
    client: httpx.AsyncClient
    admin: httpx.AsyncClient

    async def readiness(self, path: str) -> bool:
        """Tell whether a path of the tenants' port answers 200."""
        return (await self.client.get(path)).status_code == 200

    async def report(self) -> dict[str, Any]:
        """Return what it says to the operator."""
        found: dict[str, Any] = (await self.admin.get("/v1/report")).json()
        return found

    async def servers(self) -> dict[str, dict[str, Any]]:
        """Return what it knows of each instance, by the name of its pod, and what the kernel was told."""
        state = (await self.admin.get("/debug/scheduler")).json()
        told = {each["instance"]: each["state"] for each in state["instances"]}
        return {
            each["instance"].partition(".")[0]: {**each, "state": told.get(each["instance"])}
            for each in state["servers"]
        }

    async def state_of(self, pod: str) -> str | None:
        """Return what the kernel was told of a pod's instance; None where there is none."""
        found = (await self.servers()).get(pod)
        return None if found is None else found["state"]

    async def until_state(self, pod: str, state: str | None) -> None:
        """Wait until the kernel was told a state."""

        async def reached() -> bool:
            return await self.state_of(pod) == state

        await self.until(reached, f"{pod} is not {state}")

    async def until_up(self) -> None:
        """Wait until the process answers."""

        async def answers() -> bool:
            with contextlib.suppress(httpx.TransportError):
                return (await self.client.get("/healthz")).status_code == 200
            assert self.cluster.server.folder.running(self.name), self.log()
            return False

        await self.until(answers, "it does not start")

    async def until(self, condition: Any, complaint: str, *, seconds: float = 40) -> None:
        """Wait; a failure shows the log."""
        try:
            await eventually(condition, seconds=seconds)
        except TimeoutError:
            raise AssertionError(f"{complaint}:\n{self.log()[-4000:]}") from None

    def log(self) -> str:
        """Return all it has written."""
        return self.cluster.server.folder.log(self.name).read_text(errors="replace")

    def close(self) -> None:
        """End it."""
        if self.cluster.server.folder.running(self.name):
            self.cluster.server.folder.stop(self.name, grace_seconds=0)
        print(f"--- {self.name}", self.log(), sep="\n")  # noqa: T201


@contextlib.asynccontextmanager
async def router_cluster(server: ApiServer, namespace: str, folder: Path) -> AsyncIterator[RouterCluster]:
    """Lay out a namespace: rights, the little database, and its address as a mounted secret."""
    install(server.api, namespace)
    binding = role_binding({"name": ACCOUNT, "namespace": namespace}, cluster_role=ACCOUNT)
    server.api.create(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings", binding)
    laptop = a_laptop(folder / "laptop")
    async with contextlib.AsyncExitStack() as stack:
        cluster = RouterCluster(
            server=server,
            namespace=namespace,
            laptop=laptop,
            secrets=folder / "secrets",
            stack=stack,
            engine_port=_free_port(),
        )
        cluster.secrets.mkdir()
        cluster.write_secret("shop", "dsn", f"sqlite:///{laptop.resources / 'shop.sqlite'}")
        try:
            yield cluster
        finally:
            for name in [*cluster.engines]:
                with contextlib.suppress(ApiError):
                    cluster.end_pod(name)
            await asyncio.sleep(0)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
