"""The tuner as its CronJob runs it, on a real API server: from a router's event log to the ConfigMap of a workflow."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from hexflow_scheduler import Parameters, Policy
from hexflow_simulator import simulate
from support.apiserver import ApiServer
from support.auditlog import AuditLog
from support.engine_model import ROUND
from support.objects import Objects
from support.resources import pool_data, workflow_data
from support.router import QUESTION, WORKFLOW
from support.routers import RouterCluster, router_cluster
from support.serving import serving
from support.simulated import a_call, a_query, a_stage, instances
from support.tuners import Tuner

NOBODY = "http://127.0.0.1:9"
QUERIES = 30
ALPHA = {"seed": 0.0, "min": 0.0, "max": 1.0}


def scheduling(**changes: Any) -> dict[str, Any]:
    return {"policy": "HexGenFlow", "alpha": ALPHA, **changes}


def tuning(mode: str = "Auto", **changes: Any) -> dict[str, Any]:
    return {"mode": mode, "minQueries": 20, **changes}


@pytest.fixture
async def cluster(
    definitions: None, api_server: ApiServer, namespace: str, tmp_path: Path
) -> AsyncIterator[RouterCluster]:
    async with router_cluster(api_server, namespace, tmp_path) as made:
        yield made


@pytest.fixture
def tuner(api_server: ApiServer, namespace: str) -> Tuner:
    made = Tuner(server=api_server, namespace=namespace, workflow=WORKFLOW)
    made.install()
    return made


def hand_over(cluster: RouterCluster, objects: Objects, **spec: Any) -> dict[str, Any]:
    """Apply a workflow and write the router's ConfigMap; return the workflow as the API server has it."""
    workflow = objects.apply(workflow_data(WORKFLOW, **spec))
    cluster.hand_over(pool_data("pool", emulated=True), workflow)
    return workflow


def log_of(*, alpha: float) -> list[str]:
    """Return the log of a router with a fast instance and one that takes six times as long."""
    slow = replace(ROUND, t0=6 * ROUND.t0, t1=6 * ROUND.t1, t2=6 * ROUND.t2, c1=6 * ROUND.c1)
    fleet = [
        instances(2)[0],
        replace(instances(2)[1], instance=replace(instances(2)[1].instance, profile=slow)),
    ]
    stage = a_stage("draft", a_call(100, 200), a_call(100, 200))
    now = time.time()
    queries = [
        a_query(f"q{n}", stage, arrival=now - 300.0 * (QUERIES - n), slo_seconds=60.0, workflow=WORKFLOW)
        for n in range(QUERIES)
    ]
    lines: list[str] = []
    parameters = {WORKFLOW: Parameters(alpha=alpha)}
    simulate(queries, fleet, Policy.named("HexGenFlow"), sink=lines.append, parameters=parameters)
    return lines


def an_admin_port(lines: list[str], asked: list[str]) -> Starlette:
    async def events(request: Request) -> PlainTextResponse:
        asked.append(request.query_params.get("since", ""))
        return PlainTextResponse("".join(f"{line}\n" for line in lines))

    return Starlette(routes=[Route("/v1/events", events)])


async def test_what_serves_better_comes_into_force_and_goes_with_its_workflow(
    cluster: RouterCluster, tuner: Tuner, objects: Objects, audit_log: AuditLog
) -> None:
    workflow = hand_over(cluster, objects, scheduling=scheduling(), tuning=tuning(windowSeconds=86400))
    asked: list[str] = []
    async with serving(an_admin_port(log_of(alpha=0.0), asked)) as router:
        run = await asyncio.to_thread(tuner.run, router)
        assert run.returncode == 0, run.stderr
        assert "alpha 0 -> 0.2" in run.stderr
        written = tuner.config_map()
        assert written is not None
        metadata = written["metadata"]
        assert metadata["ownerReferences"] == [
            {
                "apiVersion": "hexflow.dev/v1alpha1",
                "kind": "TextToSQLWorkflow",
                "name": WORKFLOW,
                "uid": workflow["metadata"]["uid"],
            }
        ]
        assert metadata["labels"]["hexflow.dev/part"] == "policy"
        assert metadata["labels"]["hexflow.dev/workflow"] == WORKFLOW
        assert [each["manager"] for each in metadata["managedFields"]] == ["hexflow-tuner"]
        tuned = tuner.tuned()
        assert tuned.in_force is not None
        assert tuned.in_force.values == {"alpha": pytest.approx(0.2)}
        assert tuned.outcome is not None
        assert tuned.outcome.reason == "Tuned"
        assert float(asked[0]) == pytest.approx(time.time() - 86400, abs=200)
        # the change is watched; a run that changes nothing writes nothing
        run = await asyncio.to_thread(tuner.run, router)
        assert run.returncode == 0, run.stderr
        version = tuner.config_map()
        run = await asyncio.to_thread(tuner.run, router)
        assert tuner.config_map() == version
        assert tuner.tuned().in_force == tuned.in_force
        # switched to advice: what was in force is no longer, the same becomes a recommendation
        hand_over(cluster, objects, scheduling=scheduling(), tuning=tuning("Recommend"))
        run = await asyncio.to_thread(tuner.run, router)
        assert run.returncode == 0, run.stderr
        tuned = tuner.tuned()
        assert tuned.in_force is None
        assert tuned.recommended is not None
    assert len(audit_log.writes(user=tuner.user)) == 3


async def test_where_there_is_nothing_to_learn_from_a_run_ends_well_and_says_so(
    cluster: RouterCluster, tuner: Tuner, objects: Objects
) -> None:
    def run(router: str = NOBODY) -> str:
        ended = tuner.run(router)
        assert ended.returncode == 0, ended.stderr
        return ended.stderr

    assert "there is no ConfigMap hexflow-router" in await asyncio.to_thread(run)
    cluster.hand_over(pool_data("pool", emulated=True))
    assert f"there is no workflow {WORKFLOW}" in await asyncio.to_thread(run)
    hand_over(cluster, objects, scheduling=scheduling(), tuning=tuning("Off"))
    assert "asks for no tuning" in await asyncio.to_thread(run)
    assert tuner.config_map() is None
    hand_over(cluster, objects, scheduling=scheduling(), tuning=tuning())
    assert "the event log cannot be read" in await asyncio.to_thread(run)
    outcome = tuner.tuned().outcome
    assert outcome is not None
    assert (outcome.reason, tuner.tuned().in_force) == ("TooFewQueries", None)
    async with serving(an_admin_port([], [])) as router:
        await asyncio.to_thread(run, router)
    outcome = tuner.tuned().outcome
    assert outcome is not None
    assert "no query that has ended" in outcome.message


async def test_a_config_map_of_somebody_else_is_left_alone(
    cluster: RouterCluster, tuner: Tuner, objects: Objects
) -> None:
    hand_over(cluster, objects, scheduling=scheduling(), tuning=tuning())
    cluster.write_config_map({"metadata": {"name": f"{WORKFLOW}-policy"}, "data": {"mine": "yes"}})
    run = await asyncio.to_thread(tuner.run, NOBODY)
    assert run.returncode == 1
    assert f"{WORKFLOW}-policy is somebody else's" in run.stderr
    written = tuner.config_map()
    assert written is not None
    assert written["data"] == {"mine": "yes"}


async def test_a_run_learns_from_the_log_of_a_real_router(
    cluster: RouterCluster, tuner: Tuner, objects: Objects
) -> None:
    spec = {
        "scheduling": scheduling(),
        "tuning": tuning(minQueries=3, minImprovement=0.0, windowSeconds=86400),
    }
    workflow = objects.apply(workflow_data(WORKFLOW, **spec))
    pools = [
        pool_data(
            name, gpuType=gpu, emulated=True, engine={"port": cluster.engine_port}, tensorParallelSize=4
        )
        for name, gpu in (("a100", "A100-80GB"), ("l40s", "L40S"))
    ]
    cluster.hand_over(*pools, workflow)
    for pool in ("a100", "l40s"):
        await cluster.make_pod(pool, pool)
    router = await cluster.router(f"--event-log={cluster.secrets.parent / 'events.jsonl'}")
    for pod in ("a100", "l40s"):
        await router.until_state(pod, "Ready")
    for _ in range(4):
        response = await router.client.post(f"/v1/workflows/{WORKFLOW}/queries", json={"question": QUESTION})
        assert response.json()["rows"] == [[3]]
    run = await asyncio.to_thread(tuner.run, str(router.admin.base_url))
    assert run.returncode == 0, run.stderr
    tuned = tuner.tuned()
    assert tuned.outcome is not None
    assert tuned.outcome.reason == "Tuned", tuned.outcome
    assert tuned.outcome.message.startswith("alpha ")
