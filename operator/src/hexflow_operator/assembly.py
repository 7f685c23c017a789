"""The parts of the operator put together: what runs while this process leads."""

import asyncio
import logging
import random
import time
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final

import aiohttp

from hexflow_cluster import Cluster, ClusterError, Connection, Kind, Leadership, LeadershipLost, TokenBucket
from hexflow_operator.cache import Cache
from hexflow_operator.children.metadata import MANAGER
from hexflow_operator.controller import Watched, watch
from hexflow_operator.feed import Feed
from hexflow_operator.health import Health
from hexflow_operator.metrics import Metrics
from hexflow_operator.observed import PART_LABEL, Key
from hexflow_operator.observer import KINDS, POD, Observer
from hexflow_operator.plan import CHILD_KINDS, plan
from hexflow_operator.reconcile import Incomplete, Reconciler
from hexflow_operator.reports import Fetch, Reports
from hexflow_operator.resync import Resync
from hexflow_operator.settings import Settings
from hexflow_operator.wake import all_of
from hexflow_operator.workqueue import WorkQueue

_log = logging.getLogger("hexflow.operator")

RECONCILE_SECONDS: Final = 120.0
"""A look that takes longer is ended and tried again."""
REPORT_SECONDS: Final = 5.0
SETTLE_SECONDS: Final = 2.0
"""From a watch that began anew to the comparison: the others of a restarted API server begin anew as well."""


def watched_kinds() -> tuple[Watched, ...]:
    """Return what is watched: our resources, and of everything else only what carries our label."""
    ours = [Watched(kind=kind) for kind in KINDS.values()]
    labelled = [*(Kind(*each) for each in CHILD_KINDS), POD]
    return (*ours, *(Watched(kind=kind, labels=PART_LABEL) for kind in labelled))


class Term:
    """Hold what one term of leading is made of; it begins with an empty cache and ends with the process."""

    def __init__(
        self,
        settings: Settings,
        connection: Connection,
        leadership: Leadership,
        *,
        metrics: Metrics,
        health: Health,
        queue: WorkQueue[Key],
        identity: str,
    ) -> None:
        self._settings, self._connection, self._leadership = settings, connection, leadership
        self._metrics, self._health, self._queue, self._identity = metrics, health, queue, identity
        rate = settings.writes_per_second
        self._cluster = Cluster(
            connection,
            field_manager=MANAGER,
            writes=TokenBucket(rate=rate, burst=max(1, round(2 * rate))),
            guard=leadership.confirm,
            write_seconds=leadership.times.write_seconds,
        )
        self._relisted = asyncio.Event()
        self.cache = Cache()
        self.feed = Feed(
            self.cache, wake=queue.add, edited=queue.pardon, relisted=self._relisted.set, clock=time.monotonic
        )
        self._watched = watched_kinds()
        self._resync = Resync(
            self._cluster,
            self.cache,
            self.feed,
            kinds=[(each.kind, each.labels) for each in self._watched],
            namespaces=settings.namespaces,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Act until ``stop`` is set or a signal comes. Raises LeadershipLost, and whatever ends a watch for good."""
        settings = self._settings
        async with aiohttp.ClientSession() as session:
            reports = Reports(
                _fetch(session, settings.router_url, self._metrics),
                namespaces=self.cache.namespaces,
                changed=self._wake_namespace,
                now=time.time,
                every_seconds=settings.report_seconds,
            )
            observer = Observer(self._cluster, self.cache, self.feed, self._resync, reports=reports.said)
            reconciler = Reconciler(
                self._cluster,
                self.cache,
                self.feed,
                observer,
                plan=plan,
                defaults=settings.defaults,
                wake=self._queue.add,
                now=time.time,
                instance=self._identity,
                wrote=lambda verb, kind: self._metrics.count("hexflow_operator_writes_total", kind, verb),
            )
            beside = [
                self._leadership.hold(),
                *(self._queue.work(lambda key: self._look(reconciler, key)) for _ in range(settings.workers)),
                self._compare(),
                *([reports.run()] if settings.router_url else []),
            ]
            watching = watch(
                self.feed, self._connection, self._watched, namespaces=settings.namespaces, stop=stop
            )
            await _until_done(watching, beside)

    async def _look(self, reconciler: Reconciler, key: Key) -> None:
        began = time.monotonic()
        outcome = "Failed"
        try:
            async with asyncio.timeout(RECONCILE_SECONDS):
                result = await reconciler.reconcile(key)
        except Incomplete as refusal:
            outcome = "Refused"
            _log.warning("%s %s/%s: refused, tried again in %.0f s: %s", *key, self._queue.fail(key), refusal)
        except LeadershipLost as error:
            outcome = "NotLeading"
            self._queue.fail(key)
            _log.warning("%s %s/%s: nothing was written: %s", *key, error)
        except (ClusterError, TimeoutError) as error:
            pause = self._queue.fail(key)
            _log.warning("%s %s/%s: tried again in %.1f s: %s", *key, pause, error or "it took too long")
        except Exception:
            # A mistake of ours over one object must not keep the others waiting.
            _log.exception("%s %s/%s: tried again in %.1f s", *key, self._queue.fail(key))
        else:
            outcome = "Done"
            self._queue.finish(key, again_after=result.again_after)
            if result.gone:
                self._queue.forget(key)
        self._metrics.count("hexflow_operator_reconciles_total", key.kind, outcome)
        self._metrics.observe("hexflow_operator_reconcile_seconds", time.monotonic() - began, key.kind)

    async def _compare(self) -> None:
        """Compare everything with the API server for ever: regularly, and soon after a watch began anew."""
        while True:
            regular = self._settings.resync_seconds * random.uniform(0.9, 1.1)  # noqa: S311
            try:
                async with asyncio.timeout(regular):
                    await self._relisted.wait()
            except TimeoutError:
                after_outage = False
            else:
                after_outage = True
                await asyncio.sleep(SETTLE_SECONDS)
            self._relisted.clear()
            try:
                missed = await self._resync.run()
            except ClusterError as error:
                _log.warning("the comparison with the API server was not finished: %s", error)
                continue
            for kind, count in missed.items():
                self._metrics.count("hexflow_operator_missed_changes_total", kind, by=count)
            if not after_outage:
                self._health.missed_in_a_row = self._health.missed_in_a_row + 1 if missed else 0
                for key in self.cache.all_keys():
                    self._queue.add(key)

    def _wake_namespace(self, namespace: str) -> None:
        for key in all_of(namespace, self.cache.pools(namespace), self.cache.workflows(namespace)):
            self._queue.add(key)


async def _until_done(main: Coroutine[Any, Any, None], beside: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run ``main`` with others beside it, which are cancelled after it; the first error of any ends all."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in beside]
            await main
            for task in tasks:
                task.cancel()
    except BaseExceptionGroup as errors:
        raise _first(errors) from None


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _fetch(session: aiohttp.ClientSession, url: str, metrics: Metrics) -> Fetch:
    patience = aiohttp.ClientTimeout(total=REPORT_SECONDS)

    async def fetch(namespace: str) -> Mapping[str, Any]:
        outcome = "Silent"
        try:
            where = f"{url.format(namespace=namespace)}/v1/report"
            async with session.get(where, timeout=patience) as response:
                response.raise_for_status()
                content = await response.json()
            if not isinstance(content, Mapping):
                raise ValueError("a report is an object")
            outcome = "Answered"
            return content
        except aiohttp.ClientError as error:
            raise OSError(str(error)) from error
        finally:
            metrics.count("hexflow_operator_router_reports_total", outcome)

    return fetch
