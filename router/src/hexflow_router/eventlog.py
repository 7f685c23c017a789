"""The event log's file: lines of the kernel's inputs and decisions, kept by size and age.

The records are the kernel's (``hexflow_scheduler``); here they are written, turned over, and read back for the
tuner. Each file begins with a head (``loghead.py``), so that it can be read when those before it are gone. A thread writes, so that a slow disk does not hold the loop; what it cannot write is counted as dropped.
"""

import contextlib
import itertools
import logging
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from hexflow_router.loghead import CONTINUED, LogHead, what
from hexflow_router.metrics import Metrics

_log = logging.getLogger("hexflow.router.eventlog")

MOST_QUEUED = 100_000
"""Lines that may wait for the disk."""
KEPT_IN_MEMORY = 20_000
"""Lines kept where there is no file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Say how much of the log is kept."""

    file_bytes: int = 64 << 20
    """Size at which a new file is begun."""
    files: int = 8
    """Files kept, the current one included."""
    age_seconds: float = 7 * 86_400.0
    """Age (real) past which a full file is deleted."""


class EventLogError(RuntimeError):
    """The event log's file cannot be used; the text says what to do."""


class EventLog:
    """Take lines and keep them; safe to call from the event loop."""

    def __init__(
        self,
        path: Path | None,
        *,
        metrics: Metrics | None = None,
        retention: Retention | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Write to ``path``, which is added to; without one the last lines are kept in memory.

        Raises EventLogError for a file that cannot be written.
        """
        self._path = path
        self._metrics = metrics or Metrics()
        self._retention = retention or Retention()
        self._clock = clock
        self._memory: deque[str] = deque()
        self._head = LogHead()
        """Of what is in files, or of what memory has forgotten."""
        self._lines: queue.Queue[str | threading.Event | None] = queue.Queue(MOST_QUEUED)
        self._thread: threading.Thread | None = None
        if path is not None:
            _prepare(path)
            self._thread = threading.Thread(target=self._work, args=(path,), name="event-log", daemon=True)
            self._thread.start()

    def write(self, line: str) -> None:
        """Take one line (without its end). Never raises and never waits."""
        if self._path is None:
            self._memory.append(line)
            if len(self._memory) > KEPT_IN_MEMORY:
                self._head.note(self._memory.popleft())
            self._metrics.count("hexflow_event_log_lines_total")
            return
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self._metrics.count("hexflow_event_log_dropped_total")

    def flush(self, *, time_out: float = 5.0) -> None:
        """Wait until what was taken so far is in the file (blocking)."""
        if self._thread is not None and self._thread.is_alive():
            written = threading.Event()
            self._lines.put(written)
            written.wait(time_out)

    def read(self, since: float | None = None) -> Iterator[str]:
        """Yield every line that is kept, oldest first (blocking: use a thread).

        With ``since`` (the records' instants) what comes before the last start that was no later is left out.
        """
        if self._path is None:
            lines = [*self._head.lines(), *self._memory] if self._memory else []
            yield from lines[_first(lines, since) :]
            return
        self.flush()
        with contextlib.ExitStack() as stack:
            files = []
            for file in [*reversed(self._older()), self._path]:
                with contextlib.suppress(FileNotFoundError):
                    files.append(stack.enter_context(file.open(encoding="utf-8")))
            skip = 0
            if since is not None:
                skip = _first(_lines(files), since)
                for opened in files:
                    opened.seek(0)
            yield from itertools.islice(_lines(files), skip, None)

    def close(self) -> None:
        """Write what is left and stop."""
        if self._thread is not None:
            self._lines.put(None)
            self._thread.join(timeout=10)

    def _older(self) -> list[Path]:
        assert self._path is not None  # noqa: S101 - only a file is turned over
        numbered = (
            self._path.with_name(f"{self._path.name}.{number}") for number in range(1, self._retention.files)
        )
        return [file for file in numbered if file.exists()]

    def _work(self, path: Path) -> None:
        while True:
            batch = [self._lines.get()]
            with contextlib.suppress(queue.Empty):
                while len(batch) < 1000:
                    batch.append(self._lines.get_nowait())
            lines = [line for line in batch if isinstance(line, str)]
            if lines:
                self._append(path, lines)
            for item in batch:
                if isinstance(item, threading.Event):
                    item.set()
            if None in batch:
                return

    def _append(self, path: Path, lines: list[str]) -> None:
        try:
            head: list[str] = []
            if path.exists() and path.stat().st_size >= self._retention.file_bytes:
                self._turn_over(path)
                head = [] if what(lines[0])[0] == "start" else self._head.lines()
            with path.open("a", encoding="utf-8") as file:
                file.write("\n".join([*head, *lines]) + "\n")
            for line in lines:
                self._head.note(line)
        except OSError as problem:
            _log.error("%d records of the event log are lost: %s", len(lines), problem)
            self._metrics.count("hexflow_event_log_dropped_total", by=len(lines))
        else:
            self._metrics.count("hexflow_event_log_lines_total", by=len(lines))

    def _turn_over(self, path: Path) -> None:
        older = self._older()
        oldest_kept = self._clock() - self._retention.age_seconds
        for file in older:
            if file.stat().st_mtime < oldest_kept:
                file.unlink()
        for number in range(self._retention.files - 1, 0, -1):
            file = path.with_name(f"{path.name}.{number}")
            if not file.exists():
                continue
            if number + 1 >= self._retention.files:
                file.unlink()
            else:
                file.rename(path.with_name(f"{path.name}.{number + 1}"))
        if self._retention.files > 1:
            path.rename(path.with_name(f"{path.name}.1"))
        else:
            path.unlink()


def _lines(files: Sequence[IO[str]]) -> Iterator[str]:
    """Yield the whole lines of files; heads only of the first."""
    for number, file in enumerate(files):
        for line in file:
            if line.endswith("\n") and not (number and line.endswith(f"{CONTINUED}\n")):
                yield line.rstrip("\n")


def _first(lines: Iterable[str], since: float | None) -> int:
    """Return the number of lines before the last start that was no later than ``since``."""
    found, start = 0, None
    for number, line in enumerate(lines if since is not None else ()):
        name, at = what(line)
        if name == "start":
            start = number
        elif name and start is not None:  # a start has no instant of its own
            if since is not None and at > since:
                break
            found, start = start, None
    return found


def _prepare(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read() != b"\n":  # a process that was killed left half a line
                    file.write(b"\n")
    except OSError as problem:
        raise EventLogError(
            f"The event log {path} cannot be written ({problem.strerror}); name another file."
        ) from None
