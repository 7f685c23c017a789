"""The operator on a real API server with real controllers: what is applied, changed and deleted comes true."""

from typing import Any

from support.apiserver import ApiServer
from support.auditlog import AuditLog
from support.definitions import served_at
from support.kubelet import FakeKubelet, PodState
from support.kubernetes import Kubectl, Object
from support.objects import Objects
from support.operators import OperatorProcess, Operators
from support.resources import pool_data, workflow_data
from support.waiting import until

TUNED: dict[str, Any] = {
    "tuning": {"mode": "Recommend"},
    "scheduling": {"policy": "HexGenFlow", "alpha": {"seed": 0.5, "min": 0.1, "max": 1.0}},
}


def versions(objects: dict[str, Object]) -> dict[str, str]:
    return {name: each["metadata"]["resourceVersion"] for name, each in objects.items()}


def container(deployment: Object) -> Object:
    first: Object = deployment["spec"]["template"]["spec"]["containers"][0]
    return first


def test_a_pool_becomes_pods_behind_a_service_and_says_when_they_serve(
    operator: OperatorProcess, objects: Objects, kubelet: FakeKubelet
) -> None:
    kubelet.add_node(gpus=8)
    objects.apply(pool_data("a100", replicas=2))
    until(lambda: objects.condition("GPUPool", "a100")[:2] == ("True", "Serving"), seconds=60)
    assert set(objects.children()) == {
        "Deployment/a100-engine",
        "Service/a100-engine",
        "PodDisruptionBudget/a100-engine",
        "Deployment/hexflow-router",
        "Service/hexflow-router",
        "ConfigMap/hexflow-router",
        "ServiceAccount/hexflow-router",
        "RoleBinding/hexflow-router",
    }
    status = objects.get("GPUPool", "a100")["status"]
    assert (status["replicas"], status["readyReplicas"], status["ready"]) == (2, 2, "2/2")
    assert "metadata" not in status
    pool = objects.get("GPUPool", "a100")["metadata"]
    assert "finalizers" not in pool
    assert "annotations" not in pool, "nothing of ours is left on the objects of others"


def test_a_workflow_gets_the_router_and_a_tuner_and_says_why_it_is_not_ready(
    operator: OperatorProcess, objects: Objects
) -> None:
    objects.apply(workflow_data("shop", pools={"names": ["a100"]}, **TUNED))
    until(lambda: objects.condition("TextToSQLWorkflow", "shop")[1] == "NoPool", seconds=30)
    until(lambda: objects.there("CronJob", "shop-tuner"), seconds=30)
    objects.apply(pool_data("l40s", emulated=True))
    until(lambda: objects.condition("TextToSQLWorkflow", "shop")[1] == "PoolNotFound", seconds=30)
    assert "a100" in objects.condition("TextToSQLWorkflow", "shop")[2]
    objects.apply(pool_data("a100", emulated=True))
    until(lambda: objects.condition("TextToSQLWorkflow", "shop")[1] != "PoolNotFound", seconds=30)


def test_a_change_leads_to_that_change_and_to_nothing_else(
    operator: OperatorProcess, objects: Objects
) -> None:
    for name in ("one", "other"):
        objects.apply(pool_data(name, emulated=True, replicas=1))
    operator.until_quiet()
    before = objects.children()
    objects.apply(pool_data("one", emulated=True, replicas=3))
    until(lambda: objects.get("Deployment", "one-engine")["spec"]["replicas"] == 3, seconds=30)
    operator.until_quiet()
    after = objects.children()
    changed = {name for name in after if versions(after)[name] != versions(before)[name]}
    assert changed - {"PodDisruptionBudget/one-engine"} == {"Deployment/one-engine"}
    assert container(after["Deployment/one-engine"]) == container(before["Deployment/one-engine"])
    objects.apply(pool_data("one", emulated=True, replicas=3, maxModelLen=4096))
    until(lambda: "4096" in str(objects.get("ConfigMap", "hexflow-router")), seconds=30)
    operator.until_quiet()
    last = objects.children()
    changed = {name for name in last if versions(last)[name] != versions(after)[name]}
    assert changed - {"PodDisruptionBudget/one-engine"} == {
        "Deployment/one-engine",
        "ConfigMap/hexflow-router",
    }


def test_a_child_that_is_deleted_or_edited_by_hand_comes_back(
    operator: OperatorProcess, objects: Objects
) -> None:
    objects.apply(pool_data("a100", emulated=True, replicas=1))
    objects.apply(workflow_data("shop", **TUNED))
    operator.until_quiet()
    before = objects.children()
    for name in before:
        objects.delete(*name.split("/"))
    until(lambda: set(objects.children()) == set(before), seconds=60)
    operator.until_quiet()
    objects.patch("Deployment", "a100-engine", {"spec": {"replicas": 7}})
    objects.patch("Service", "a100-engine", {"spec": {"selector": {"app.kubernetes.io/instance": "else"}}})
    objects.patch("ConfigMap", "hexflow-router", {"data": None})
    objects.patch("Deployment", "hexflow-router", {"metadata": {"labels": {"hexflow.dev/part": None}}})
    until(lambda: objects.get("Deployment", "a100-engine")["spec"]["replicas"] == 1, seconds=30)
    until(
        lambda: (
            objects.get("Service", "a100-engine")["spec"]["selector"]["app.kubernetes.io/instance"] == "a100"
        ),
        seconds=30,
    )
    until(lambda: "data" in objects.get("ConfigMap", "hexflow-router"), seconds=30)
    until(lambda: "Deployment/hexflow-router" in objects.children(), seconds=30)
    operator.until_quiet()  # and is not applied again and again


def test_what_others_own_is_left_alone(
    operator: OperatorProcess, objects: Objects, kubectl: Kubectl, audit_log: AuditLog, operators: Operators
) -> None:
    objects.apply(pool_data("scaled", emulated=True))
    operator.until_quiet()
    kubectl("scale", "deployment/scaled-engine", "--replicas=5")  # as an HPA on the Deployment does
    injected = {
        "metadata": {"annotations": {"injector.example/status": "injected"}},
        "spec": {
            "template": {
                "metadata": {"annotations": {"injector.example/inject": "true"}},
                "spec": {
                    "containers": [{"name": "sidecar", "image": "sidecar:1"}],
                    "volumes": [{"name": "sidecar", "emptyDir": {}}],
                },
            }
        },
    }
    objects.patch("Deployment", "scaled-engine", injected, way="strategic")
    operator.until_quiet()
    since = audit_log.from_now_on()
    objects.apply(pool_data("scaled", emulated=True, engine={"args": ["--max-num-seqs=8"]}))
    until(lambda: "--max-num-seqs=8" in str(objects.get("Deployment", "scaled-engine")), seconds=30)
    operator.until_quiet()
    deployment = objects.get("Deployment", "scaled-engine")
    assert deployment["spec"]["replicas"] == 5
    assert deployment["metadata"]["annotations"]["injector.example/status"] == "injected"
    template = deployment["spec"]["template"]
    assert template["metadata"]["annotations"]["injector.example/inject"] == "true"
    assert {each["name"] for each in template["spec"]["containers"]} >= {"sidecar"}
    writes = [each for each in since.writes(user=operators.user) if each.resource == "deployments"]
    assert len(writes) == 1


def test_an_object_of_somebody_else_is_not_taken_over_and_the_status_says_so(
    operator: OperatorProcess, objects: Objects
) -> None:
    theirs = objects.api.create(
        f"/api/v1/namespaces/{objects.namespace}/services",
        {
            "metadata": {"name": "a100-engine"},
            "spec": {"selector": {"app": "theirs"}, "ports": [{"port": 80}]},
        },
    )
    objects.apply(pool_data("a100", emulated=True, replicas=1))
    until(lambda: objects.condition("GPUPool", "a100", "Stalled")[1] == "NameTaken", seconds=30)
    assert "Service a100-engine" in objects.condition("GPUPool", "a100", "Stalled")[2]
    assert objects.there("Deployment", "a100-engine"), "one name that is taken stops nothing else"
    assert objects.get("Service", "a100-engine")["metadata"] == theirs["metadata"]
    objects.delete("Service", "a100-engine")
    until(lambda: "Service/a100-engine" in objects.children(), seconds=60)
    until(lambda: objects.condition("GPUPool", "a100", "Stalled")[1] != "NameTaken", seconds=30)


def test_kubectl_scale_and_an_autoscaler_on_the_pool_set_its_pods(
    operator: OperatorProcess, objects: Objects, kubectl: Kubectl
) -> None:
    objects.apply(pool_data("a100", emulated=True, replicas=1))
    operator.until_quiet()
    kubectl("scale", "gpupool/a100", "--replicas=4")
    until(lambda: objects.get("Deployment", "a100-engine")["spec"]["replicas"] == 4, seconds=30)
    until(lambda: objects.get("GPUPool", "a100")["status"].get("replicas") == 4, seconds=30)
    scale = objects.api.get(f"{served_at('GPUPool', namespace=objects.namespace)}/a100/scale")
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (4, 4)
    assert "app.kubernetes.io/instance=a100" in scale["status"]["selector"]


def test_suspending_keeps_the_pool_at_no_pod_until_it_is_resumed(
    operator: OperatorProcess, objects: Objects
) -> None:
    objects.apply(pool_data("a100", emulated=True, replicas=2))
    operator.until_quiet()
    objects.apply(pool_data("a100", emulated=True, replicas=2, suspend=True))
    until(lambda: objects.get("Deployment", "a100-engine")["spec"]["replicas"] == 0, seconds=30)
    until(lambda: objects.condition("GPUPool", "a100")[1] == "Suspended", seconds=30)
    objects.apply(pool_data("a100", emulated=True, replicas=2))
    until(lambda: objects.get("Deployment", "a100-engine")["spec"]["replicas"] == 2, seconds=30)


def test_deleting_the_resources_takes_all_that_was_made_for_them(
    operator: OperatorProcess, objects: Objects
) -> None:
    objects.apply(pool_data("a100", emulated=True))
    objects.apply(pool_data("l40s", emulated=True))
    objects.apply(workflow_data("shop", **TUNED))
    operator.until_quiet()
    objects.delete("GPUPool", "a100")
    until(lambda: not any("a100" in name for name in objects.children()), seconds=60)
    operator.until_quiet()
    router = objects.get("Deployment", "hexflow-router")["metadata"]
    assert [each["name"] for each in router["ownerReferences"]] == ["l40s", "shop"]
    objects.delete("GPUPool", "l40s")
    objects.delete("TextToSQLWorkflow", "shop")
    until(lambda: objects.children() == {}, seconds=60)
    operator.until_quiet()
    assert objects.children() == {}, "and nobody makes it again"


def test_the_schedulers_words_are_in_the_pools_status(
    operator: OperatorProcess, objects: Objects, kubelet: FakeKubelet
) -> None:
    kubelet.add_node(gpus=0)
    objects.apply(pool_data("a100", replicas=1))
    until(lambda: objects.condition("GPUPool", "a100")[1] == "Unschedulable", seconds=60)
    assert "Insufficient nvidia.com/gpu" in objects.condition("GPUPool", "a100")[2]
    kubelet.choose(objects.namespace, PodState.IMAGE_MISSING)
    kubelet.add_node(gpus=8)
    until(lambda: objects.condition("GPUPool", "a100")[1] == "ImageNotPulled", seconds=60)


def test_what_the_api_server_refuses_is_in_the_status_in_its_words(
    operator: OperatorProcess, objects: Objects, api_server: ApiServer
) -> None:
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"count/deployments.apps": "0"}}}
    api_server.api.create(f"/api/v1/namespaces/{objects.namespace}/resourcequotas", quota)
    until(
        lambda: (
            api_server.api.get(f"/api/v1/namespaces/{objects.namespace}/resourcequotas/none")
            .get("status", {})
            .get("hard")
        ),
        seconds=30,
    )
    objects.apply(pool_data("a100", emulated=True, replicas=1))
    until(lambda: "exceeded quota" in objects.condition("GPUPool", "a100")[2], seconds=30)
    api_server.api.delete(f"/api/v1/namespaces/{objects.namespace}/resourcequotas/none")
    until(lambda: objects.there("Deployment", "a100-engine"), seconds=60)
    until(lambda: "exceeded quota" not in objects.condition("GPUPool", "a100")[2], seconds=60)
