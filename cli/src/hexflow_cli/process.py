"""Child processes that never outlive this one: start, follow the output, stop, clean up.

Three things tie a child to us: an orderly stop when we leave, the kernel's death signal on Linux (`child.py`), and
the keeper (`keeper.py`), which also removes files, however we ended. This module knows no emulator and no router.
"""

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from hexflow_cli import keeper
from hexflow_cli.exitcode import CommandError, ExitCode

Log = Callable[[str, str], None]
"""Take a child's name and one line of its output."""

_TAIL_LINES = 40
_MAX_LINE_BYTES = 64 * 1024


class Child:
    """A running module in a process group of its own."""

    def __init__(self, name: str, process: Process, log: Log) -> None:
        self.name = name
        self.tail: deque[str] = deque(maxlen=_TAIL_LINES)
        """Its last lines of output, for the message if it dies."""
        self._process = process
        self._log = log
        self._pump = asyncio.create_task(self._follow(), name=f"output of {name}")

    @property
    def pid(self) -> int:
        """Return its process id, which is also the id of its process group."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Return its exit status, negative for a signal, or None while it runs."""
        return self._process.returncode

    async def wait(self) -> int:
        """Wait until it has ended and all its output has been read; return its exit status."""
        code = await self._process.wait()
        with contextlib.suppress(asyncio.TimeoutError):  # a grandchild may hold the pipe open
            await asyncio.wait_for(asyncio.shield(self._pump), timeout=1.0)
        return code

    async def stop(self, *, grace_seconds: float) -> None:
        """Ask it to end, and kill its whole group if it has not within the grace period."""
        if self.returncode is None:
            self._signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), timeout=grace_seconds)
        self._signal(signal.SIGKILL)
        await self.wait()
        self._pump.cancel()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    async def _follow(self) -> None:
        stream = self._process.stdout
        assert stream is not None  # noqa: S101 - it was started with a pipe
        pending = b""
        while chunk := await stream.read(_MAX_LINE_BYTES):
            *lines, pending = (pending + chunk).split(b"\n")
            if len(pending) > _MAX_LINE_BYTES:
                lines, pending = [*lines, pending], b""
            for line in lines:
                self._take(line)
        if pending:
            self._take(pending)

    def _take(self, line: bytes) -> None:
        text = line.decode("utf-8", errors="replace").rstrip()
        self.tail.append(text)
        self._log(self.name, text)


class Supervisor:
    """Own child processes and files for as long as a `with` block lasts, and not a moment longer."""

    def __init__(self, *, log: Log, death_signal: bool = True) -> None:
        """Take the sink of the children's output.

        `death_signal=False` leaves the killing after our sudden death to the keeper alone, as on systems that
        have no such signal.
        """
        self._log = log
        self._death_signal = death_signal
        self._children: set[Child] = set()
        self._keeper: Process | None = None

    async def __aenter__(self) -> Self:
        """Start the keeper first: from here on nothing can be left behind."""
        self._keeper = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", keeper.__file__, stdin=PIPE, start_new_session=True
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop all children together, then let the keeper remove the files."""
        await asyncio.gather(*(self.stop(child) for child in tuple(self._children)))
        if self._keeper is not None and self._keeper.stdin is not None:
            self._keeper.stdin.close()
            await self._keeper.wait()

    def remove_at_end(self, path: Path) -> None:
        """Have a file or folder removed when we end."""
        self._tell(f"path {path}")

    async def start(
        self,
        name: str,
        module: str,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
    ) -> Child:
        """Start `python -m module arguments` under a name that its lines of output carry."""
        parent = os.getpid() if self._death_signal else 0
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "hexflow_cli.child",
                str(parent),
                module,
                *arguments,
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=STDOUT,
                process_group=0,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})},
            )
        except OSError as error:
            raise CommandError(
                f"The process {name} cannot be started: {error}.",
                code=ExitCode.ENVIRONMENT,
                reason="ProcessFailed",
            ) from error
        self._tell(f"child {process.pid}")
        child = Child(name, process, self._log)
        self._children.add(child)
        return child

    async def stop(self, child: Child, *, grace_seconds: float = 5.0) -> None:
        """Stop one child and forget it."""
        await child.stop(grace_seconds=grace_seconds)
        self.forget(child)

    def forget(self, child: Child) -> None:
        """Forget a child that has ended; its pid may soon be somebody else's."""
        self._children.discard(child)
        self._tell(f"gone {child.pid}")

    def _tell(self, line: str) -> None:
        if self._keeper is not None and self._keeper.stdin is not None:
            self._keeper.stdin.write(line.encode() + b"\n")
