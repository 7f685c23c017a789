"""What the operator plans, on a real API server: accepted as it is, and covered by what is read back."""

from typing import Any

import pytest
import yaml

from hexflow_operator.defaults import Defaults
from hexflow_operator.observed import ROUTER_NAME, Key, Observed
from hexflow_operator.plan import plan
from support.apiserver import ApiServer
from support.definitions import served_at
from support.golden import GOLDEN, NOW, cases, pod_templates
from support.kubernetes import Api, ApiError, Object

PATHS = {
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Service": "/api/v1/namespaces/{}/services",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "CronJob": "/apis/batch/v1/namespaces/{}/cronjobs",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
}
KINDS = {"pool": "GPUPool", "workflow": "TextToSQLWorkflow"}


def applied(api: Api, manifest: Object, namespace: str) -> Object:
    kind = manifest["kind"]
    path = served_at(kind, namespace=namespace) if kind not in PATHS else PATHS[kind].format(namespace)
    name = manifest["metadata"]["name"]
    return api.patch(f"{path}/{name}", manifest, kind="apply", fieldManager="hexflow-operator", force="true")


def resources_of(case: str) -> list[Object]:
    documents: list[Object] = list(yaml.safe_load_all((GOLDEN / case / "resource.yaml").read_text()))
    for document in documents:
        document["metadata"].pop("creationTimestamp", None)
    return documents


@pytest.mark.usefixtures("definitions")
@pytest.mark.parametrize("case", cases())
def test_the_api_server_takes_the_children_and_nothing_is_left_to_apply(
    case: str, api_server: ApiServer, namespace: str
) -> None:
    api = api_server.api
    stored = [applied(api, each, namespace) for each in resources_of(case)]
    by_kind: dict[str, tuple[Object, ...]] = {
        kind: tuple(each for each in stored if each["kind"] == kind)
        for kind in ("GPUPool", "TextToSQLWorkflow", "ConfigMap")
    }
    kind = KINDS.get(case.partition("-")[0], "Router")
    primary = by_kind[kind][0] if kind in by_kind else None
    key: Any = Key(kind, namespace, primary["metadata"]["name"] if primary else ROUTER_NAME)  # type: ignore[arg-type]

    def planned(children: tuple[Object, ...]) -> Any:
        observed = Observed(
            primary=primary,
            pools=by_kind["GPUPool"],
            workflows=by_kind["TextToSQLWorkflow"],
            config_maps=by_kind["ConfigMap"],
            children=children,
        )
        return plan(key, observed, Defaults(), NOW)

    first = [each for each in planned(()).apply if each["kind"] in PATHS]
    templates = [each["spec"]["template"] for each in first if each["kind"] == "Deployment"]
    written = [yaml.safe_load(text) for _, text in pod_templates(case)]
    assert kind != "GPUPool" or templates == written, "the API server has changed what the resource says"
    children = tuple(applied(api, each, namespace) for each in first)
    again = planned(children)
    assert [each for each in again.apply if each["kind"] in PATHS] == []
    assert again.delete == ()
    for child, manifest in zip(children, first, strict=True):
        unchanged = applied(api, manifest, namespace)
        assert version(unchanged) == version(child)


def version(child: Object) -> Any:
    """Return what a write changes; where controllers run, they write the status of what has a generation."""
    metadata = child["metadata"]
    return metadata.get("generation", metadata["resourceVersion"])


WIDE = {"pool-cache-host-path", "pool-pod-template"}
"""Cases that ask for more than PodSecurity `restricted` allows: a folder of the node, the escape hatch."""


ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "pods"}}


@pytest.fixture
def narrow_namespace(api_server: ApiServer, namespace: str) -> str:
    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    api_server.api.patch(f"/api/v1/namespaces/{namespace}", label)
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    api_server.api.patch(f"{accounts}/pods", ACCOUNT, kind="apply", fieldManager="tests")
    return namespace


def test_every_pod_keeps_to_the_restricted_standard(api_server: ApiServer, narrow_namespace: str) -> None:
    refused = {}
    for case in cases():
        for name, text in pod_templates(case):
            template = yaml.safe_load(text)
            spec = {**template["spec"], "serviceAccountName": "pods"}
            spec.pop("runtimeClassName", None)  # the server knows no such class, and none of the priority
            spec.pop("priorityClassName", None)
            pod = {"metadata": {**template["metadata"], "generateName": "try-"}, "spec": spec}
            try:
                api_server.api.create(f"/api/v1/namespaces/{narrow_namespace}/pods", pod, dryRun="All")
            except ApiError as error:
                refused[name.removesuffix(".yaml")] = error.message
    assert set(refused) == WIDE, refused
    assert all("PodSecurity" in message for message in refused.values())


@pytest.mark.usefixtures("definitions")
def test_taking_the_count_off_a_pool_keeps_it_until_somebody_else_sets_one(
    api_server: ApiServer, namespace: str
) -> None:
    api = api_server.api
    deployment = f"{PATHS['Deployment'].format(namespace)}/a100-engine"

    def carry_out(**spec: Any) -> int:
        resource = {"apiVersion": "hexflow.dev/v1alpha1", "kind": "GPUPool", "metadata": {"name": "a100"}}
        model = {"name": "Qwen/Qwen2.5-Coder-7B-Instruct"}
        pool = applied(api, {**resource, "spec": {"gpuType": "A100-80GB", "model": model, **spec}}, namespace)
        there = (api.get(deployment),) if api.exists(deployment) else ()
        children = tuple({"apiVersion": "apps/v1", "kind": "Deployment", **each} for each in there)
        observed = Observed(primary=pool, pools=(pool,), children=children)
        for manifest in plan(Key("GPUPool", namespace, "a100"), observed, Defaults(), NOW).apply:
            if manifest["kind"] == "Deployment":
                applied(api, manifest, namespace)
        count: int = api.get(deployment)["spec"]["replicas"]
        return count

    assert carry_out(replicas=3) == 3
    assert carry_out() == 3
    api.patch(f"{deployment}/scale", {"spec": {"replicas": 5}}, fieldManager="autoscaler")
    assert carry_out(maxModelLen=4096) == 5
    assert carry_out(maxModelLen=8192) == 5
    assert carry_out(suspend=True) == 0
    assert carry_out() == 1
