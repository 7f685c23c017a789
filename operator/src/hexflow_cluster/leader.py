"""Who of several processes acts: a Lease that one holds and renews, and the end when it is lost.

A leader that was frozen (SIGSTOP, a stalled node) does not know it. So every write asks `Leadership.confirm` first:
within ``trusted_seconds`` of the last renewal that costs nothing, after them the Lease is renewed before the write, or
the write is refused. The others wait longer than that plus the longest a write takes, so no two ever write at once.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hexflow_cluster.errors import ClusterError, Conflict
from hexflow_cluster.lease import LeaseRecord

_log = logging.getLogger("hexflow.cluster.leader")


class LeadershipLost(Exception):
    """Another process leads, or may lead, by now: nothing may be written any more."""


class Leases(Protocol):
    """Where the record is kept."""

    async def read(self) -> LeaseRecord | None:
        """Return what the Lease says, or None where there is none."""

    async def write(self, record: LeaseRecord) -> LeaseRecord:
        """Write over the version that the record was made from. Raises Conflict where somebody else was faster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTimes:
    """Hold the times of leading, all from one: ``trusted`` and the longest that a write takes end before it does."""

    duration_seconds: int = 30
    """Others take over when the Lease has not changed for so long."""

    @property
    def renew_seconds(self) -> float:
        """From one renewal to the next."""
        return self.duration_seconds / 6

    @property
    def trusted_seconds(self) -> float:
        """After the last renewal; then a write looks first, and without a renewal leading is over."""
        return self.duration_seconds / 2

    @property
    def write_seconds(self) -> float:
        """The longest that one try of a write may take."""
        return self.duration_seconds / 3

    @property
    def retry_seconds(self) -> float:
        """Between tries to renew, and to take over."""
        return self.duration_seconds / 15


class Leadership:
    """Become the leader, stay it, and say so before each write.

    ``clock`` must go on while the process is stopped (CLOCK_BOOTTIME); ``wall`` is seconds since the epoch, written
    for people to read.
    """

    def __init__(
        self,
        leases: Leases,
        *,
        identity: str,
        clock: Callable[[], float],
        wall: Callable[[], float],
        times: LeaseTimes | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._leases, self._identity = leases, identity
        self._clock, self._wall, self._chance = clock, wall, chance
        self.times = times or LeaseTimes()
        self._record: LeaseRecord | None = None
        self._renewed_at: float | None = None
        self._renewing = asyncio.Lock()

    @property
    def leads(self) -> bool:
        """Whether this process holds the Lease, as far as it knows without asking."""
        return self._renewed_at is not None

    async def acquire(self) -> None:
        """Return once this process leads."""
        seen: LeaseRecord | None = None
        seen_at = self._clock()
        while True:
            try:
                now = self._clock()
                record = await self._leases.read()
                if record != seen:
                    seen, seen_at = record, self._clock()
                    if record and record.holder not in ("", self._identity):
                        _log.info("%s leads; waiting", record.holder)
                stale = seen is not None and self._clock() - seen_at > seen.duration_seconds
                if seen is None or seen.holder in ("", self._identity) or stale:
                    await self._write(seen or LeaseRecord(holder="", duration_seconds=1), at=now)
                    _log.info("leading as %s", self._identity)
                    return
            except Conflict:
                _log.info("another process was faster to take the lease")
            except ClusterError as error:
                _log.warning("the lease cannot be read or written: %s", error)
            await asyncio.sleep(self.times.retry_seconds * (0.75 + self._chance() / 2))

    async def hold(self) -> None:
        """Renew for ever. Raises LeadershipLost when that has not succeeded for ``trusted_seconds``."""
        pause = self.times.renew_seconds
        while True:
            await asyncio.sleep(pause)
            try:
                await self._renew()
                pause = self.times.renew_seconds
            except ClusterError as error:
                _log.warning("the lease could not be renewed: %s", error)
                if self._age() > self.times.trusted_seconds:
                    self._renewed_at = None
                    raise LeadershipLost(f"the lease could not be renewed in time: {error}") from error
                pause = self.times.retry_seconds

    async def confirm(self) -> None:
        """Return if a write may be made now. Raises LeadershipLost."""
        if self._age() <= self.times.trusted_seconds:
            return
        try:
            await self._renew()
        except ClusterError as error:
            raise LeadershipLost(f"the lease could not be looked at before a write: {error}") from error

    async def release(self) -> None:
        """Give the Lease up, so that another process need not wait for it to end."""
        async with self._renewing:
            if self._record is None or not self.leads:
                return
            self._renewed_at = None
            try:
                free = self._record.held_by("", at=self._wall(), duration_seconds=1)
                await self._leases.write(free)
            except ClusterError as error:
                _log.info("the lease was not given up, it will end by itself: %s", error)

    async def _renew(self) -> None:
        async with self._renewing:
            if self._record is None or self._renewed_at is None:
                raise LeadershipLost("this process does not lead")
            if self._age() < self.times.renew_seconds / 2:
                return  # somebody renewed it while we waited for our turn
            now = self._clock()
            try:
                await self._write(self._record, at=now)
            except Conflict:
                # It changed since our last renewal: by another process, or by a try of ours whose answer was lost.
                record = await self._leases.read()
                if record is None or record.holder != self._identity:
                    self._renewed_at = None
                    who = record.holder if record and record.holder else "nobody"
                    raise LeadershipLost(f"{who} holds the lease") from None
                await self._write(record, at=now)

    async def _write(self, record: LeaseRecord, *, at: float) -> None:
        mine = record.held_by(self._identity, at=self._wall(), duration_seconds=self.times.duration_seconds)
        self._record = await self._leases.write(mine)
        self._renewed_at = at  # when it was sent: what the answer took does not count for us

    def _age(self) -> float:
        return float("inf") if self._renewed_at is None else self._clock() - self._renewed_at
