"""What the scheduler has learned, on disk: lengths, speeds and times that a router would else learn anew after a restart.

One JSON file, replaced whole, with the one before it beside it. A file that cannot be used never keeps a router from
starting: it is put aside and said so, and the one before it is taken.
"""

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hexflow_scheduler import Estimates, InvalidInput

_log = logging.getLogger("hexflow.router.learned")

SAVE_SECONDS = 60.0
"""Real seconds between two saves."""


class LearnedFile:
    """Keep estimates in a file; without a path, nowhere."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._failed = False

    def restore(self) -> Estimates:
        """Return what was learned before: from the file, else from the one before it, else nothing yet (blocking)."""
        if self._path is None:
            return Estimates()
        for path in (self._path, self._before):
            if path.exists():
                try:
                    return Estimates.from_data(json.loads(path.read_text(encoding="utf-8")))
                except (OSError, ValueError, RecursionError, InvalidInput) as problem:
                    self._refuse(path, problem)
        return Estimates()

    async def save(self, estimates: Estimates) -> None:
        """Write estimates down; what cannot be written is said once and tried again at the next save."""
        if self._path is None:
            return
        data = estimates.to_data()  # here, where nothing learns meanwhile
        try:
            await asyncio.to_thread(self._write, self._path, data)
        except OSError as problem:
            if not self._failed:
                _log.warning(
                    "What was learned cannot be written to %s (%s); it is tried again.",
                    self._path,
                    problem.strerror or problem,
                )
            self._failed = True
        else:
            self._failed = False

    async def keep(self, estimates: Callable[[], Estimates], *, every: float = SAVE_SECONDS) -> None:
        """Save every so often (real seconds), until cancelled."""
        while self._path is not None:
            await asyncio.sleep(every)
            await self.save(estimates())

    @property
    def _before(self) -> Path:
        assert self._path is not None  # noqa: S101
        return self._path.with_name(f"{self._path.name}.before")

    def _write(self, path: Path, data: dict[str, Any]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.draft")
        with draft.open("w", encoding="utf-8") as file:
            json.dump(data, file, separators=(",", ":"))
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):
            path.replace(self._before)
        draft.replace(path)

    def _refuse(self, path: Path, problem: Exception) -> None:
        refused = path.with_name(f"{path.name}.refused")
        _log.warning("%s is not used: %s. It is kept as %s.", path, problem, refused.name)
        with contextlib.suppress(OSError):
            path.replace(refused)
