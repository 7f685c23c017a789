"""The keeper: a small process that cleans up after `hexflow up` even when that is killed with SIGKILL.

It reads its standard input, a pipe whose other end only the keeper's owner holds. Lines tell what there is to
clean up; the end of the pipe, however it came about, means that the owner is gone:

    child PID    a process group that must not outlive the owner
    gone PID     that process ended and its number may belong to somebody else now
    path PATH    a file or folder to remove

It runs as `python -I -S keeper.py` in a session of its own (ctrl-C in the terminal does not reach it), so it may
use the standard library alone. This is what works on every POSIX system; on Linux the children also ask the
kernel to be killed with their parent (`child.py`).
"""

import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path


def main() -> None:
    """Collect what to clean up until the pipe ends, then clean up."""
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    children: set[int] = set()
    paths: list[Path] = []
    for line in sys.stdin:
        kind, _, rest = line.rstrip("\n").partition(" ")
        if kind == "child":
            children.add(int(rest))
        elif kind == "gone":
            children.discard(int(rest))
        elif kind == "path":
            paths.append(Path(rest))
    for child in children:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
    for path in paths:
        _remove(path)


def _remove(path: Path) -> None:
    for _ in range(40):  # a child that is being killed may still write for a moment
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                path.unlink()
        if not path.exists():
            return
        time.sleep(0.05)


if __name__ == "__main__":
    main()
