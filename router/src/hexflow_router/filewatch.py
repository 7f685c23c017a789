"""When to look at files again: as soon as the system tells of a change, and every few seconds in any case.

A notification may be missed (an edit before the watch began, a folder that was replaced, a file system that tells
nobody), so this only says when; whoever looks compares with what was seen last.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path

from watchfiles import DefaultFilter, awatch

WITHOUT_FOLDERS_SECONDS = 1.0
"""Real seconds until folders that are not there (yet, or any more) are looked for again."""


async def looks(
    folders: Callable[[], Iterable[Path]],
    *,
    name: str | None = None,
    again_seconds: float = 5.0,
    debounce_seconds: float = 0.2,
) -> AsyncIterator[None]:
    """Yield whenever it is time to look at what lies in the folders, not below them.

    ``folders`` may block and is asked again once one of them has gone; ``name`` is that of the one file that matters.
    Changes within ``debounce_seconds`` count as one. Real seconds.
    """
    usual = DefaultFilter()
    while True:
        there: list[Path] = []
        with contextlib.suppress(OSError):
            there = await asyncio.to_thread(lambda: [folder for folder in folders() if folder.is_dir()])
        if there:
            with contextlib.suppress(OSError, RuntimeError):  # a folder went away
                async for _ in awatch(
                    *there,
                    recursive=False,
                    debounce=int(debounce_seconds * 1000),
                    step=25,
                    rust_timeout=int(again_seconds * 1000),
                    yield_on_timeout=True,
                    watch_filter=lambda change, path: (
                        usual(change, path) if name is None else Path(path).name == name
                    ),
                ):
                    yield
                    if not all(folder.is_dir() for folder in there):
                        break
        await asyncio.sleep(WITHOUT_FOLDERS_SECONDS)
        yield
