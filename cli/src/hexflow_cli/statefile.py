"""The state file: how `hexflow ask` in one shell finds the router that `hexflow up` started in another.

It lies in the user's own state folder with mode 0600. It names the files of the tenants' API keys, never the keys.
`HEXFLOW_STATE_DIR` moves the folder, for tests and for more than one laptop fleet at a time.
"""

import json
import os
from pathlib import Path
from typing import Self

import platformdirs
import psutil
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

_FILE = "up.json"


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
        """Return the state of the fleet that runs now, or None where none does."""
        try:
            state = cls.model_validate_json(state_file(folder).read_bytes())
            created = psutil.Process(state.pid).create_time()
        except (OSError, ValidationError, psutil.Error):
            return None
        return state if abs(created - state.started) < 2.0 else None

    def write(self, folder: Path | None = None) -> Path:
        """Write the file in one step, readable by its owner alone, and return its path."""
        path = state_file(folder)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = path.with_suffix(f".{os.getpid()}")
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


def state_file(folder: Path | None = None) -> Path:
    """Return the path of the state file."""
    return (folder or state_folder()) / _FILE


def own_start() -> float:
    """Return when this process was created, seconds since the epoch."""
    return float(psutil.Process().create_time())
