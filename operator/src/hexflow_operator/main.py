"""The operator as a process: it waits for its kinds, then for its turn to lead, and acts until it is told to end.

SIGTERM and SIGINT end it in order, and hand the Lease over. A lost Lease or a watch that cannot go on ends it with
status 1: whoever started it starts it anew, with nothing remembered that may be wrong.
"""

import asyncio
import logging
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, Final

from hexflow_cluster import (
    NO_RETRIES,
    Access,
    Cluster,
    ClusterError,
    Connection,
    Leadership,
    LeadershipLost,
    Leases,
    LeaseTimes,
    connect,
)
from hexflow_cluster.connection import SERVICE_ACCOUNT
from hexflow_operator.assembly import Term
from hexflow_operator.health import Health, serve
from hexflow_operator.metrics import Metrics
from hexflow_operator.observed import Key
from hexflow_operator.observer import KINDS
from hexflow_operator.settings import Settings, SettingsError
from hexflow_operator.workqueue import WorkQueue

_log = logging.getLogger("hexflow.operator")

ENDED: Final = 1
"""Exit status of an operator that could not go on and wants to be started anew."""
CANNOT_START: Final = 2
"""Exit status of an operator that was started wrongly."""
KINDS_SECONDS: Final = 5.0


class StartError(RuntimeError):
    """The operator cannot start; the text says what to do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run an operator until a signal ends it; return the exit status."""
    try:
        settings = Settings.from_arguments(sys.argv[1:] if arguments is None else arguments)
        logging.basicConfig(
            level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr
        )
        logging.getLogger("hexflow").setLevel(settings.log_level.upper())
        asyncio.run(_run(settings))
    except (SettingsError, StartError) as problem:
        sys.stderr.write(f"hexflow operator cannot start: {problem}\n")
        return CANNOT_START
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        # Logged once, here; whatever it was, a new process is what helps.
        unforeseen = not isinstance(error, LeadershipLost | ClusterError)
        _log.error("the operator ends: %s", error or type(error).__name__, exc_info=unforeseen)
        return ENDED
    return 0


async def _run(settings: Settings) -> None:
    try:
        connection = await connect(access(settings))
    except ClusterError as error:
        raise StartError(f"{error}; name a kubeconfig with --kubeconfig") from None
    try:
        await _serve(settings, connection)
    finally:
        await connection.close()


async def _serve(settings: Settings, connection: Connection) -> None:
    identity = settings.identity or f"{socket.gethostname()}-{secrets.token_hex(4)}"
    times = LeaseTimes(duration_seconds=settings.lease_seconds)
    plain = Cluster(
        connection, retries=NO_RETRIES, read_seconds=times.renew_seconds, write_seconds=times.renew_seconds
    )
    leadership = Leadership(
        Leases(plain, namespace=_lease_namespace(settings), name=settings.lease_name),
        identity=identity,
        clock=_time_that_goes_on,
        wall=time.time,
        times=times,
    )
    metrics, queue = Metrics(), WorkQueue[Key]()
    health = Health(longest_reconcile_seconds=queue.longest_active_seconds)
    term = Term(
        settings, connection, leadership, metrics=metrics, health=health, queue=queue, identity=identity
    )

    def measure() -> None:
        metrics.set("hexflow_operator_queue_length", len(queue))
        metrics.set("hexflow_operator_longest_reconcile_seconds", queue.longest_active_seconds())
        metrics.set("hexflow_operator_watch_event_age_seconds", time.monotonic() - term.feed.told_at)
        metrics.set("hexflow_operator_objects", len(term.cache))
        metrics.set("hexflow_operator_leading", leadership.leads)

    try:
        probes = await serve(health, metrics, host=settings.host, port=settings.port, measure=measure)
    except OSError as error:
        raise StartError(
            f"port {settings.port} of {settings.host} cannot be listened on ({error.strerror}): choose another"
            " with --port (0 takes a free one)"
        ) from None
    keeping_time = asyncio.create_task(health.keep_time())
    try:
        stop = _stop_on_signals()
        if await _unless(stop, _await_kinds(plain, health)) and await _unless(stop, leadership.acquire()):
            await term.run(stop)
    finally:
        keeping_time.cancel()
        await leadership.release()
        await probes.cleanup()


async def _await_kinds(cluster: Cluster, health: Health) -> None:
    """Return once the API server has our kinds."""
    told = False
    while True:
        try:
            missing = [kind.kind for kind in KINDS.values() if not await cluster.knows(kind)]
            health.reached = True
            if not missing:
                return
            if not told:
                _log.warning("waiting for the CustomResourceDefinitions of %s", " and ".join(missing))
                told = True
        except ClusterError as error:
            _log.warning("the API server cannot be reached: %s", error)
        await asyncio.sleep(KINDS_SECONDS)


def access(settings: Settings) -> Access:
    """Return the way to the API server that the settings, the pod or the environment name."""
    if settings.kubeconfig is None and (SERVICE_ACCOUNT / "token").exists():
        return Access(user_agent="hexflow-operator")
    usual = os.environ.get("KUBECONFIG") or "~/.kube/config"
    path = settings.kubeconfig or Path(usual).expanduser()
    return Access(kubeconfig=path, context=settings.context, user_agent="hexflow-operator")


def _lease_namespace(settings: Settings) -> str:
    if settings.lease_namespace:
        return settings.lease_namespace
    try:
        return (SERVICE_ACCOUNT / "namespace").read_text(encoding="utf-8").strip()
    except OSError:
        return "default"


def _time_that_goes_on() -> float:
    """Return seconds that pass while the process is stopped and while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _stop_on_signals() -> asyncio.Event:
    """Return an event that the first signal sets. (Once kopf runs, the signals are its own, and end it likewise.)"""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Wait for some work, or for the signal to stop; tell whether the work was done."""
    doing, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((doing, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            return False
        await doing
        return True
    finally:
        for task in (doing, stopping):
            task.cancel()
        await asyncio.gather(doing, stopping, return_exceptions=True)
