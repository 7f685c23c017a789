"""The rights that the manifests give are those that are used, no fewer and no more, in both variants.

On a server of its own, so that its audit log holds one story for each variant: operator, router and tuner as processes,
each by the token of its ServiceAccount, are led along every way on which one of them asks the API server for something.
What they asked is compared with the rules of `operator/manifests`. A right that a new feature needs shows here as a
refusal, one that nothing needs any more as unused.
"""

import asyncio
import contextlib
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.apiproxy import ApiProxy, Slow
from support.apiserver import ApiServer
from support.auditlog import AuditLog, Request
from support.cluster import binaries_or_skip
from support.definitions import DEFINITIONS, define, served_at
from support.kubernetes import ApiError, Object
from support.objects import CHILDREN, Objects
from support.operators import PATHS, OperatorProcess
from support.resources import pool_data, workflow_data
from support.router import WORKFLOW, a_laptop
from support.routers import RouterCluster
from support.runfolder import RunFolder
from support.tuners import Tuner
from support.waiting import until

MANIFESTS = Path(__file__).parents[2] / "operator" / "manifests"
SYSTEM = "hexflow-system"
OPERATOR = f"system:serviceaccount:{SYSTEM}:hexflow-operator"
MONITORS = "/apis/monitoring.coreos.com/v1/namespaces/{}/servicemonitors"
MONITOR_DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "servicemonitors.monitoring.coreos.com",
        "annotations": {"api-approved.kubernetes.io": "unapproved, a stand-in of tests"},
    },
    "spec": {
        "group": "monitoring.coreos.com",
        "scope": "Namespaced",
        "names": {"kind": "ServiceMonitor", "plural": "servicemonitors"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
            }
        ],
    },
}
WATCHED_KINDS = 10
"""Kinds that the operator watches: two of ours, seven of children, pods."""

Right = tuple[str, str, str]
"""Verb, API group, resource or resource/subresource."""


@dataclass(frozen=True)
class Story:
    """Hold what was asked in one variant."""

    variant: str
    namespace: str
    manifests: tuple[Object, ...]
    audit: AuditLog
    bound: frozenset[str]
    """ClusterRoles that the operator has bound."""

    def asked(self, who: str) -> list[Request]:
        """Return the requests of operator, router or tuner."""
        account = {"router": "hexflow-router", "tuner": f"{WORKFLOW}-tuner"}.get(who)
        user = OPERATOR if account is None else f"system:serviceaccount:{self.namespace}:{account}"
        return [each for each in self.audit.requests(user=user) if each.resource]

    def manifest(self, kind: str, name: str) -> Object:
        """Return a manifest."""
        return next(
            each for each in self.manifests if (each["kind"], each["metadata"]["name"]) == (kind, name)
        )


def granted(*roles: Object) -> set[Right]:
    """Return the rights that roles give."""
    return {
        (verb, group, resource)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def used(requests: list[Request]) -> set[Right]:
    """Return the rights that requests have used.

    Who applies what is not there needs the right to create it besides, and who makes a binding that to bind the role.
    """
    found: set[Right] = set()
    for each in requests:
        verb, group, resource = each.right
        found.add((verb, group, resource))
        if verb == "patch" and each.status == 201:
            found.add(("create", group, resource))
            if resource == "rolebindings":
                found.add(("bind", group, "clusterroles"))
    return found


@pytest.fixture(scope="module")
def api_server() -> Iterator[ApiServer]:
    """Run an API server that nobody else uses: an operator of the whole cluster acts on all that is there."""
    folder = binaries_or_skip("a")
    with RunFolder() as run:
        server = ApiServer(binaries=folder, folder=run)
        try:
            define(server.api)
            server.api.create(DEFINITIONS, MONITOR_DEFINITION)
            until(lambda: answers(server, MONITORS.format("default")), seconds=30)
            yield server
        finally:
            server.close()


def answers(server: ApiServer, path: str) -> bool:
    try:
        server.api.items(path)
    except ApiError as error:
        if error.status in (404, 429):  # not there yet, or being set up
            return False
        raise
    return True


@pytest.fixture(scope="module", params=["cluster", "namespaced"])
def story(
    api_server: ApiServer, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Story]:
    """Install the manifests of a variant, and lead everybody along every way."""
    variant: str = request.param
    namespace = f"team-{variant}"
    api_server.api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    text = api_server.kubectl()("kustomize", str(MANIFESTS / variant))
    manifests = tuple(bound_in(namespace, each) for each in yaml.safe_load_all(text))
    for manifest in manifests:
        install(api_server, manifest)
    audit = api_server.audit_log().from_now_on()
    with ApiProxy(api_server) as proxy:
        kubeconfig = api_server.service_account("hexflow-operator", namespace=SYSTEM, url=proxy.url)
        arguments = next(each for each in manifests if each["kind"] == "Deployment")["spec"]["template"]
        flags = [
            each.replace("--namespaces=default", f"--namespaces={namespace}")
            for each in arguments["spec"]["containers"][0]["args"]
            if not each.startswith(("--host", "--port"))
        ]
        ways = Ways(api_server, proxy, namespace, kubeconfig, flags, tmp_path_factory.mktemp(variant))
        bound = asyncio.run(ways.walk())
    yield Story(variant, namespace, manifests, audit, bound)
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases"
    api_server.api.delete(f"{leases}/hexflow-operator")  # the next one is to make its own
    for manifest in manifests:
        if manifest["kind"] == "ClusterRoleBinding":
            path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
            api_server.api.delete(f"{path}/{manifest['metadata']['name']}")


def bound_in(namespace: str, manifest: Object) -> Object:
    """Serve the test's namespace where the manifests serve `default`."""
    if manifest["metadata"].get("namespace") == "default":
        manifest["metadata"]["namespace"] = namespace
    return manifest


def install(server: ApiServer, manifest: Object) -> None:
    paths = {
        **PATHS,
        "Namespace": "/api/v1/namespaces",
        "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        "Deployment": CHILDREN["Deployment"],
    }
    metadata = manifest["metadata"]
    path = f"{paths[manifest['kind']].format(metadata.get('namespace'))}/{metadata['name']}"
    server.api.patch(path, manifest, kind="apply", fieldManager="tests", force="true")


class Ways:
    """Every way on which somebody asks the API server for something."""

    def __init__(
        self,
        server: ApiServer,
        proxy: ApiProxy,
        namespace: str,
        kubeconfig: Path,
        flags: list[str],
        folder: Path,
    ) -> None:
        self.server, self.proxy, self.namespace, self.folder = server, proxy, namespace, folder
        self.objects = Objects(server.api, namespace)
        self.tuner = Tuner(server=server, namespace=namespace, workflow=WORKFLOW)
        self.ports = [free_port() for _ in range(3)]
        tenants, admin, own = self.ports
        self.router_ports = (tenants, admin)
        command: list[str | Path] = [
            *(sys.executable, "-m", "hexflow_operator", f"--kubeconfig={kubeconfig}", *flags),
            *(f"--lease-namespace={SYSTEM}", "--lease-seconds=6", f"--identity={namespace}"),
            *(f"--port={own}", f"--router-url=http://127.0.0.1:{admin}"),
            *("--report-seconds=1", "--resync-seconds=3"),
        ]
        self.operator = OperatorProcess(
            server=server, name=f"operator-{namespace}", command=command, port=own
        )

    async def walk(self) -> frozenset[str]:
        """Go along all of them; return the ClusterRoles that were bound."""
        async with contextlib.AsyncExitStack() as stack:
            self.operator.start()
            stack.callback(self._end)
            await asyncio.to_thread(self.operator.until_leading)
            await asyncio.to_thread(self._make)
            bound = frozenset(
                each["roleRef"]["name"]
                for name, each in self.objects.children().items()
                if name.startswith("RoleBinding/")
            )
            await self._run_router_and_tuner(stack)
            await asyncio.to_thread(self._take_away)
            await asyncio.to_thread(self._miss_changes)
            return bound

    def _end(self) -> None:
        if self.operator.running:
            self.operator.kill()
        print(f"--- {self.operator.name}", self.operator.log(), sep="\n")  # noqa: T201

    def _wait(self, condition: Callable[[], bool], complaint: str) -> None:
        try:
            until(condition, seconds=60)
        except AssertionError:
            raise AssertionError(f"{complaint}:\n{self.operator.log()[-4000:]}") from None

    def _make(self) -> None:
        """Have everything made: pods of all sources, a profile in a ConfigMap, tuning, a ServiceMonitor."""
        objects = self.objects
        profile = {"t0": 0.03, "t1": 2e-4, "t2": 6e-8, "c1": 1e-4, "c2": 0.0}
        text = yaml.safe_dump({**profile, "kvTokens": 300_000, "slots": 64})
        config_maps = CHILDREN["ConfigMap"].format(self.namespace)
        self.server.api.create(config_maps, {"metadata": {"name": "speed"}, "data": {"a100": text}})
        reference = {"configMapRef": {"name": "speed", "key": "a100"}}
        objects.apply(pool_data("made", emulated=True, replicas=1, profile=reference))
        objects.apply(pool_data("own", selector={"matchLabels": {"app": "vllm"}}))
        objects.apply(self._workflow("Auto", monitored=True))
        wanted = {
            *(f"{kind}/made-engine" for kind in ("Deployment", "Service", "PodDisruptionBudget")),
            *(
                f"{kind}/hexflow-router"
                for kind in ("Deployment", "Service", "ConfigMap", "ServiceAccount", "RoleBinding")
            ),
            *(f"{kind}/{WORKFLOW}-tuner" for kind in ("CronJob", "ServiceAccount", "RoleBinding")),
        }
        self._wait(lambda: set(objects.children()) == wanted, "not everything was made")
        self._wait(lambda: self._monitor() is not None, "no ServiceMonitor was made")
        pods = f"/api/v1/namespaces/{self.namespace}/pods"
        labels = {"hexflow.dev/part": "engine", "hexflow.dev/pool": "made"}
        spec = {
            "serviceAccountName": "hexflow-router",
            "automountServiceAccountToken": False,
            "containers": [{"name": "engine", "image": "engine"}],
        }
        self.server.api.create(pods, {"metadata": {"name": "made-0", "labels": labels}, "spec": spec})
        self._wait(lambda: "status" in objects.get("GPUPool", "made"), "the pool has no status")
        self._wait(lambda: "status" in objects.get("TextToSQLWorkflow", WORKFLOW), "nor has the workflow")

    def _workflow(self, mode: str, *, monitored: bool) -> Object:
        scheduling = {"policy": "HexGenFlow", "alpha": {"seed": 0.5, "min": 0.0, "max": 1.0}}
        return workflow_data(
            WORKFLOW, scheduling=scheduling, tuning={"mode": mode}, router={"serviceMonitor": monitored}
        )

    def _monitor(self) -> Object | None:
        found = self.server.api.items(MONITORS.format(self.namespace))
        return found[0] if found else None

    async def _run_router_and_tuner(self, stack: contextlib.AsyncExitStack) -> None:
        """Run both on what the operator has made for them."""
        cluster = RouterCluster(
            server=self.server,
            namespace=self.namespace,
            laptop=a_laptop(self.folder / "laptop"),
            secrets=self.folder / "secrets",
            stack=stack,
            engine_port=free_port(),
        )
        cluster.secrets.mkdir()
        router = await cluster.router(ports=self.router_ports, ready=False)
        await router.until(
            lambda: router.readiness("/readyz?exclude=instances"), "the router is not configured"
        )
        # the operator passes on what the router alone sees
        await asyncio.to_thread(
            self._wait,
            lambda: self.objects.condition("TextToSQLWorkflow", WORKFLOW)[1] == "SecretNotFound",
            "the missing Secret is not in the status",
        )
        for admin in (f"http://127.0.0.1:{self.router_ports[1]}", "http://127.0.0.1:9"):
            run = await asyncio.to_thread(self.tuner.run, admin)
            assert run.returncode == 0, run.stderr
        assert self.tuner.tuned().outcome is not None
        await asyncio.to_thread(
            self._wait,
            lambda: "policy" in str(self.objects.children()[f"ConfigMap/{WORKFLOW}-policy"]["metadata"]),
            "the tuner's ConfigMap is not there",
        )

    def _take_away(self) -> None:
        """Have every kind of child deleted, a left-over of an older version among them."""
        labels = {"hexflow.dev/part": "router", "app.kubernetes.io/managed-by": "hexflow-operator"}
        config_maps = CHILDREN["ConfigMap"].format(self.namespace)
        self.server.api.create(config_maps, {"metadata": {"name": "hexflow-old", "labels": labels}})
        self.objects.apply(pool_data("made", endpoints=[{"url": "http://127.0.0.1:9"}]))
        self.objects.apply(self._workflow("Off", monitored=False))
        wanted = {
            *(
                f"{kind}/hexflow-router"
                for kind in ("Deployment", "Service", "ConfigMap", "ServiceAccount", "RoleBinding")
            ),
            f"ConfigMap/{WORKFLOW}-policy",
        }
        self._wait(lambda: set(self.objects.children()) == wanted, "not everything was taken away")
        self._wait(lambda: self._monitor() is None, "the ServiceMonitor was not taken away")

    def _miss_changes(self) -> None:
        """Have the comparison find what no watch has told."""
        self.objects.apply(pool_data("made", emulated=True, replicas=1))
        self.objects.apply(self._workflow("Auto", monitored=False))
        self._wait(
            lambda: "CronJob/shop-questions-tuner" in self.objects.children(), "no CronJob was made again"
        )
        self._wait(
            lambda: "Deployment/made-engine" in self.objects.children(), "no Deployment was made again"
        )
        self.operator.until_quiet()
        silent = self.proxy.fault(Slow(120.0), watch=True)
        self.proxy.cut(watches=True)
        self._wait(lambda: silent.hits >= WATCHED_KINDS, "not every watch began anew")
        audit = self.server.audit_log().from_now_on()
        touched = {"metadata": {"annotations": {"touched": "yes"}}}
        places = {
            **{kind: f"{path.format(self.namespace)}" for kind, path in CHILDREN.items()},
            "GPUPool": served_at("GPUPool", namespace=self.namespace),
            "TextToSQLWorkflow": served_at("TextToSQLWorkflow", namespace=self.namespace),
            "Pod": f"/api/v1/namespaces/{self.namespace}/pods",
        }
        for kind, path in places.items():
            query = {} if kind in ("GPUPool", "TextToSQLWorkflow") else {"labelSelector": "hexflow.dev/part"}
            for each in self.server.api.items(path, **query):
                self.server.api.patch(f"{path}/{each['metadata']['name']}", touched)
        wanted = {path.rpartition("/")[2] for path in places.values()}
        self._wait(
            lambda: {each.resource for each in audit.requests(user=OPERATOR, verb="get")} >= wanted,
            "not everything that no watch has told was read",
        )


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@pytest.mark.timeout(400)
def test_the_operator_has_the_rights_that_it_uses_and_no_others(story: Story) -> None:
    role, lease = (
        story.manifest("ClusterRole", "hexflow-operator"),
        story.manifest("Role", "hexflow-operator-lease"),
    )
    asked = story.asked("operator")
    assert [each for each in asked if each.status in (401, 403)] == []
    assert used(asked) - granted(role, lease) == set()
    assert granted(role, lease) - used(asked) == set()
    # a right on a single object is used on that one
    binds = next(rule for rule in role["rules"] if rule["verbs"] == ["bind"])
    assert set(binds["resourceNames"]) == set(story.bound)
    leases = {
        (each.name, each.namespace) for each in asked if each.resource == "leases" and each.verb != "create"
    }
    assert leases == {("hexflow-operator", SYSTEM)}
    places = {each.namespace for each in asked} - {SYSTEM}
    assert places == ({story.namespace} if story.variant == "namespaced" else {story.namespace, ""})


@pytest.mark.parametrize("who", ["router", "tuner"])
def test_router_and_tuner_have_the_rights_that_they_use_and_no_others(story: Story, who: str) -> None:
    asked = story.asked(who)
    assert [each for each in asked if each.status in (401, 403)] == []
    assert used(asked) == granted(story.manifest("ClusterRole", f"hexflow-{who}"))
    assert {each.namespace for each in asked} == {story.namespace}


def test_nobody_has_rights_on_secrets_or_on_everything_or_can_make_a_role(story: Story) -> None:
    roles = [each for each in story.manifests if each["kind"] in ("ClusterRole", "Role")]
    assert len(roles) == 4
    for role in roles:
        for verb, group, resource in granted(role):
            assert "*" not in (verb, group, resource)
            assert resource.partition("/")[0] not in ("secrets", "pods/exec", "nodes")
            assert verb not in ("escalate", "impersonate", "deletecollection")
            if resource in ("roles", "clusterroles"):
                assert verb == "bind"


def test_the_operator_can_bind_no_other_role(story: Story, api_server: ApiServer) -> None:
    # the proxy of the story is gone: the same account, straight
    kubeconfig = api_server.service_account("hexflow-operator", namespace=SYSTEM)
    kubectl = api_server.kubectl(kubeconfig)
    reader = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    roles = PATHS["ClusterRole"]
    if not api_server.api.exists(f"{roles}/reads-secrets"):
        api_server.api.create(roles, {"metadata": {"name": "reads-secrets"}, "rules": [reader]})
    for role, refused in (("cluster-admin", True), ("reads-secrets", True), ("hexflow-router", False)):
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": f"tried-{role}", "namespace": story.namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": "hexflow-router", "namespace": story.namespace}],
        }
        result = kubectl.run("create", "-f", "-", stdin=binding)
        assert (result.returncode != 0) == refused, result.stderr
        assert not refused or "forbidden" in result.stderr.lower()
    for verb, what in (
        ("get", "secrets"),
        ("create", "roles"),
        ("create", "clusterroles"),
        ("update", "clusterroles"),
    ):
        answer: Any = kubectl.run("auth", "can-i", verb, what, "--namespace", story.namespace)
        assert answer.stdout.strip() == "no", (verb, what)
