"""State files: how `hexflow ask` in one shell finds the router that `hexflow up` started in another.

Each `hexflow up` has its own file in the user's state folder; the newest of those that run is asked. The files have
mode 0600 and name the files of the tenants' API keys, never the keys. `HEXFLOW_STATE_DIR` moves the folder.
"""

import json
import os
from pathlib import Path
from typing import Self

import platformdirs
import psutil
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

_FILES = "up-*.json"


class _Record(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)


class TenantEntry(_Record):
    """Name a tenant and the file that holds its API key."""

    name: str
    api_key_file: Path | None = None


class WorkflowEntry(_Record):
    """Name a workflow that the router serves, with what a question needs to say beside it."""

    name: str
    databases: tuple[str, ...] = ()
    tenants: tuple[TenantEntry, ...] = ()


class StateFile(_Record):
    """Describe a running laptop fleet."""

    url: str
    admin_url: str
    pid: int
    """Process of `hexflow up`."""
    started: float
    """When that process was created, seconds since the epoch: a pid alone may have been given to another."""
    time_scale: float = 1.0
    workflows: tuple[WorkflowEntry, ...] = ()

    @classmethod
    def read(cls, folder: Path | None = None) -> Self | None:
        """Return the state of the fleet that was started last and still runs, or None where none does."""
        running = [state for path in (folder or state_folder()).glob(_FILES) if (state := cls._read(path))]
        return max(running, key=lambda state: state.started, default=None)

    @classmethod
    def _read(cls, path: Path) -> Self | None:
        try:
            state = cls.model_validate_json(path.read_bytes())
            created = psutil.Process(state.pid).create_time()
        except (OSError, ValidationError, psutil.Error):
            return None
        return state if abs(created - state.started) < 2.0 else None

    def write(self, folder: Path | None = None) -> Path:
        """Write the file in one step, readable by its owner alone, and return its path."""
        path = state_file(self.pid, folder)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = path.with_suffix(".new")
        with os.fdopen(
            os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
        ) as file:
            json.dump(self.model_dump(mode="json", by_alias=True), file, indent=2)
        draft.replace(path)
        return path


def state_folder() -> Path:
    """Return the folder of what a running fleet keeps on disk; it need not exist."""
    chosen = os.environ.get("HEXFLOW_STATE_DIR")
    return Path(chosen) if chosen else platformdirs.user_state_path("hexflow")


def state_file(pid: int, folder: Path | None = None) -> Path:
    """Return the path of the state file of the `hexflow up` with that process id."""
    return (folder or state_folder()) / _FILES.replace("*", str(pid))


def own_start() -> float:
    """Return when this process was created, seconds since the epoch."""
    return float(psutil.Process().create_time())
