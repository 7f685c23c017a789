"""The test Kubernetes with controllers, a scheduler and a fake kubelet: what becomes of what is written."""

from typing import Any

from support.controllers import ControlPlane
from support.kubelet import FakeKubelet, PodState
from support.kubernetes import Kubectl, Object
from support.waiting import until


def a_pod_spec(**more: Any) -> Object:
    return {"containers": [{"name": "main", "image": "none"}], **more}


def a_deployment(*, replicas: int = 2, gpus: int = 0) -> Object:
    labels = {"app": "web"}
    spec = a_pod_spec()
    if gpus:
        spec["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def ready_replicas(kubectl: Kubectl) -> int:
    ready: int = kubectl.json("get", "deployment", "web")["status"].get("readyReplicas", 0)
    return ready


def pods(kubectl: Kubectl) -> list[Object]:
    items: list[Object] = kubectl.json("get", "pods", "-l", "app=web")["items"]
    return items


def test_a_deployment_becomes_available_on_a_fake_node(kubelet: FakeKubelet, kubectl: Kubectl) -> None:
    node = kubelet.add_node(gpus=4)
    kubectl.apply(a_deployment(gpus=2))
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    assert [pod["spec"]["nodeName"] for pod in pods(kubectl)] == [node, node]


def test_what_finds_no_gpu_waits_and_the_scheduler_says_why(kubelet: FakeKubelet, kubectl: Kubectl) -> None:
    kubelet.add_node(gpus=2)
    kubectl.apply(a_deployment(replicas=2, gpus=2))
    until(lambda: ready_replicas(kubectl) == 1, seconds=30)
    (waiting,) = (pod for pod in pods(kubectl) if pod["status"]["phase"] == "Pending")
    assert "Insufficient nvidia.com/gpu" in waiting["status"]["conditions"][0]["message"]


def test_a_test_decides_when_a_pod_is_ready(kubelet: FakeKubelet, kubectl: Kubectl, namespace: str) -> None:
    kubelet.add_node()
    kubelet.choose(namespace, PodState.LOADING)
    kubectl.apply(a_deployment(replicas=1))
    until(lambda: [pod["status"]["phase"] for pod in pods(kubectl)] == ["Running"], seconds=30)
    assert ready_replicas(kubectl) == 0
    kubelet.put_all(namespace, PodState.READY, selector="app=web")
    until(lambda: ready_replicas(kubectl) == 1, seconds=30)


def test_a_pod_that_drains_stays_until_it_is_released(
    kubelet: FakeKubelet, kubectl: Kubectl, namespace: str
) -> None:
    kubelet.add_node()
    kubectl.apply(a_deployment(replicas=1))
    until(lambda: ready_replicas(kubectl) == 1, seconds=30)
    kubelet.hold(namespace)
    kubectl("delete", "deployment", "web", "--wait=false")
    until(lambda: all("deletionTimestamp" in pod["metadata"] for pod in pods(kubectl)), seconds=30)
    assert len(pods(kubectl)) == 1
    kubelet.release(namespace)
    until(lambda: pods(kubectl) == [], seconds=30)


def test_the_pods_of_a_removed_node_are_made_anew_elsewhere(kubelet: FakeKubelet, kubectl: Kubectl) -> None:
    first = kubelet.add_node()
    kubectl.apply(a_deployment(replicas=1))
    until(lambda: ready_replicas(kubectl) == 1, seconds=30)
    second = kubelet.add_node()
    kubelet.remove_node(first)
    until(lambda: [pod["spec"].get("nodeName") for pod in pods(kubectl)] == [second], seconds=30)


def test_a_job_completes_and_one_whose_pod_fails_says_so(
    kubelet: FakeKubelet, kubectl: Kubectl, namespace: str
) -> None:
    kubelet.add_node()
    kubectl("create", "job", "good", "--image=none")
    kubectl("wait", "--for=condition=Complete", "job/good", "--timeout=60s")
    kubelet.choose(namespace, PodState.FAILED)
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "bad"},
        "spec": {"backoffLimit": 0, "template": {"spec": a_pod_spec(restartPolicy="Never")}},
    }
    kubectl.apply(job)
    kubectl("wait", "--for=condition=Failed", "job/bad", "--timeout=60s")


def test_a_budget_refuses_an_eviction(kubelet: FakeKubelet, kubectl: Kubectl, namespace: str) -> None:
    kubelet.add_node()
    kubectl.apply(a_deployment(replicas=1))
    kubectl("create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=1")
    until(lambda: ready_replicas(kubectl) == 1, seconds=30)
    (pod,) = pods(kubectl)
    name = pod["metadata"]["name"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
    result = kubectl.run("create", "--raw", path, "-f", "-", stdin=eviction)
    assert "disruption budget" in result.stderr


def test_children_go_with_their_owner(kubectl: Kubectl, control_plane: ControlPlane) -> None:
    kubectl("create", "configmap", "owner")
    owner = kubectl.json("get", "configmap", "owner")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    child = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "child", "ownerReferences": [reference]},
    }
    kubectl.apply(child)
    kubectl("delete", "configmap", "owner")
    until(lambda: kubectl("get", "secret", "child", "--ignore-not-found") == "", seconds=60)


def test_a_deleted_namespace_goes_with_all_that_is_in_it(
    kubelet: FakeKubelet, kubectl: Kubectl, namespace: str
) -> None:
    kubelet.add_node()
    kubectl.apply(a_deployment())
    until(lambda: ready_replicas(kubectl) == 2, seconds=30)
    kubectl("delete", "namespace", namespace, "--timeout=90s")
    assert kubectl("get", "namespace", namespace, "--ignore-not-found") == ""


def test_the_controllers_go_on_after_the_api_server_was_away(
    kubelet: FakeKubelet, control_plane: ControlPlane, kubectl: Kubectl
) -> None:
    kubelet.add_node()
    control_plane.api_server.restart()
    kubectl.apply(a_deployment())
    kubectl("rollout", "status", "deployment/web", "--timeout=90s")
