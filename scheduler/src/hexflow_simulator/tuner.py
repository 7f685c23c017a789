"""The tuner of a cluster, one run: what the CronJob of a workflow starts (``python -m hexflow_simulator.tuner``).

It reads the workflow from the router's ConfigMap and the event log from the router's admin port, and writes the
ConfigMap ``<workflow>-policy``. Where there is nothing to learn from it says so there and ends with 0, for a failed Job
turns an application red in a GitOps tool. This module alone of the package knows HTTP and Kubernetes; what is decided
is ``retune``'s.
"""

import argparse
import asyncio
import logging
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp

from hexflow_api import API_VERSION, ResourceError, TextToSQLWorkflow, label
from hexflow_api.handover import taken_over
from hexflow_cluster import Access, Cluster, ClusterError, Kind, Manifest, connect
from hexflow_simulator.retune import Retuned, nothing_to_learn, retune
from hexflow_simulator.tunespec import limits_of

_log = logging.getLogger("hexflow.tuner")

MANAGER: Final = "hexflow-tuner"
"""Field manager of the ConfigMap."""
CONFIG_MAP: Final = Kind("v1", "ConfigMap")
NAMESPACE_VARIABLE: Final = "HEXFLOW_NAMESPACE"
LOG_SECONDS: Final = 600.0
"""Most that the event log takes to come."""
SILENCE_SECONDS: Final = 30.0
FAILED: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Say what a run is about."""

    workflow: str
    config_map: str
    router: str
    """Address of the router's admin port."""
    namespace: str
    kubeconfig: Path | None = None
    """None: the pod's ServiceAccount."""


class Unable(Exception):
    """The run cannot be made; the text says why."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Tune once; return the exit status."""
    settings = _settings(arguments)
    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )
    _log.setLevel(logging.INFO)
    try:
        asyncio.run(run(settings, now=time.time()))
    except (ClusterError, Unable) as problem:
        _log.error("%s cannot be tuned: %s", settings.workflow, problem)
        return FAILED
    return 0


async def run(settings: Settings, *, now: float) -> None:
    """Tune once at ``now`` (seconds since the epoch). Raises ClusterError, Unable."""
    connection = await connect(Access(kubeconfig=settings.kubeconfig, user_agent="hexflow-tuner"))
    try:
        await _run(Cluster(connection, field_manager=MANAGER), settings, now=now)
    finally:
        await connection.close()


async def _run(cluster: Cluster, settings: Settings, *, now: float) -> None:
    workflow = await _workflow(cluster, settings)
    if workflow is None:
        return
    tuning = workflow.spec.tuning
    if tuning is None or tuning.mode == "Off":
        _log.info("%s asks for no tuning", workflow.name)
        return
    name = f"{workflow.name}-policy"
    there = await cluster.find(CONFIG_MAP, name, namespace=settings.namespace)
    if there is not None and _labels(there).get(label.PART) != label.POLICY_PART:
        raise Unable(f"the ConfigMap {name} is somebody else's; rename or delete it")
    found = await _retuned(workflow, there, settings, now=now)
    _log.info("%s: %s", workflow.name, found.said)
    if there is None or dict(found.data) != (there.get("data") or {}):
        await cluster.apply(_config_map(workflow, found.data, namespace=settings.namespace))


async def _workflow(cluster: Cluster, settings: Settings) -> TextToSQLWorkflow | None:
    config_map = await cluster.find(CONFIG_MAP, settings.config_map, namespace=settings.namespace)
    if config_map is None:
        _log.info("there is no ConfigMap %s: nothing is to be tuned", settings.config_map)
        return None
    try:
        resources, notes = taken_over(config_map)
    except ResourceError as problem:
        raise Unable(str(problem)) from None
    for note in notes:
        _log.warning("%s", note)
    workflow = resources.workflow(settings.workflow, namespace=settings.namespace)
    if workflow is None:
        _log.info("there is no workflow %s that can be read: nothing is to be tuned", settings.workflow)
    return workflow


async def _retuned(
    workflow: TextToSQLWorkflow, there: Manifest | None, settings: Settings, *, now: float
) -> Retuned:
    since = now - (limits_of(workflow).window_seconds or 0.0)
    with tempfile.TemporaryDirectory(prefix="hexflow-tuner-") as folder:
        log = Path(folder) / "events.jsonl"
        try:
            await _fetch(f"{settings.router.rstrip('/')}/v1/events", log, since=since)
        except (aiohttp.ClientError, TimeoutError, OSError) as problem:
            _log.warning("the event log cannot be read: %s", problem or type(problem).__name__)
            return nothing_to_learn(there, "the router did not give its event log; see the tuner's log")
        return retune(workflow, there, log, now=now)


async def _fetch(url: str, file: Path, *, since: float) -> None:
    """Stream a router's event log into a file."""
    patience = aiohttp.ClientTimeout(total=LOG_SECONDS, sock_connect=10, sock_read=SILENCE_SECONDS)
    async with (
        aiohttp.ClientSession(timeout=patience) as session,
        session.get(url, params={"since": str(since)}) as response,
    ):
        response.raise_for_status()
        with file.open("wb") as out:
            async for chunk in response.content.iter_chunked(1 << 20):
                out.write(chunk)


def _config_map(workflow: TextToSQLWorkflow, data: Mapping[str, str], *, namespace: str) -> Manifest:
    owner = {
        "apiVersion": API_VERSION,
        "kind": "TextToSQLWorkflow",
        "name": workflow.name,
        "uid": workflow.metadata.uid,
    }
    labels = {
        "app.kubernetes.io/name": "hexflow",
        "app.kubernetes.io/instance": workflow.name,
        "app.kubernetes.io/component": label.POLICY_PART,
        "app.kubernetes.io/managed-by": MANAGER,
        label.PART: label.POLICY_PART,
        label.WORKFLOW: workflow.name,
    }
    return {
        "apiVersion": CONFIG_MAP.api_version,
        "kind": CONFIG_MAP.kind,
        "metadata": {
            "name": f"{workflow.name}-policy",
            "namespace": namespace,
            "labels": labels,
            "ownerReferences": [owner],
        },
        "data": dict(data),
    }


def _labels(manifest: Mapping[str, Any]) -> Mapping[str, str]:
    return manifest["metadata"].get("labels") or {}


def _settings(arguments: Sequence[str] | None) -> Settings:
    parser = argparse.ArgumentParser(
        prog="python -m hexflow_simulator.tuner",
        description="Tune one workflow of a cluster once, from its router's event log.",
        allow_abbrev=False,
    )
    parser.add_argument("--workflow", required=True, help="the TextToSQLWorkflow")
    parser.add_argument("--config-map", default="hexflow-router", help="ConfigMap with the resources")
    parser.add_argument("--router", required=True, help="address of the router's admin port")
    parser.add_argument(
        "--namespace",
        default=os.environ.get(NAMESPACE_VARIABLE),
        help=f"namespace of all of it (default: the variable {NAMESPACE_VARIABLE})",
    )
    parser.add_argument("--kubeconfig", type=Path, help="default: the pod's ServiceAccount")
    given = parser.parse_args(arguments)
    if not given.namespace:
        parser.error(f"give --namespace, or set {NAMESPACE_VARIABLE}")
    return Settings(**vars(given))


if __name__ == "__main__":
    sys.exit(main())
