"""The event log's file: lines of the kernel's inputs and decisions, kept by size and age.

The records are the kernel's (``hexflow_scheduler``); here they are written, turned over, and read back for the
tuner. A thread writes, so that a slow disk does not hold the loop; what it cannot write is counted as dropped.
"""

import contextlib
import logging
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

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
        self._memory: deque[str] = deque(maxlen=KEPT_IN_MEMORY)
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

    def read(self) -> Iterator[str]:
        """Yield every line that is kept, oldest first (blocking: use a thread)."""
        if self._path is None:
            yield from list(self._memory)
            return
        self.flush()
        for file in [*reversed(self._older()), self._path]:
            with contextlib.suppress(FileNotFoundError), file.open(encoding="utf-8") as lines:
                for line in lines:
                    if line.endswith("\n"):
                        yield line.rstrip("\n")

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
            if path.exists() and path.stat().st_size >= self._retention.file_bytes:
                self._turn_over(path)
            with path.open("a", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
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
