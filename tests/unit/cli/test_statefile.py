import os
import stat
from pathlib import Path

import psutil
import pytest

from hexflow_cli.statefile import StateFile, TenantEntry, WorkflowEntry, own_start, state_file, state_folder


def a_state(**given: object) -> StateFile:
    usual: dict[str, object] = {
        "url": "http://127.0.0.1:8080",
        "admin_url": "http://127.0.0.1:8081",
        "pid": os.getpid(),
        "started": own_start(),
        "workflows": (
            WorkflowEntry(
                name="w", databases=("shop",), tenants=(TenantEntry(name="t", api_key_file=Path("/k")),)
            ),
        ),
    }
    return StateFile.model_validate({**usual, **given})


def test_what_one_command_writes_another_reads(tmp_path: Path) -> None:
    path = a_state().write(tmp_path)
    assert StateFile.read(tmp_path) == a_state()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "stale", [{"pid": 2**22 + 7}, {"started": 1.0}], ids=["no such process", "another process"]
)
def test_the_state_of_a_fleet_that_is_gone_is_ignored(tmp_path: Path, stale: dict[str, object]) -> None:
    a_state(**stale).write(tmp_path)
    assert StateFile.read(tmp_path) is None


def test_of_several_fleets_the_one_started_last_is_asked(tmp_path: Path) -> None:
    parent = psutil.Process(os.getppid())
    # Parent and child may be born in one tick of the kernel's clock; a second's difference still counts as the parent.
    older = a_state(url="http://older", pid=parent.pid, started=parent.create_time() - 1.0)
    newer = a_state(url="http://newer")
    for state in (newer, older):
        state.write(tmp_path)
    assert StateFile.read(tmp_path) == newer
    state_file(newer.pid, tmp_path).unlink()
    assert StateFile.read(tmp_path) == older


@pytest.mark.parametrize("text", ["", "{", "[]", '{"url": 1}'])
def test_a_file_that_is_none_is_ignored(tmp_path: Path, text: str) -> None:
    state_file(7, tmp_path).write_text(text)
    assert StateFile.read(tmp_path) is None


def test_the_folder_can_be_moved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEXFLOW_STATE_DIR", str(tmp_path / "elsewhere"))
    assert state_folder() == tmp_path / "elsewhere"
    monkeypatch.delenv("HEXFLOW_STATE_DIR")
    assert state_folder().name == "hexflow"
