"""A fake kubelet: nodes that do not exist, and pods on them that run in name only.

The scheduler binds pods to its nodes. By default such a pod is ready at once, one of a Job succeeds at once, and one
that is deleted is gone at once; a test says what else shall happen, to which pod and when. No container is started.
"""

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import httpx

from support.kubernetes import Api, ApiError, Object, Watch

ON_A_NODE = {"fieldSelector": "spec.nodeName!="}
RETRY_SECONDS = 0.2
"""Pause before the pods are listed again when the API server could not be reached."""

ContainerState = Mapping[str, Mapping[str, Any]]
RUNNING: ContainerState = {"running": {}}


class PodState(Enum):
    """How a pod looks to those who read its status: phase, ready, what its containers do."""

    _value_: tuple[str, bool, ContainerState]

    CREATING = ("Pending", False, {"waiting": {"reason": "ContainerCreating"}})
    IMAGE_MISSING = (
        "Pending",
        False,
        {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}},
    )
    LOADING = ("Running", False, RUNNING)
    READY = ("Running", True, RUNNING)
    CRASHING = (
        "Running",
        False,
        {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting failed container"}},
    )
    SUCCEEDED = ("Succeeded", False, {"terminated": {"reason": "Completed", "exitCode": 0}})
    FAILED = ("Failed", False, {"terminated": {"reason": "Error", "exitCode": 1}})


Choice = Callable[[Object], PodState]
"""Take a pod that was just bound to a node, return what becomes of it."""


def at_once(pod: Object) -> PodState:
    """Say that a pod is ready, or, if it is meant to end, that it has succeeded."""
    return PodState.READY if pod["spec"].get("restartPolicy", "Always") == "Always" else PodState.SUCCEEDED


class FakeKubelet:
    """Play the kubelet of every node of a test cluster, in a thread, until it is stopped."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._numbers = itertools.count(1)
        self._addresses = itertools.count(2)
        self._nodes: list[str] = []
        self._choices: dict[str, Choice] = {}
        self._holding: set[str] = set()
        self._known: set[str] = set()
        self._stopped = threading.Event()
        self._watch: Watch | None = None
        self._thread = threading.Thread(target=self._follow, name="fake kubelet", daemon=True)
        self._thread.start()

    def add_node(
        self,
        *,
        gpus: int = 8,
        gpu_resource: str = "nvidia.com/gpu",
        cpu: str = "64",
        memory: str = "512Gi",
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, str]] = (),
    ) -> str:
        """Register a node that is Ready, and return its name."""
        name = f"node-{next(self._numbers)}"
        room = {"cpu": cpu, "memory": memory, "pods": "1000", "ephemeral-storage": "1Ti"}
        if gpus:
            room[gpu_resource] = str(gpus)
        fixed = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        status = {
            "capacity": room,
            "allocatable": room,
            "conditions": [_condition("Ready", True, reason="KubeletReady")],
            "addresses": [
                {"type": "InternalIP", "address": "10.77.0.1"},
                {"type": "Hostname", "address": name},
            ],
        }
        self._api.create(
            "/api/v1/nodes",
            {
                "metadata": {"name": name, "labels": {**fixed, **(labels or {})}},
                "spec": {"taints": list(taints)},
                "status": status,
            },
        )
        self._nodes.append(name)
        return name

    def set_node_ready(self, name: str, *, ready: bool) -> None:
        """Let a node become Ready or NotReady."""
        status = {"status": {"conditions": [_condition("Ready", ready, reason="Test")]}}
        self._api.patch(f"/api/v1/nodes/{name}/status", status, kind="strategic")

    def remove_node(self, name: str) -> None:
        """Take a node away, and all pods on it at once."""
        self._nodes.remove(name)
        _if_there(lambda: self._api.delete(f"/api/v1/nodes/{name}"))
        for pod in self._api.items("/api/v1/pods", fieldSelector=f"spec.nodeName={name}"):
            self._remove(pod)

    def choose(self, namespace: str, choice: PodState | Choice) -> None:
        """Say what becomes of pods of a namespace from now on: one state for all, or a function of the pod."""
        self._choices[namespace] = (lambda pod: choice) if isinstance(choice, PodState) else choice

    def put(self, namespace: str, name: str, state: PodState) -> None:
        """Change the state of one pod that is bound to a node."""
        pod = self._api.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
        self._known.add(pod["metadata"]["uid"])
        self._write(pod, state)

    def put_all(self, namespace: str, state: PodState, *, selector: str = "") -> None:
        """Change the state of all pods of a namespace that a label selector matches and that are bound."""
        query = {**ON_A_NODE, "labelSelector": selector}
        for pod in self._api.items(f"/api/v1/namespaces/{namespace}/pods", **query):
            self._known.add(pod["metadata"]["uid"])
            self._write(pod, state)

    def hold(self, namespace: str) -> None:
        """Let deleted pods of a namespace stay Terminating, as if they were draining."""
        self._holding.add(namespace)

    def release(self, namespace: str) -> None:
        """End what `hold` began."""
        self._holding.discard(namespace)
        for pod in self._api.items(f"/api/v1/namespaces/{namespace}/pods", **ON_A_NODE):
            if "deletionTimestamp" in pod["metadata"]:
                self._remove(pod)

    def forget(self) -> None:
        """Remove all nodes and wishes, as after a test."""
        self._choices.clear()
        for namespace in tuple(self._holding):
            self.release(namespace)
        for name in tuple(self._nodes):
            self.remove_node(name)

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()
        while self._thread.is_alive():
            if self._watch is not None:
                self._watch.interrupt()
            self._thread.join(0.1)

    def _follow(self) -> None:
        while not self._stopped.is_set():
            try:
                listing = self._api.get("/api/v1/pods", **ON_A_NODE)
                for pod in listing["items"]:
                    self._handle(pod)
                version = listing["metadata"]["resourceVersion"]
                with self._api.watch("/api/v1/pods", resourceVersion=version, **ON_A_NODE) as self._watch:
                    for kind, pod in self._watch:
                        if kind == "ERROR":
                            break
                        if kind != "DELETED":
                            self._handle(pod)
            except (ApiError, httpx.TransportError):
                self._stopped.wait(RETRY_SECONDS)

    def _handle(self, pod: Object) -> None:
        meta = pod["metadata"]
        if "deletionTimestamp" in meta:
            if meta["namespace"] not in self._holding:
                self._remove(pod)
        elif meta["uid"] not in self._known:
            self._known.add(meta["uid"])
            self._write(pod, self._choices.get(meta["namespace"], at_once)(pod))

    def _write(self, pod: Object, state: PodState) -> None:
        meta = pod["metadata"]
        status = pod_status(pod, state, address=self._address(pod))
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status"
        _if_there(lambda: self._api.patch(path, {"status": status}, kind="strategic"))

    def _address(self, pod: Object) -> str:
        given: str | None = pod.get("status", {}).get("podIP")
        if given is not None:
            return given
        number = next(self._addresses)
        return f"10.244.{number // 250 % 256}.{number % 250 + 1}"

    def _remove(self, pod: Object) -> None:
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        _if_there(lambda: self._api.delete(path, gracePeriodSeconds="0"))


def pod_status(pod: Object, state: PodState, *, address: str) -> Object:
    """Return the status that a kubelet writes for a pod in this state."""
    phase, ready, container = state.value
    begun = phase != "Pending"
    init = pod["spec"].get("initContainers", [])
    return {
        "phase": phase,
        "startTime": pod.get("status", {}).get("startTime") or _now(),
        "hostIP": "10.77.0.1",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [
            _condition("Initialized", begun),
            _condition("ContainersReady", ready),
            _condition("Ready", ready),
        ],
        "initContainerStatuses": [_init_container(each, begun=begun) for each in init],
        "containerStatuses": [
            _container(each, container, ready=ready, crashes=state is PodState.CRASHING)
            for each in pod["spec"]["containers"]
        ],
    }


def _container(spec: Object, state: ContainerState, *, ready: bool, crashes: bool = False) -> Object:
    return {
        "name": spec["name"],
        "image": spec["image"],
        "imageID": "",
        "ready": ready,
        "started": ready,
        "restartCount": 3 if crashes else 0,
        "state": {kind: {**_times(kind), **details} for kind, details in state.items()},
    }


def _init_container(spec: Object, *, begun: bool) -> Object:
    if not begun:
        return _container(spec, {"waiting": {"reason": "PodInitializing"}}, ready=False)
    if spec.get("restartPolicy") == "Always":
        return _container(spec, RUNNING, ready=True)
    return _container(spec, {"terminated": {"reason": "Completed", "exitCode": 0}}, ready=True)


def _times(kind: str) -> dict[str, str]:
    if kind == "running":
        return {"startedAt": _now()}
    return {"startedAt": _now(), "finishedAt": _now()} if kind == "terminated" else {}


def _condition(kind: str, holds: bool, *, reason: str = "") -> Object:
    return {"type": kind, "status": str(holds), "reason": reason, "lastTransitionTime": _now()}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _if_there(call: Callable[[], object]) -> None:
    """Make a request about an object that may have gone meanwhile."""
    try:
        call()
    except ApiError as error:
        if error.status != 404:
            raise
