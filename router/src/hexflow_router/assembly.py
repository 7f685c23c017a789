"""The router put together: every part made once, in order, and taken apart in reverse.

``main.py`` runs one as a process; tests run one in-process with a transport, clocks and ids of their own.
"""

import asyncio
import contextlib
import logging
import time
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp

from hexflow_router.app import Doors, create_app
from hexflow_router.catalogue import Catalogue, catalogue_of
from hexflow_router.configuration import Configuration
from hexflow_router.configwatch import ConfigurationWatch
from hexflow_router.databases import Databases
from hexflow_router.debug import Insight, create_admin_app
from hexflow_router.discovery import Discovery
from hexflow_router.driver import Driver
from hexflow_router.eventlog import EventLog
from hexflow_router.gauges import measure
from hexflow_router.health import Readiness, readiness
from hexflow_router.journal import Journal
from hexflow_router.learned import LearnedFile
from hexflow_router.metrics import Metrics
from hexflow_router.openai import OpenAIDoor
from hexflow_router.origin import origin_of
from hexflow_router.pipeline import Pipeline
from hexflow_router.queries import Queries, QueryRules
from hexflow_router.recent import RecentQuestions
from hexflow_router.report import report_of
from hexflow_router.settings import Settings
from hexflow_router.succession import Succession
from hexflow_router.upstream import HttpUpstream, TimeOuts, Upstream
from hexflow_scheduler import InstanceState, TimeScale
from hexflow_sql.limits import Limits

_log = logging.getLogger("hexflow.router")

STATEMENT_SECONDS = 10.0
"""Longest run of one statement, in real seconds."""


def new_id() -> str:
    """Return an id that no other query or call has."""
    return uuid.uuid4().hex


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Hold what tests put in the place of the world."""

    wall_clock: Callable[[], float] = time.time
    new_id: Callable[[], str] = new_id
    upstream: Callable[[ConfigurationWatch], Upstream] | None = None
    """Make the way to the engines; None: HTTP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Router:
    """Hold a router that runs."""

    app: ASGIApp
    """The tenants' port."""
    admin_app: ASGIApp
    watch: ConfigurationWatch
    queries: Queries
    driver: Driver
    discovery: Discovery
    metrics: Metrics
    succession: Succession

    async def drain(self, grace_seconds: float) -> None:
        """Take nothing new and let what runs finish, for at most ``grace_seconds`` (real)."""
        self.queries.draining = True
        loop = asyncio.get_running_loop()
        until = loop.time() + grace_seconds
        await self.queries.drain(grace_seconds)
        while self.driver.outstanding and loop.time() < until:  # noqa: ASYNC110 - bounded by the grace period
            await asyncio.sleep(0.05)
        # What is left ends with a reason of its own before its connection is closed.
        await self.driver.close()


@asynccontextmanager
async def running_router(
    settings: Settings, surroundings: Surroundings | None = None
) -> AsyncIterator[Router]:
    """Run a router for the length of the block. Raises ResourceError, JournalError and EventLogError before it starts."""
    world = surroundings or Surroundings()
    scale = TimeScale(settings.time_scale, world.wall_clock())

    def clock() -> float:
        return scale.emulated(world.wall_clock())

    metrics = Metrics()
    async with AsyncExitStack() as stack:
        origin = await origin_of(settings, stack)
        watch = origin.watch
        await origin.begin()
        journal = await Journal.open(settings.journal)
        stack.push_async_callback(journal.close)
        event_log = EventLog(settings.event_log, metrics=metrics)
        stack.callback(event_log.close)
        placements: deque[str] = deque(maxlen=200)

        def sink(line: str) -> None:
            event_log.write(line)
            placements.append(line)

        learned = LearnedFile(settings.estimates_file)
        known = await asyncio.to_thread(learned.restore)
        succession = Succession(watch.current, sink, book=origin.book, estimates=known)
        stack.callback(succession.close)

        async def save() -> None:
            await learned.save(succession.kernel.estimates)

        stack.push_async_callback(save)
        upstream = (
            world.upstream(watch)
            if world.upstream
            else HttpUpstream(connect_seconds=settings.connect_seconds)
        )
        driver = Driver(
            succession.kernel,
            upstream=upstream,
            clock=clock,
            real_seconds=scale.real_seconds,
            time_outs=TimeOuts(
                first_byte_seconds=settings.first_byte_seconds,
                idle_seconds=settings.idle_seconds,
                total_seconds=settings.call_seconds,
            ),
            metrics=metrics,
        )
        stack.push_async_callback(driver.close)
        databases = Databases()
        stack.push_async_callback(databases.close)
        discovery = Discovery(driver, instances_file=settings.instances)
        pipeline = Pipeline(
            release=driver.release,
            databases=databases,
            metrics=metrics,
            clock=clock,
            scale=scale,
            stage_seconds=lambda *which: succession.kernel.stage_seconds(*which),
            query_ended=lambda query_id, answered: driver.query_ended(query_id, answered=answered),
            new_id=world.new_id,
            limits=Limits(seconds=scale.emulated_seconds(STATEMENT_SECONDS), rows=settings.max_rows),
        )
        queries = Queries(
            work=pipeline.run,
            admits=lambda call: succession.kernel.admits(clock(), call),
            journal=journal,
            metrics=metrics,
            rules=QueryRules(
                hard_cap_factor=settings.hard_cap_factor,
                max_running=settings.max_running_queries,
                kept=settings.kept_queries,
            ),
            clock=clock,
            wall_clock=world.wall_clock,
            scale=scale,
            new_id=world.new_id,
        )
        if interrupted := await queries.recover():
            _log.warning("%d async queries of an earlier process ended as Interrupted.", interrupted)

        recent = RecentQuestions()
        queries.on_ended = recent.note
        catalogue = [Catalogue()]

        def configure(configuration: Configuration) -> None:
            catalogue[0] = catalogue_of(configuration)
            if isinstance(upstream, HttpUpstream):
                upstream.trust(configuration.fleet.trust)
            discovery.configure(configuration.fleet.pools, origin.configure(configuration))
            databases.configure(configuration)
            succession.configure(configuration, driver)
            metrics.count("hexflow_configuration_loads_total", "Applied")

        watch.subscribe(configure)
        watch.on_refused = lambda: metrics.count("hexflow_configuration_loads_total", "Refused")

        origin.on_pods = discovery.list_instances
        origin.on_tuned = lambda: succession.tuned(driver)

        def ready(with_instances: bool) -> Readiness:
            instances = driver.instances()
            return readiness(
                ready_instances=[
                    instance.instance_id for instance in instances if instance.state is InstanceState.READY
                ],
                known_instances=len(instances),
                watch=watch,
                policy=succession.policy,
                named_policy=succession.named_policy,
                draining=queries.draining,
                listed=origin.listed,
                problems=(*origin.book.problems, *origin.troubles),
                without_instances=not with_instances,
            )

        def exposition() -> bytes:
            metrics.set("hexflow_configuration_valid", 1 if watch.error is None else 0)
            measure(metrics, driver=driver, discovery=discovery)
            for what, age in origin.ages().items():
                metrics.set("hexflow_namespace_listed_age_seconds", age, what)
            return metrics.exposition()

        doors = Doors(
            settings=settings,
            watch=watch,
            queries=queries,
            metrics=metrics,
            readiness=ready,
            policy=lambda: succession.policy,
            openai=OpenAIDoor(
                driver,
                catalogue=lambda: catalogue[0],
                limits=queries.limits,
                largest_body=settings.max_body_bytes,
            ),
        )
        insight = Insight(
            view=lambda: succession.kernel.view(),
            readiness=ready,
            exposition=exposition,
            now=clock,
            event_log=event_log.read,
            queries=queries.running,
            placements=lambda: tuple(placements),
            servers=lambda: [watched.state() for watched in discovery.watches()],
            report=lambda: report_of(
                watch.current,
                discovery.watches(),
                recent,
                parameters=succession.in_force(),
                now=clock(),
            ),
        )
        stack.push_async_callback(_stop, _spawn(discovery.run(), "discovery"))
        stack.push_async_callback(_stop, _spawn(watch.run(), "configuration"))
        stack.push_async_callback(_stop, _spawn(origin.run(), "origin"))
        keeping = learned.keep(lambda: succession.kernel.estimates)
        stack.push_async_callback(_stop, _spawn(keeping, "learned"))
        renewing = succession.renew(driver, idle=lambda: not queries.running())
        stack.push_async_callback(_stop, _spawn(renewing, "event log"))
        yield Router(
            app=create_app(doors),
            admin_app=create_admin_app(insight),
            watch=watch,
            queries=queries,
            driver=driver,
            discovery=discovery,
            metrics=metrics,
            succession=succession,
        )
        await queries.drain(0.0)


def _spawn(work: Coroutine[Any, Any, None], name: str) -> "asyncio.Task[None]":
    task = asyncio.get_running_loop().create_task(work, name=name)
    task.add_done_callback(_complain)
    return task


def _complain(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (problem := task.exception()) is not None:
        _log.critical("The task %r died by a defect.", task.get_name(), exc_info=problem)


async def _stop(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await task
