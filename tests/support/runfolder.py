"""A folder and processes of one test run, gone with it: however it ended, and at the latest when the next run starts.

Two things clean up. The keeper, a process of its own (`hexflow_cli.keeper`), notices the end of ours, however
it came about. Should somebody kill both, the next run finds the folder with nobody holding its lock.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import psutil

from hexflow_cli import keeper

TAIL = 3000
"""Characters of a log that a failure shows."""


class RunFolder:
    """Own a folder and the processes started in it for as long as a `with` block lasts."""

    def __init__(self, *, parent: Path | None = None) -> None:
        """Take the folder that all runs of this user share; by default one for temporary files."""
        self._parent = parent or Path(tempfile.gettempdir()) / f"hexflow-cluster-{os.getuid()}"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        self._parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        remove_leftovers(self._parent)
        self.path = Path(tempfile.mkdtemp(prefix="run-", dir=self._parent))
        self._lock = _hold(self.path)
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", keeper.__file__], stdin=subprocess.PIPE, start_new_session=True
        )
        self._tell(f"path {self.path}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in reversed(tuple(self._processes)):
            self.stop(name, grace_seconds=2)
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()
        self._keeper.wait()
        self._lock.close()

    def start(
        self, name: str, command: Sequence[str | Path], *, environment: Mapping[str, str] | None = None
    ) -> None:
        """Start a process under a name; its output is in `NAME.log`. Its command line must name the folder."""
        assert any(str(self.path) in str(word) for word in command), "a leftover is known by its command line"
        with self.log(name).open("ab") as log:
            process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **(environment or {})},
            )
        self._tell(f"child {process.pid}")
        (self.path / f"{name}.pid").write_text(str(process.pid))
        self._processes[name] = process

    def stop(self, name: str, *, grace_seconds: float) -> None:
        """Ask a process to end, and kill it when it has not within the grace period."""
        process = self._processes.pop(name)
        if grace_seconds:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(grace_seconds)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._tell(f"gone {process.pid}")
        (self.path / f"{name}.pid").unlink()

    def pid(self, name: str) -> int:
        """Return the process id of one that runs."""
        return self._processes[name].pid

    def running(self, name: str) -> bool:
        """Tell whether a process was started and has not ended."""
        return name in self._processes and self._processes[name].poll() is None

    def log(self, name: str) -> Path:
        """Return where a process's output goes."""
        return self.path / f"{name}.log"

    def tail(self, name: str) -> str:
        """Return the end of a process's output."""
        return self.log(name).read_text(errors="replace")[-TAIL:]

    def _tell(self, line: str) -> None:
        assert self._keeper.stdin is not None
        self._keeper.stdin.write(line.encode() + b"\n")
        self._keeper.stdin.flush()


def remove_leftovers(parent: Path) -> None:
    """End the processes of runs that are dead themselves, and remove their folders."""
    for folder in parent.glob("run-*"):
        try:
            lock = _hold(folder)
        except OSError:
            continue  # its run lives, or has just removed it
        with lock:
            for file in folder.glob("*.pid"):
                _kill_if_of(folder, pid=int(file.read_text() or 0))
            shutil.rmtree(folder, ignore_errors=True)


def _hold(folder: Path) -> IO[str]:
    lock = (folder / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise
    return lock


def _kill_if_of(folder: Path, *, pid: int) -> None:
    """Kill a process unless its number belongs to somebody else by now."""
    with contextlib.suppress(psutil.Error, ProcessLookupError):
        if any(str(folder) in word for word in psutil.Process(pid).cmdline()):
            os.killpg(pid, signal.SIGKILL)
