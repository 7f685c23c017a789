"""The emulated instances that run on this machine: started, restarted when they die, written down for the router.

A restarted instance is another instance (its caches are cold), so it gets another id, as a pod would. Each seat
is kept by one task; the backoff between restarts grows as a kubelet's does.
"""

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from time import monotonic

from hexflow_cli.plan import Seat
from hexflow_cli.port import free_port
from hexflow_cli.process import Child, Supervisor

EMULATOR = "hexflow_emulator"
_FIRST_BACKOFF_SECONDS = 0.5
_LONGEST_BACKOFF_SECONDS = 10.0
_STEADY_SECONDS = 10.0
"""An instance that lived this long has started well: its next restart is quick again."""


@dataclass(slots=True)
class _Occupant:
    arguments: tuple[str, ...]
    keeper: asyncio.Task[None]
    child: Child | None = None
    instance_id: str = ""
    url: str = ""
    failures: int = 0
    last_words: tuple[str, ...] = ()


class Fleet:
    """Run what the seats ask for, and say where it can be reached in the instances file."""

    def __init__(
        self, *, supervisor: Supervisor, instances_file: Path, host: str, note: Callable[[str], None]
    ) -> None:
        """Take where the instances are written down and where remarks on restarts go."""
        self._supervisor = supervisor
        self._file = instances_file
        self._host = host
        self._note = note
        self._occupants: dict[Seat, _Occupant] = {}
        self._write()

    async def apply(self, wanted: Mapping[Seat, tuple[str, ...]]) -> None:
        """Stop what is not wanted any more or is wanted differently, and start what is missing."""
        leaving = [
            seat for seat, occupant in self._occupants.items() if wanted.get(seat) != occupant.arguments
        ]
        await asyncio.gather(*(self._vacate(seat) for seat in leaving))
        for seat, arguments in wanted.items():
            if seat not in self._occupants:
                keeper = asyncio.create_task(self._keep(seat), name=f"seat {seat}")
                self._occupants[seat] = _Occupant(arguments=arguments, keeper=keeper)
        self._write()

    async def close(self) -> None:
        """Stop all instances."""
        await self.apply({})

    @property
    def seats(self) -> tuple[Seat, ...]:
        """Return the seats that are kept."""
        return tuple(self._occupants)

    def stuck(self) -> tuple[Seat, tuple[str, ...]] | None:
        """Return a seat whose instance died three times in a row at its start, with its last words."""
        for seat, occupant in self._occupants.items():
            if occupant.failures >= 3:
                return seat, occupant.last_words
        return None

    def pids(self) -> dict[str, int]:
        """Return the process of every running instance by its id."""
        return {
            occupant.instance_id: occupant.child.pid
            for occupant in self._occupants.values()
            if occupant.child
        }

    def urls(self) -> dict[str, str]:
        """Return where every running instance listens, by its id."""
        return {occupant.instance_id: occupant.url for occupant in self._occupants.values() if occupant.url}

    async def _vacate(self, seat: Seat) -> None:
        occupant = self._occupants.pop(seat)
        occupant.keeper.cancel()
        await asyncio.gather(occupant.keeper, return_exceptions=True)
        if occupant.child is not None:
            await self._supervisor.stop(occupant.child)

    async def _keep(self, seat: Seat) -> None:
        await asyncio.sleep(0)  # apply() enters the occupant before anything here looks it up
        occupant = self._occupants[seat]
        for life in count():
            port = free_port(self._host)
            occupant.instance_id = f"{seat}" if life == 0 else f"{seat}.{life}"
            started = monotonic()
            occupant.child = await self._supervisor.start(
                str(seat), EMULATOR, [*occupant.arguments, "--host", self._host, "--port", str(port)]
            )
            occupant.url = f"http://{self._host}:{port}"
            self._write()
            code = await occupant.child.wait()
            occupant.last_words = tuple(occupant.child.tail)
            self._supervisor.forget(occupant.child)
            occupant.child, occupant.url = None, ""
            self._write()
            steady = monotonic() - started > _STEADY_SECONDS
            occupant.failures = 0 if steady else occupant.failures + 1
            pause = min(_LONGEST_BACKOFF_SECONDS, _FIRST_BACKOFF_SECONDS * 2 ** max(0, occupant.failures - 1))
            self._note(f"{occupant.instance_id} ended ({_ending(code)}); another starts in {pause:g} s")
            await asyncio.sleep(pause)

    def _write(self) -> None:
        instances = [
            {"id": occupant.instance_id, "pool": seat.pool, "url": occupant.url}
            for seat, occupant in self._occupants.items()
            if occupant.url
        ]
        draft = self._file.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps({"instances": instances}, indent=2), encoding="utf-8")
        draft.replace(self._file)


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit status {code}"
