"""Follow the edits of resource files: say when something is different from what was seen last.

The system's notifications make it quick; a look every few seconds makes it sure, for an edit may come before the
watch has begun, and some file systems notify nobody.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from watchfiles import awatch

_LOOK_AGAIN_SECONDS = 2.0

Fingerprint = frozenset[tuple[str, int, int]]
"""Path, time of change and size of every resource file."""


def fingerprint(paths: Sequence[Path]) -> Fingerprint:
    """Return what tells one state of the files from another."""
    files = [file for path in paths for file in (path.iterdir() if path.is_dir() else (path,))]
    seen = set()
    for file in files:
        if file.suffix in (".yaml", ".yml"):
            with contextlib.suppress(OSError):
                status = file.stat()
                seen.add((str(file), status.st_mtime_ns, status.st_size))
    return frozenset(seen)


async def edits(paths: Sequence[Path], *, since: Fingerprint) -> AsyncIterator[None]:
    """Yield after every edit of the files, the first of which may have come at any time after `since`."""
    while True:
        folders = {path if path.is_dir() else path.parent for path in paths}
        there = [folder for folder in folders if folder.is_dir()]
        with contextlib.suppress(OSError, RuntimeError):  # a folder went away; look again
            async for _ in awatch(
                *there,
                debounce=200,
                recursive=False,
                rust_timeout=int(_LOOK_AGAIN_SECONDS * 1000),
                yield_on_timeout=True,
            ):
                now = fingerprint(paths)
                if now != since:
                    since = now
                    yield
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)
