"""Which instances there are and what may be asked of them: found, looked at about once a second, told to the driver.

Instances come from the ``endpoints:`` of pools and from whoever started the others: a file on a laptop, the pods of
the namespace in a cluster. One takes calls only while it answers, lists the pool's model, has a closed breaker, and
nobody holds it back. A server that was restarted is another instance: it has another identity, since nothing of what
ran on it is left.
"""

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from hexflow_router.breaker import BreakerRule
from hexflow_router.driver import Driver
from hexflow_router.filewatch import looks
from hexflow_router.fleet import PoolSetup
from hexflow_router.upstream import Address
from hexflow_router.watch import Hold, ProbeRule, Watch

_log = logging.getLogger("hexflow.router.discovery")


_ADDRESS = r"^https?://(\[[\da-fA-F:.]+\]|[^\s/?#@:\[\]]+)(:\d{1,5})?(/\S*)?\Z"


def endpoint_id(pool: str, url: str) -> str:
    """Return the identity of a server that a pool lists: the same for one address, which it does not show."""
    return f"{pool}-{hashlib.sha256(url.encode()).hexdigest()[:6]}"


class Listed(msgspec.Struct, frozen=True):
    """Name one instance that somebody else started."""

    id: Annotated[str, msgspec.Meta(pattern=r"^[\w.:-]{1,253}\Z")]
    pool: str
    url: Annotated[str, msgspec.Meta(pattern=_ADDRESS)]
    gpu_type: str | None = None
    """What it runs on; None: what the pool says."""
    hold: Hold | None = None
    """Why it is to get no calls, however well it answers."""


class _File(msgspec.Struct, frozen=True):
    instances: tuple[Listed, ...]


@dataclass(frozen=True, slots=True)
class InstancesFile:
    """A JSON file ``{"instances": [{"id": …, "pool": …, "url": …}]}`` that changes as instances come and go."""

    path: Path

    def read(self) -> tuple[Listed, ...]:
        """Return what the file lists; nothing while it does not exist. Raises ValueError when it cannot be used."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return ()
        try:
            listed = msgspec.json.decode(content, type=_File).instances
        except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
            raise ValueError(f"{self.path.name} is not a list of instances: {problem}") from None
        if len({entry.id for entry in listed}) < len(listed):
            raise ValueError(f"{self.path.name} lists an id twice")
        return listed

    async def changes(self) -> AsyncIterator[None]:
        """Yield at once, at every change, and every few seconds in any case."""
        yield
        async for _ in looks(lambda: (self.path.parent,), name=self.path.name, debounce_seconds=0.05):
            yield


class Discovery:
    """Keep the driver's instances as they really are."""

    def __init__(
        self,
        driver: Driver,
        *,
        instances_file: Path | None = None,
        probe_rule: ProbeRule | None = None,
        breaker_rule: BreakerRule | None = None,
        monotonic: Callable[[], float] | None = None,
    ) -> None:
        """Take ``monotonic`` (real seconds) from the loop where none is given."""
        self._driver = driver
        self._file = InstancesFile(instances_file) if instances_file else None
        self._probe_rule = probe_rule or ProbeRule()
        self._breaker_rule = breaker_rule
        self._monotonic = monotonic or (lambda: asyncio.get_running_loop().time())
        self._pools: dict[str, PoolSetup] = {}
        self._listed: tuple[Listed, ...] = ()
        self._watches: dict[str, Watch] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._running = False
        driver.accounts.health = self

    # What there is

    def configure(self, pools: Sequence[PoolSetup], listed: Sequence[Listed] | None = None) -> None:
        """Replace the pools, and with them the instances listed. Instances of a pool that is gone are gone."""
        self._pools = {pool.name: pool for pool in pools}
        if listed is not None:
            self._listed = tuple(listed)
        self._settle()

    def list_instances(self, listed: Sequence[Listed]) -> None:
        """Replace the instances that somebody else started."""
        self._listed = tuple(listed)
        self._settle()

    def watches(self) -> list[Watch]:
        """Return every instance under watch, for ``/debug/scheduler``."""
        return list(self._watches.values())

    async def run(self) -> None:
        """Watch until cancelled."""
        self._running = True
        try:
            self._settle()
            if self._file is None:
                await asyncio.Event().wait()
            else:
                await self._follow(self._file)
        finally:
            self._running = False
            tasks = list(self._tasks.values())
            self._tasks.clear()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def look(self) -> None:
        """Look once at every instance now."""
        await asyncio.gather(*(watch.look() for watch in list(self._watches.values())))

    async def _follow(self, file: InstancesFile) -> None:
        complaint = ""
        async for _ in file.changes():
            try:
                listed = file.read()
            except (ValueError, OSError) as problem:
                if str(problem) != complaint:
                    _log.warning("the last good list of instances is kept: %s", problem)
                complaint = str(problem)
                continue
            complaint = ""
            if listed != self._listed:
                try:
                    self.list_instances(listed)
                except Exception:  # the next list is followed all the same
                    _log.exception("The list of instances could not be put in force, by a defect.")

    def _wanted(self) -> dict[str, tuple[PoolSetup, Address, Hold | None]]:
        wanted: dict[str, tuple[PoolSetup, Address, Hold | None]] = {}
        for pool in self._pools.values():
            for endpoint in pool.endpoints:
                wanted[endpoint_id(pool.name, endpoint.url)] = (pool, endpoint, None)
        for entry in self._listed:
            listed_pool = self._pools.get(entry.pool)
            if listed_pool is not None and (entry.hold or not listed_pool.suspended):
                url = entry.url.rstrip("/").removesuffix("/v1")
                wanted[entry.id] = (listed_pool.on(entry.gpu_type), Address(url=url), entry.hold)
        return wanted

    def _settle(self) -> None:
        wanted = self._wanted()
        for name in [name for name in self._watches if name not in wanted]:
            self._drop(name)
        for name, (pool, address, hold) in wanted.items():
            known = self._watches.get(name)
            if known is not None and known.address == address and known.pool.name == pool.name:
                known.configure(pool, hold=hold)
                continue
            if known is not None:
                self._drop(name)
            self._watches[name] = Watch(
                name,
                pool=pool,
                address=address,
                hold=hold,
                driver=self._driver,
                rule=self._probe_rule,
                breaker_rule=self._breaker_rule,
                monotonic=self._monotonic,
            )
        if self._running:
            for name, watch in self._watches.items():
                if name not in self._tasks:
                    self._tasks[name] = asyncio.get_running_loop().create_task(watch.run())

    def _drop(self, name: str) -> None:
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()
        self._watches.pop(name).gone()

    # What the driver reports

    def answered(self, instance_id: str) -> None:
        """Note an answer; see ``Health``."""
        watch = self._by_instance(instance_id)
        if watch is not None:
            watch.answered()

    def failed(self, instance_id: str, reason: str) -> None:
        """Note a failure; see ``Health``."""
        watch = self._by_instance(instance_id)
        if watch is not None:
            watch.failed(reason)

    def refused_priority(self, instance_id: str) -> None:
        """Send an engine no ``priority`` any more; see ``Health``."""
        watch = self._by_instance(instance_id)
        if watch is not None:
            watch.refused_priority()

    def _by_instance(self, instance_id: str) -> Watch | None:
        return next((watch for watch in self._watches.values() if watch.instance_id == instance_id), None)
