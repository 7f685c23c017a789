"""The router as it runs in a cluster: what it sees of its namespace through a real API server, and what it makes of it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hexflow_api.tuned import Tuned, TunedParameters
from support.apiproxy import Answer, ApiProxy
from support.apiserver import ApiServer
from support.resources import pool_data, workflow_data
from support.router import QUESTION, WORKFLOW
from support.routers import ClusterRouter, RouterCluster, router_cluster

AUTO: dict[str, Any] = {
    "tuning": {"mode": "Auto"},
    "scheduling": {"policy": "HexGenFlow", "alpha": {"seed": 0.5, "min": 0.2, "max": 0.9}},
}


@pytest.fixture
async def cluster(api_server: ApiServer, namespace: str, tmp_path: Path) -> AsyncIterator[RouterCluster]:
    async with router_cluster(api_server, namespace, tmp_path) as made:
        yield made


def a_pool(cluster: RouterCluster, name: str = "a100", **spec: Any) -> dict[str, Any]:
    return pool_data(name, emulated=True, engine={"port": cluster.engine_port}, **spec)


async def ask(router: ClusterRouter) -> dict[str, Any]:
    response = await router.client.post(f"/v1/workflows/{WORKFLOW}/queries", json={"question": QUESTION})
    found: dict[str, Any] = response.json()
    return found


async def test_pods_become_instances_that_come_and_go(cluster: RouterCluster) -> None:
    cluster.hand_over(a_pool(cluster), workflow_data(WORKFLOW))
    uid = await cluster.make_pod("one", "a100")
    router = await cluster.router()
    assert (await ask(router))["rows"] == [[3]]
    one = (await router.servers())["one"]
    assert one["instance"] == f"one.{uid[:8]}"
    assert (one["pool"], one["state"]) == ("a100", "Ready")
    # loading, ready, failing its probe: the kubelet's word counts, however well it answers
    await cluster.make_pod("two", "a100", ready=False)
    await router.until_state("two", "Unready")
    assert (await router.servers())["two"]["reason"] == "PodNotReady"
    cluster.put_pod("two", ready=True)
    await router.until_state("two", "Ready")
    # deleted: nothing new, and it is there until it has gone
    cluster.delete_pod("two")
    await router.until_state("two", "Draining")
    cluster.end_pod("two")
    await router.until_state("two", None)
    # started again in its place: another instance, of which nothing is expected that the old one had
    restarted = [{"name": "engine", "restartCount": 1, "ready": True, "image": "e", "imageID": ""}]
    cluster.put_pod("one", ready=True, containerStatuses=restarted)

    async def another() -> bool:
        return str((await router.servers())["one"]["instance"]) == f"one.{uid[:8]}.1"

    await router.until(another, "it is still the old instance")
    # the pool's own word
    cluster.hand_over(a_pool(cluster, suspend=True), workflow_data(WORKFLOW))
    await router.until_state("one", "Draining")
    cluster.hand_over(a_pool(cluster), workflow_data(WORKFLOW))
    await router.until_state("one", "Ready")
    assert (await ask(router))["rows"] == [[3]]


async def test_what_runs_on_a_pod_that_is_told_to_end_ends_well(cluster: RouterCluster) -> None:
    cluster.hand_over(a_pool(cluster))
    await cluster.make_pod("one", "a100")
    router = await cluster.router()
    model = pool_data()["spec"]["model"]["name"]
    body = {"model": model, "max_tokens": 900, "messages": [{"role": "user", "content": "Count."}]}
    running = asyncio.create_task(router.client.post("/v1/chat/completions", json=body))

    async def busy() -> bool:
        state = (await router.admin.get("/debug/scheduler")).json()
        return any(each["running"] for each in state["instances"])

    await router.until(busy, "nothing runs")
    cluster.delete_pod("one")
    await router.until_state("one", "Draining")
    answer = await running
    assert answer.status_code == 200, answer.text
    refused = await router.client.get("/readyz")
    assert (refused.status_code, refused.json()["reason"]) == (503, "NoInstance")


async def test_a_router_is_reached_without_instances_once_it_knows_what_it_is_to_do(
    cluster: RouterCluster,
) -> None:
    router = await cluster.router(ready=False)
    for path in ("/readyz", "/readyz?exclude=instances"):
        answer = await router.client.get(path)
        assert (answer.status_code, answer.json()["reason"]) == (503, "NotConfigured")
    cluster.hand_over(a_pool(cluster), workflow_data(WORKFLOW), gzipped=True)
    await router.until(lambda: router.readiness("/readyz?exclude=instances"), "it is not configured")
    answer = await router.client.get("/readyz")
    assert (answer.status_code, answer.json()["reason"]) == (503, "NoInstance")
    said = (await router.admin.get("/readyz?exclude=instances")).json()
    assert said["workflows"] == [WORKFLOW]
    assert (await router.client.get("/readyz?exclude=everything")).status_code == 400
    # the last good configuration stays, whatever becomes of the ConfigMap
    cluster.write_config_map({"metadata": {"name": "hexflow-router"}, "data": {"resources.json": "{"}})

    async def refused() -> bool:
        return "holds no list" in str((await router.admin.get("/readyz")).json()["configuration"]["error"])

    await router.until(refused, "the broken ConfigMap was not noticed")
    cluster.delete_config_map("hexflow-router")

    async def missed() -> bool:
        return "is not there" in str((await router.admin.get("/readyz")).json()["configuration"]["error"])

    await router.until(missed, "the missing ConfigMap was not noticed")
    assert await router.readiness("/readyz?exclude=instances")
    assert (await router.client.get("/v1/workflows")).json()["workflows"][0]["name"] == WORKFLOW


async def test_what_cannot_be_read_stops_none_of_the_others(cluster: RouterCluster) -> None:
    newer = a_pool(cluster, "newer", replicas=None)
    newer["spec"]["quantum"] = {"qubits": 3}
    broken = workflow_data("broken", slo={"deadlineSeconds": "soon"})
    cluster.hand_over(newer, broken, workflow_data(WORKFLOW))
    await cluster.make_pod("one", "newer")
    router = await cluster.router()
    assert (await ask(router))["rows"] == [[3]]
    problems = (await router.admin.get("/readyz")).json()["configuration"]["problems"]
    assert any("TextToSQLWorkflow broken is passed over" in each for each in problems)
    assert any("spec.quantum" in each for each in problems)


async def test_pods_of_your_own_are_found_by_the_pools_selector(cluster: RouterCluster) -> None:
    selector = {
        "matchLabels": {"app": "vllm"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["prod", "canary"]},
            {"key": "retired", "operator": "DoesNotExist"},
        ],
    }
    own = pool_data("own", selector=selector, engine={"port": cluster.engine_port})
    cluster.hand_over(own, a_pool(cluster), workflow_data(WORKFLOW))
    await cluster.make_pod("mine", "own", labels={"app": "vllm", "tier": "prod"})
    await cluster.make_pod("old", "own", labels={"app": "vllm", "tier": "prod", "retired": "yes"})
    await cluster.make_pod("other", "own", labels={"app": "vllm", "tier": "test"})
    await cluster.make_pod("made", "a100")
    router = await cluster.router()
    await router.until_state("mine", "Ready")
    await router.until_state("made", "Ready")
    servers = await router.servers()
    assert {name: each["pool"] for name, each in servers.items()} == {"mine": "own", "made": "a100"}
    said = (await router.report())["pools"]
    assert [each["ready"] for each in said["own"]["instances"]] == [True]


async def test_fairness_is_in_force_for_the_workflow_that_pins_it_alone(cluster: RouterCluster) -> None:
    fair = workflow_data(WORKFLOW, scheduling={"fairness": {"value": 1}})
    cluster.hand_over(a_pool(cluster), fair, workflow_data("others"))
    router = await cluster.router(ready=False)

    async def told() -> dict[str, Any]:
        workflows = (await router.report())["workflows"]
        return {name: each["parameters"]["fairness"] for name, each in workflows.items()}

    async def so() -> bool:
        return await told() == {
            WORKFLOW: {"value": 1.0, "source": "Pinned"},
            "others": {"value": 0.0, "source": "Default"},
        }

    await router.until(so, "fairness is not as the workflows say")
    view = (await router.admin.get("/debug/scheduler")).json()
    assert view["workflowParameters"] == {WORKFLOW: {"exponent": 3.0, "fairness": 1.0}}
    cluster.hand_over(a_pool(cluster), workflow_data(WORKFLOW), workflow_data("others"))

    async def taken_back() -> bool:
        return {each["value"] for each in (await told()).values()} == {0.0}

    await router.until(taken_back, "fairness stays")


async def test_tuned_parameters_are_in_force_within_bounds_and_the_last_good_ones_stay(
    cluster: RouterCluster,
) -> None:
    def tuned(value: float) -> Tuned:
        return Tuned(in_force=TunedParameters(values={"alpha": value}, since="2026-11-30T07:00:00Z"))

    cluster.hand_over(a_pool(cluster), workflow_data(WORKFLOW, **AUTO))
    router = await cluster.router(ready=False)

    async def alpha() -> dict[str, Any]:
        parameters = (await router.report())["workflows"].get(WORKFLOW, {}).get("parameters", {})
        return dict(parameters.get("alpha", {}))

    async def until_alpha(**expected: Any) -> None:
        async def so() -> bool:
            return await alpha() == expected

        await router.until(so, f"alpha is not {expected}")
        view = (await router.admin.get("/debug/scheduler")).json()
        assert view["workflowParameters"][WORKFLOW]["alpha"] == expected["value"]

    await until_alpha(value=0.5, source="Seed")
    assert (await router.report())["workflows"][WORKFLOW]["parameters"]["beta"]["source"] == "Default"
    cluster.tune(WORKFLOW, tuned(0.7))
    await until_alpha(value=0.7, source="Tuned", since="2026-11-30T07:00:00Z")

    async def complains() -> bool:
        problems = (await router.admin.get("/readyz")).json()["configuration"]["problems"]
        return any(f"{WORKFLOW}-policy is not used" in each for each in problems)

    for bad in (tuned(0.1), tuned(0.95)):
        cluster.tune(WORKFLOW, bad)
        await router.until(complains, "nothing was refused")
        assert (await alpha())["value"] == 0.7
        cluster.tune(WORKFLOW, tuned(0.7))

        async def content() -> bool:
            return not await complains()

        await router.until(content, "it still complains")
    cluster.tune(WORKFLOW, data={"parameters.json": '{"parameters": {"alpha": '})
    await router.until(complains, "nothing was refused")
    assert (await alpha())["value"] == 0.7
    # the bounds move, tuning is switched off, a value is pinned: the resource has the last word
    moved = {**AUTO, "scheduling": {"policy": "HexGenFlow", "alpha": {"seed": 0.3, "min": 0.2, "max": 0.6}}}
    cluster.hand_over(a_pool(cluster), workflow_data(WORKFLOW, **moved))
    await until_alpha(value=0.3, source="Seed")
    cluster.hand_over(a_pool(cluster), workflow_data(WORKFLOW, **AUTO))
    cluster.tune(WORKFLOW, tuned(0.8))
    await until_alpha(value=0.8, source="Tuned", since="2026-11-30T07:00:00Z")
    off = {**AUTO, "tuning": {"mode": "Off"}}
    cluster.hand_over(a_pool(cluster), workflow_data(WORKFLOW, **off))
    await until_alpha(value=0.5, source="Seed")
    pinned = {**AUTO, "scheduling": {"policy": "HexGenFlow", "alpha": {"value": 0.4}}}
    cluster.hand_over(a_pool(cluster), workflow_data(WORKFLOW, **pinned))
    await until_alpha(value=0.4, source="Pinned")
    cluster.hand_over(a_pool(cluster), workflow_data(WORKFLOW, **AUTO))
    await until_alpha(value=0.8, source="Tuned", since="2026-11-30T07:00:00Z")
    cluster.delete_config_map(f"{WORKFLOW}-policy")
    await until_alpha(value=0.5, source="Seed")


async def test_a_secret_that_is_missing_is_told_and_works_as_soon_as_it_is_mounted(
    cluster: RouterCluster,
) -> None:
    (cluster.secrets / "shop" / "dsn").unlink()
    tenants = [{"name": "analytics", "apiKeySecretRef": {"name": "keys", "key": "analytics"}}]
    endpoint = {"url": "http://127.0.0.1:9", "apiKeySecretRef": {"name": "keys", "key": "engine"}}
    cluster.hand_over(
        a_pool(cluster), pool_data("outside", endpoints=[endpoint]), workflow_data(WORKFLOW, tenants=tenants)
    )
    await cluster.make_pod("one", "a100")
    router = await cluster.router()
    problems = (await router.report())["problems"]
    assert {(each["kind"], each["name"], each["reason"]) for each in problems} == {
        ("GPUPool", "outside", "SecretNotFound"),
        ("TextToSQLWorkflow", WORKFLOW, "SecretNotFound"),
    }
    messages = " ".join(each["message"] for each in problems)
    assert "Secret shop has no key dsn for database shop" in messages
    assert "Secret keys has no key analytics for tenant analytics" in messages
    assert "Secret keys has no key engine for endpoint http://127.0.0.1:9" in messages
    assert str(cluster.secrets) not in messages
    cluster.write_secret("shop", "dsn", f"sqlite:///{cluster.laptop.resources / 'shop.sqlite'}")
    for key in ("analytics", "engine"):
        cluster.write_secret("keys", key, "hush")

    async def nothing_is_missing() -> bool:
        return not (await router.report())["problems"]

    await router.until(nothing_is_missing, "the secrets were not noticed")
    response = await router.client.post(
        f"/v1/workflows/{WORKFLOW}/queries",
        json={"question": QUESTION},
        headers={"authorization": "Bearer hush"},
    )
    assert response.json()["rows"] == [[3]]
    # one question is enough for the attainment, and too few for a percentile
    said = (await router.report())["workflows"][WORKFLOW]
    assert said["attainment"] == 1.0
    assert "p95Seconds" not in said
    outside = (await router.report())["pools"]["outside"]["instances"]
    assert [(each["url"], each["ready"]) for each in outside] == [("http://127.0.0.1:9", False)]
    assert "ConnectFailed" in outside[0]["message"]


async def test_while_the_api_server_is_away_the_router_goes_on_with_what_it_knew(
    cluster: RouterCluster, api_proxy: ApiProxy
) -> None:
    cluster.hand_over(a_pool(cluster), workflow_data(WORKFLOW))
    for name in ("one", "two"):
        await cluster.make_pod(name, "a100")
    router = await cluster.router(url=api_proxy.url)
    await router.until_state("two", "Ready")
    api_proxy.refuse()
    assert (await ask(router))["rows"] == [[3]]
    # what dies meanwhile is noticed all the same, by looking at it
    await cluster.kill_engine("two")
    await router.until_state("two", "Unready")
    assert (await ask(router))["rows"] == [[3]]
    # what changes meanwhile is seen afterwards: one pod gone, one new, another policy
    cluster.delete_pod("two")
    cluster.end_pod("two")
    await cluster.make_pod("three", "a100")
    cluster.hand_over(a_pool(cluster), workflow_data(WORKFLOW, scheduling={"policy": "RoundRobin"}))
    assert set(await router.servers()) == {"one", "two"}
    api_proxy.well()
    await router.until_state("three", "Ready")
    await router.until_state("two", None)

    async def another_policy() -> bool:
        said: dict[str, str] = (await router.admin.get("/readyz")).json()["policy"]
        return said == {"inForce": "RoundRobin", "named": "RoundRobin"}

    await router.until(another_policy, "the change of the ConfigMap was missed")
    # every watch too old at once; one that is just beginning anew is not there to be told
    assert api_proxy.expire() >= 1
    cluster.put_pod("three", ready=False)
    await router.until_state("three", "Unready")
    assert "Traceback" not in router.log()


async def test_a_router_that_starts_while_the_api_server_is_away_waits_for_it(
    cluster: RouterCluster, api_proxy: ApiProxy
) -> None:
    cluster.hand_over(a_pool(cluster), workflow_data(WORKFLOW))
    await cluster.make_pod("one", "a100")
    away = api_proxy.fault(Answer(503))
    router = await cluster.router(url=api_proxy.url, ready=False)
    await router.until(lambda: away.hits > 0, "it asked nobody")
    assert (await router.client.get("/readyz?exclude=instances")).json()["reason"] == "NotConfigured"
    api_proxy.well()
    await router.until(lambda: router.readiness("/readyz"), "it is not ready")
    assert (await ask(router))["rows"] == [[3]]
