"""Follow the edits of resource files: say when something is different from what was seen last.

The system's notifications make it quick; a look every few seconds makes it sure, for an edit may come before the
watch has begun, and some file systems notify nobody.
"""

import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from hexflow_router.filewatch import looks

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

    def folders() -> set[Path]:
        return {path if path.is_dir() else path.parent for path in paths}

    async for _ in looks(folders, again_seconds=2.0):
        now = fingerprint(paths)
        if now != since:
            since = now
            yield
