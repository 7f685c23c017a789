import base64
import gzip
import json
import random
import string
from copy import deepcopy
from typing import Any

import pytest

from hexflow_api.handover import MOST_BYTES, PLAIN_BYTES
from hexflow_operator.children.engine import REPLICAS_ANNOTATION
from hexflow_operator.children.metadata import labels
from hexflow_operator.defaults import Defaults
from hexflow_operator.observed import ROUTER_NAME, Key, Observed, key_of_child
from hexflow_operator.plan import CHILD_KINDS, Plan, plan
from support.observations import NOW, THEN, Object, a_deployment, a_pool, a_workflow, condition_of, decide

ROUTER = Key("Router", "team", ROUTER_NAME)


def route(*resources: Object, defaults: Defaults | None = None, **observed: Any) -> Plan:
    given = {
        "pools": tuple(each for each in resources if each["kind"] == "GPUPool"),
        "workflows": tuple(each for each in resources if each["kind"] != "GPUPool"),
    }
    return plan(ROUTER, Observed(**{**given, **observed}), defaults or Defaults(), NOW)


def the(kind: str, planned: Plan) -> Object:
    (found,) = (each for each in planned.apply if each["kind"] == kind)
    return found


def replicas(planned: Plan) -> int | None:
    count: int | None = the("Deployment", planned)["spec"].get("replicas")
    return count


def test_what_is_gone_or_going_is_left_to_its_owners() -> None:
    pool = a_pool()
    pool["metadata"]["deletionTimestamp"] = THEN
    assert decide(pool) == Plan()
    key = Key("GPUPool", "team", "a100")
    assert plan(key, Observed(children=(a_deployment(),)), Defaults(), NOW) == Plan()
    assert route(pool) == Plan()


def test_planning_changes_nothing_of_what_was_observed() -> None:
    pool, workflow = a_pool(podTemplate={"spec": {"hostIPC": True}}), a_workflow()
    before = deepcopy((pool, workflow))
    decide(pool, workflows=(workflow,))
    decide(workflow, pools=(pool,))
    route(pool, workflow)
    assert (pool, workflow) == before


@pytest.mark.parametrize("resource", [a_pool(), a_workflow(tuning={"mode": "Auto"})])
def test_every_child_leads_back_to_its_key_and_to_its_owner(resource: Object) -> None:
    metadata = resource["metadata"]
    for child in decide(resource).apply:
        assert key_of_child(child) == (resource["kind"], "team", metadata["name"])
        (owner,) = child["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (metadata["uid"], True)
        assert (child["apiVersion"], child["kind"]) in CHILD_KINDS


def test_the_router_goes_with_the_last_of_its_owners_and_has_no_controller() -> None:
    pool, workflow = a_pool(), a_workflow()
    for child in route(pool, workflow).apply:
        assert key_of_child(child) == ROUTER
        owners = child["metadata"]["ownerReferences"]
        assert {owner["uid"] for owner in owners} == {pool["metadata"]["uid"], workflow["metadata"]["uid"]}
        assert not any("controller" in owner for owner in owners)


def test_the_labels_of_a_resource_are_not_copied() -> None:
    pool = a_pool()
    pool["metadata"]["labels"] = {"argocd.argoproj.io/instance": "gitops"}
    template = the("Deployment", decide(pool))["spec"]["template"]["metadata"]
    for child in (*decide(pool).apply, {"metadata": template}):
        assert "argocd.argoproj.io/instance" not in child["metadata"]["labels"]


def test_a_pod_template_cannot_change_what_selects_the_pods() -> None:
    pool = a_pool(
        podTemplate={"metadata": {"labels": {"app.kubernetes.io/instance": "other", "mine": "yes"}}}
    )
    deployment = the("Deployment", decide(pool))
    own = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"].items() <= own.items()
    assert own["mine"] == "yes"


def test_a_count_that_nobody_gives_is_left_alone() -> None:
    assert replicas(decide(a_pool())) is None
    others = a_deployment(replicas=5)
    assert replicas(decide(a_pool(), children=(others,))) is None


def test_a_count_that_the_pool_no_longer_gives_stays_until_another_sets_it() -> None:
    ours = a_deployment(replicas=3, annotations={REPLICAS_ANNOTATION: "3"})
    assert replicas(decide(a_pool(), children=(ours,))) == 3
    scaled = a_deployment(replicas=4, annotations={REPLICAS_ANNOTATION: "3"})
    assert replicas(decide(a_pool(), children=(scaled,))) is None


def test_a_pool_that_wakes_up_without_a_count_gets_the_default_one() -> None:
    asleep = a_deployment(replicas=0, annotations={REPLICAS_ANNOTATION: "0"})
    assert replicas(decide(a_pool(suspend=True), children=(asleep,))) == 0
    assert replicas(decide(a_pool(), children=(asleep,))) is None


def owned(child: Object) -> Object:
    return child | {"metadata": {**child["metadata"], "uid": f"uid-{child['kind']}"}}


def test_a_pool_that_becomes_endpoints_gives_its_pods_up() -> None:
    made = tuple(map(owned, decide(a_pool()).apply))
    planned = decide(a_pool(endpoints=[{"url": "http://10.0.0.7:8000"}]), children=made)
    assert {(each.kind, each.uid) for each in planned.delete} == {
        ("Service", "uid-Service"),
        ("PodDisruptionBudget", "uid-PodDisruptionBudget"),
        ("Deployment", "uid-Deployment"),
    }
    assert planned.apply == ()


def test_a_tuner_that_is_switched_off_goes_and_its_policy_stays() -> None:
    made = tuple(map(owned, decide(a_workflow(tuning={"mode": "Auto"})).apply))
    assert {each["kind"] for each in made} == {"ServiceAccount", "RoleBinding", "CronJob"}
    assert len(decide(a_workflow(tuning={"mode": "Off"}), children=made).delete) == 3


def test_a_child_that_is_being_deleted_is_not_deleted_again() -> None:
    dying = owned(the("Deployment", decide(a_pool())))
    dying["metadata"]["deletionTimestamp"] = THEN
    assert decide(a_pool(endpoints=[{"url": "http://10.0.0.7:8000"}]), children=(dying,)).delete == ()


def test_a_role_binding_to_another_role_is_made_anew() -> None:
    made = tuple(map(owned, route(a_pool()).apply))
    planned = route(a_pool(), children=made, defaults=Defaults(router_cluster_role="other"))
    assert [(each.kind, each.uid) for each in planned.delete] == [("RoleBinding", "uid-RoleBinding")]
    assert [each["kind"] for each in planned.apply] == ["RoleBinding"]


def test_a_service_monitor_that_nobody_wants_any_more_goes() -> None:
    made = tuple(map(owned, route(a_workflow(router={"serviceMonitor": True})).apply))
    assert [each.kind for each in route(a_workflow(), children=made).delete] == ["ServiceMonitor"]


def test_pull_secrets_reach_every_pod() -> None:
    defaults = Defaults(image_pull_secrets=("registry",))
    pod = the("Deployment", route(a_pool(), defaults=defaults))["spec"]["template"]["spec"]
    assert pod["imagePullSecrets"] == [{"name": "registry"}]


def test_a_large_namespace_is_handed_over_compressed() -> None:
    flows = tuple(a_workflow(f"flow-{number}", tenants=tenants(150)) for number in range(40))
    config_map = the("ConfigMap", route(a_pool(), *flows))
    assert "data" not in config_map
    packed = base64.b64decode(config_map["binaryData"]["resources.json.gz"])
    text = gzip.decompress(packed)
    assert len(text) > PLAIN_BYTES
    assert len(packed) <= MOST_BYTES
    assert len(json.loads(text)["items"]) == 41


def tenants(count: int) -> list[Object]:
    return [{"name": f"t{n}", "apiKeySecretRef": {"name": f"key-{n}", "key": "k"}} for n in range(count)]


def noise(seed: int, count: int) -> list[str]:
    """Return table names that do not compress."""
    dice = random.Random(seed)
    return ["".join(dice.choices(string.ascii_letters + string.digits, k=200)) for _ in range(count)]


def test_a_namespace_that_does_not_fit_says_so_and_the_router_keeps_what_it_had() -> None:
    flows = []
    for number in range(8):
        flow = a_workflow(f"flow-{number}")
        flow["spec"]["databases"][0]["include"] = noise(number, 1000)
        flows.append(flow)
    before = route(a_pool()).apply
    planned = route(a_pool(), *flows, children=before)
    assert the("ConfigMap", planned)["data"] == the("ConfigMap", route(a_pool()))["data"]
    assert len(the("ConfigMap", planned)["metadata"]["ownerReferences"]) == 9
    assert [each["kind"] for each in route(a_pool(), *flows).apply if each["kind"] == "ConfigMap"] == []
    told = condition_of(decide(flows[0], workflows=tuple(flows), pools=(a_pool(),)).status)
    assert told[:2] == ("False", "TooLarge")
    assert condition_of(decide(a_pool(), workflows=tuple(flows)).status, "Stalled")[:2] == (
        "True",
        "TooLarge",
    )


def test_the_router_is_told_nothing_that_concerns_pods_alone() -> None:
    plain = the("ConfigMap", route(a_pool()))["data"]
    pods_only = a_pool(
        replicas=7, resources={"limits": {"cpu": 1}}, engine={"args": ["--x"]}, sharedMemory="1Gi"
    )
    pods_only["metadata"] |= {"generation": 9, "resourceVersion": "9"}
    assert the("ConfigMap", route(pods_only))["data"] == plain


def test_what_this_version_cannot_read_is_handed_over_all_the_same() -> None:
    newer = a_pool("newer", replicas=-1)
    planned = route(a_pool(), newer)
    items = json.loads(the("ConfigMap", planned)["data"]["resources.json"])["items"]
    assert [each["metadata"]["name"] for each in items] == ["a100", "newer"]
    assert len(the("Service", planned)["metadata"]["ownerReferences"]) == 2


def test_an_object_of_somebody_else_has_no_key() -> None:
    assert key_of_child({"kind": "Pod", "metadata": {"labels": {"hexflow.dev/pool": "a100"}}}) is None
    assert key_of_child({"kind": "Pod", "metadata": {"labels": labels("engine", "a100")}}) == (
        "GPUPool",
        "default",
        "a100",
    )
