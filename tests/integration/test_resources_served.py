"""The custom resources on a real API server: what is right is taken and read back as it was applied (C1)."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hexflow_api import (
    Condition,
    ConditionType,
    GPUPoolStatus,
    ParameterInForce,
    Reason,
    RecommendedParameter,
    TextToSQLWorkflowStatus,
    load_text,
    parse_resource,
)
from hexflow_api.crd import OLDEST_KUBERNETES
from support.apiserver import ApiServer
from support.definitions import DEFINITIONS, FILES, define, served_at
from support.goodresources import EVERYTHING_OF_A_POOL, EVERYTHING_OF_A_WORKFLOW, GOOD, examples
from support.kubernetes import ApiError, Kubectl, Object
from support.laptop import hexflow
from support.resources import pool_data, workflow_data
from support.runfolder import RunFolder
from support.waiting import until

pytestmark = pytest.mark.usefixtures("definitions")

EXAMPLES = dict(examples())
ALL = GOOD | EXAMPLES
SINCE = "2026-11-30T06:48:00Z"


def ready(status: str, reason: Reason) -> Condition:
    return Condition.model_validate(
        {
            "type": ConditionType.READY,
            "status": status,
            "reason": reason,
            "message": reason.sentence,
            "lastTransitionTime": SINCE,
            "observedGeneration": 1,
        }
    )


@pytest.mark.parametrize("data", ALL.values(), ids=ALL)
def test_what_is_right_is_taken_and_read_back_as_it_was_applied(
    api_server: ApiServer, data: dict[str, Any]
) -> None:
    path = served_at(data["kind"])
    created = api_server.api.create(path, data, fieldValidation="Strict", dryRun="All")
    applied = api_server.api.patch(
        f"{path}/{data['metadata']['name']}",
        data,
        kind="apply",
        fieldManager="test",
        fieldValidation="Strict",
        dryRun="All",
    )
    assert created["spec"] == applied["spec"] == data["spec"]
    assert "status" not in created
    read = parse_resource(created)
    assert (
        read.model_dump(by_alias=True, exclude_unset=True)["spec"]
        == parse_resource(data).model_dump(by_alias=True, exclude_unset=True)["spec"]
    )


def test_there_are_examples_in_the_folder_and_in_the_documentation() -> None:
    assert len(ALL) > 25
    assert {Path(where.partition(":")[0]).parts[0] for where in EXAMPLES} >= {"examples", "docs"}


def test_what_is_right_is_right_to_hexflow_validate(tmp_path: Path) -> None:
    """Each object alone; names between objects are another matter."""
    for data in ALL.values():
        parse_resource(data)
    pools = [data for data in GOOD.values() if data["kind"] == "GPUPool"]
    text = "\n---\n".join(json.dumps(data | {"metadata": {"name": f"p{i}"}}) for i, data in enumerate(pools))
    configured = '\n---\n{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "p"}, "data": {"profile.yaml": "%s"}}'
    profile = "{t0: 0.02, t1: 0, t2: 0, c1: 0.0001, c2: 0, kvTokens: 50000}"
    done = hexflow(
        "validate",
        "--secrets-elsewhere",
        "-f",
        "-",
        state_dir=tmp_path,
        stdin=(text + configured % profile).encode(),
    )
    assert done.code == 0, done.err
    assert len(load_text(text + configured % profile, secrets_elsewhere=True).pools) == len(pools)


def test_applying_the_same_again_changes_nothing(kubectl: Kubectl) -> None:
    objects = [pool_data(**EVERYTHING_OF_A_POOL), workflow_data(**EVERYTHING_OF_A_WORKFLOW)]
    for options in ((), ("--server-side", "--force-conflicts")):
        kubectl.apply(*objects, options=options)
        before = kubectl("get", "hexflow", "-o", "jsonpath={.items[*].metadata.resourceVersion}")
        kubectl.apply(*objects, options=options)
        after = kubectl("get", "hexflow", "-o", "jsonpath={.items[*].metadata.resourceVersion}")
        assert before == after
        assert kubectl.run("diff", *options, "-f", "-", stdin=objects).returncode == 0


def test_stages_keep_their_order_when_they_are_moved(kubectl: Kubectl) -> None:
    """The list is a map to the API server, and its order still means something."""
    first = {"name": "first", "kind": "CandidateGeneration"}
    second = {"name": "second", "kind": "CandidateGeneration"}
    third = {"name": "third", "kind": "SchemaLinking"}
    for options in ((), ("--server-side", "--force-conflicts")):
        for stages in ([first, second], [second, first], [third, second, first], [first, third]):
            kubectl.apply(workflow_data(stages=stages), options=options)
            read = kubectl.json("get", "t2sql", "shop-questions")["spec"]["stages"]
            assert [stage["name"] for stage in read] == [stage["name"] for stage in stages]


def test_a_field_without_a_value_is_no_field(kubectl: Kubectl) -> None:
    text = json.dumps(pool_data() | {"spec": pool_data()["spec"] | {"replicas": None}})
    kubectl("apply", "-f", "-", stdin=text)
    assert "replicas" not in kubectl.json("get", "gpool", "a100")["spec"]
    assert load_text(text, secrets_elsewhere=True).pools[0].spec.replicas is None


# kubectl get, explain, scale


def test_kubectl_get_shows_whether_it_works_and_why_not(
    kubectl: Kubectl, api_server: ApiServer, namespace: str
) -> None:
    kubectl.apply(pool_data(), workflow_data())
    pool_status = GPUPoolStatus(
        observed_generation=1,
        conditions=(ready("False", Reason.UNSCHEDULABLE),),
        replicas=2,
        ready_replicas=1,
        ready="1/2",
        selector="hexflow.dev/pool=a100",
        endpoints=(f"http://a100-engine.{namespace}.svc:8000",),
        profile="a100-80gb-qwen2.5-32b-tp2",
    )
    workflow_status = TextToSQLWorkflowStatus(
        observed_generation=1,
        conditions=(ready("True", Reason.SERVING),),
        url=f"http://hexflow-router.{namespace}.svc:8080",
        policy="HexGenFlow",
        parameters={
            "alpha": ParameterInForce(value=0.45, source="Tuned", since=SINCE),
            "beta": ParameterInForce(value=1, source="Default"),
        },
        recommended={"alpha": RecommendedParameter(value=0.5, since=SINCE)},
        p95_seconds=12.4,
        attainment=0.975,
        attainment_percent="97.5",
    )
    for kind, name, status in (
        ("GPUPool", "a100", pool_status),
        ("TextToSQLWorkflow", "shop-questions", workflow_status),
    ):
        path = f"{served_at(kind, namespace=namespace)}/{name}/status"
        written = api_server.api.patch(path, {"status": status.as_written()})
        assert written["status"] == status.as_written()
        assert type(status).model_validate(written["status"]) == status
        assert parse_resource(written).name == name

    def table(kind: str) -> list[dict[str, str]]:
        head, *rows = [re.split(r"\s{2,}", line.strip()) for line in kubectl("get", kind).splitlines()]
        return [dict(zip(head, row, strict=True)) for row in rows]

    (pool,) = table("gpool")
    assert pool.pop("AGE")
    assert pool == {
        "NAME": "a100",
        "READY": "False",
        "REASON": "Unschedulable",
        "MODEL": "Qwen/Qwen2.5-Coder-32B-Instruct",
        "GPU": "A100-80GB",
        "READY/WANT": "1/2",
    }
    (workflow,) = table("t2sql")
    assert workflow.pop("AGE")
    assert workflow == {
        "NAME": "shop-questions",
        "READY": "True",
        "REASON": "Serving",
        "ALPHA": "0.45",
        "P95": "12.4",
        "SLO%": "97.5",
    }
    assert kubectl("get", "hexflow", "-o", "name").split() == [
        "gpupool.hexflow.dev/a100",
        "texttosqlworkflow.hexflow.dev/shop-questions",
    ]
    assert "a100" not in kubectl("get", "all", "-o", "name")


def test_a_status_is_written_by_its_own_door_and_keeps_its_form(
    api_server: ApiServer, namespace: str
) -> None:
    path = served_at("GPUPool", namespace=namespace)
    created = api_server.api.create(path, pool_data() | {"status": {"ready": "9/9"}})
    assert "status" not in created
    written = api_server.api.patch(
        f"{path}/a100/status", {"status": {"ready": "1/1"}, "spec": {"replicas": 7}}
    )
    assert (written["status"], written["spec"]) == ({"ready": "1/1"}, pool_data()["spec"])
    assert written["metadata"]["generation"] == 1
    bad: tuple[tuple[dict[str, Any], str], ...] = (
        ({"readyReplicas": -1}, "status.readyReplicas"),
        ({"conditions": [{"type": "Ready"}]}, "status.conditions[0].reason"),
        (
            {"conditions": [ready("True", Reason.SERVING).model_dump(by_alias=True) | {"status": "Maybe"}]},
            "status.conditions[0].status",
        ),
        (
            {
                "conditions": [
                    ready("True", Reason.SERVING).model_dump(by_alias=True) | {"lastTransitionTime": "now"}
                ]
            },
            "status.conditions[0].lastTransitionTime",
        ),
    )
    for status, place in bad:
        with pytest.raises(ApiError) as refused:
            api_server.api.patch(f"{path}/a100/status", {"status": status})
        assert place in refused.value.message


def test_a_status_of_a_newer_version_is_pruned_and_its_reasons_are_taken(
    api_server: ApiServer, namespace: str
) -> None:
    path = served_at("GPUPool", namespace=namespace)
    api_server.api.create(path, pool_data())
    newer = ready("False", Reason.SERVING).model_dump(by_alias=True, mode="json") | {"reason": "GpuOnFire"}
    written = api_server.api.patch(
        f"{path}/a100/status", {"status": {"conditions": [newer], "spentEuros": 3}}
    )
    assert written["status"] == {"conditions": [newer]}


def test_kubectl_scale_sets_replicas_and_an_autoscaler_finds_its_pods(
    api_server: ApiServer, kubectl: Kubectl, namespace: str
) -> None:
    path = f"{served_at('GPUPool', namespace=namespace)}/a100"
    kubectl.apply(pool_data(replicas=1))
    kubectl("scale", "gpool", "a100", "--replicas=4")
    assert api_server.api.get(path)["spec"]["replicas"] == 4
    status = GPUPoolStatus(replicas=3, selector="hexflow.dev/pool=a100").as_written()
    api_server.api.patch(f"{path}/status", {"status": status})
    scale = api_server.api.get(f"{path}/scale")
    assert (scale["spec"], scale["status"]) == (
        {"replicas": 4},
        {"replicas": 3, "selector": "hexflow.dev/pool=a100"},
    )
    refused = kubectl.run("scale", "gpool", "a100", "--replicas=1001")
    assert refused.returncode == 1
    assert "spec.replicas" in refused.stderr


def test_a_pool_that_leaves_its_replicas_to_others_has_no_scale_until_somebody_sets_one(
    api_server: ApiServer, kubectl: Kubectl, namespace: str
) -> None:
    """An autoscaler on the pool is told so; a person who scales it has decided."""
    kubectl.apply(pool_data())
    path = f"{served_at('GPUPool', namespace=namespace)}/a100"
    with pytest.raises(ApiError, match=re.escape('".spec.replicas" does not exist')):
        api_server.api.get(f"{path}/scale")
    kubectl("scale", "gpool", "a100", "--replicas=2")
    assert api_server.api.get(path)["spec"]["replicas"] == 2


def test_kubectl_explain_reads_like_documentation(kubectl: Kubectl) -> None:
    def explained(field: str) -> str:
        return " ".join(kubectl("explain", field).split())

    assert "The same model on the same kind of GPU, a number of times." in explained("gpool")
    assert "Whether prompts that begin alike share their prefill. Default: true." in explained("gpool.spec")
    assert "One of slo.classes; absent: slo.deadlineSeconds." in explained("t2sql.spec.tenants.sloClass")
    assert "ENUM: Finish Abort" in explained("t2sql.spec.slo.onDeadline")
    assert "Why, in one word that does not change." in explained("t2sql.status.conditions.reason")
    for kind in ("gpool", "t2sql"):
        everything = kubectl("explain", kind, "--recursive")
        assert "<no description>" not in everything


@pytest.fixture(scope="module")
def oldest(api_server: ApiServer) -> Iterator[ApiServer]:
    """Run the newest API server held to what the oldest takes: it refuses CEL that came with the version after it."""
    with RunFolder() as folder:
        server = ApiServer(
            binaries=api_server.binaries,
            folder=folder,
            options=[f"--emulated-version=kube={OLDEST_KUBERNETES}"],
        )
        try:
            define(server.api)
            yield server
        finally:
            server.close()


def test_the_oldest_kubernetes_that_is_named_takes_the_definitions(oldest: ApiServer) -> None:
    for data in ALL.values():
        oldest.api.create(served_at(data["kind"]), data, fieldValidation="Strict", dryRun="All")
    later, path = definition_of_pools()
    schema = later["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["x-kubernetes-validations"] = [{"rule": "[self.metadata.name].sort().size() == 1"}]
    with pytest.raises(ApiError, match="undeclared reference to 'sort'"):
        oldest.api.patch(path, later, kind="apply", fieldManager="tests", dryRun="All")


def test_an_object_that_a_stricter_version_would_refuse_can_still_be_changed_elsewhere(
    oldest: ApiServer,
) -> None:
    """Only what is changed is checked anew, so that an upgrade stops nobody's work."""
    definition, path = definition_of_pools()
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["replicas"]["maximum"] = 2000
    oldest.api.patch(path, definition, kind="apply", fieldManager="tests", force="true")
    pools = served_at("GPUPool")
    until(lambda: taken(oldest, pools, pool_data("large", replicas=1500)), seconds=30)
    define(oldest.api)
    until(lambda: not taken(oldest, pools, pool_data("another", replicas=1500), dryRun="All"), seconds=30)
    read = oldest.api.patch(
        f"{pools}/large", {"metadata": {"labels": {"team": "data"}}, "spec": {"suspend": True}}
    )
    assert (read["metadata"]["labels"], read["spec"]["replicas"]) == ({"team": "data"}, 1500)
    with pytest.raises(ApiError, match=re.escape("spec.replicas")):
        oldest.api.patch(f"{pools}/large", {"spec": {"replicas": 1501}})


def definition_of_pools() -> tuple[Object, str]:
    """Return the definition of GPUPool as it is committed, and its path."""
    definition: Object = yaml.safe_load(FILES[0].read_text(encoding="utf-8"))
    return definition, f"{DEFINITIONS}/{definition['metadata']['name']}"


def taken(server: ApiServer, path: str, data: Object, **query: str) -> bool:
    """Tell whether the API server takes the object."""
    try:
        server.api.create(path, data, **query)
    except ApiError as error:
        if error.status == 422:
            return False
        raise
    return True
