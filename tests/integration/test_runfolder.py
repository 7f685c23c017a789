"""What a test run starts is gone when the next one starts, even if nobody was left to clean up."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from support.runfolder import RunFolder
from support.waiting import until

SLEEPER = "import time; time.sleep(300)"
A_RUN = f"""
import sys, time
from pathlib import Path
from support.runfolder import RunFolder
with RunFolder(parent=Path(sys.argv[1])) as folder:
    folder.start("sleeper", [sys.executable, "-c", {SLEEPER!r}, folder.path])
    print(folder.path, folder.pid("sleeper"), folder._keeper.pid, flush=True)
    time.sleep(300)
"""


def alive(pid: int) -> bool:
    """Tell whether a process runs; one that is dead and that nobody has waited for does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_what_was_started_ends_with_the_block(tmp_path: Path) -> None:
    with RunFolder(parent=tmp_path) as folder:
        folder.start("sleeper", [sys.executable, "-c", SLEEPER, folder.path])
        pid = folder.pid("sleeper")
        assert folder.running("sleeper")
    assert not alive(pid)
    assert not folder.path.exists()


@pytest.fixture
def another_run(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path, int, int]]:
    command = [sys.executable, "-c", A_RUN, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as run:
        assert run.stdout is not None
        path, sleeper, keeper = run.stdout.readline().split()
        try:
            yield run, Path(path), int(sleeper), int(keeper)
        finally:
            run.kill()


def test_two_runs_at_once_leave_each_other_alone(
    another_run: tuple[subprocess.Popen[str], Path, int, int], tmp_path: Path
) -> None:
    _, path, sleeper, _ = another_run
    with RunFolder(parent=tmp_path) as folder:
        assert folder.path != path
    assert path.exists()
    assert alive(sleeper)


def test_a_dead_run_is_cleaned_up_by_the_next_when_its_keeper_is_dead_too(
    another_run: tuple[subprocess.Popen[str], Path, int, int], tmp_path: Path
) -> None:
    run, path, sleeper, keeper = another_run
    os.kill(keeper, signal.SIGKILL)
    run.kill()
    run.wait()
    assert alive(sleeper)
    with RunFolder(parent=tmp_path):
        until(lambda: not alive(sleeper))
        assert not path.exists()


def test_a_number_that_belongs_to_somebody_else_by_now_is_not_killed(tmp_path: Path) -> None:
    dead = tmp_path / "run-dead"
    dead.mkdir()
    with subprocess.Popen([sys.executable, "-c", SLEEPER], start_new_session=True) as stranger:
        (dead / "sleeper.pid").write_text(str(stranger.pid))
        with RunFolder(parent=tmp_path):
            assert not dead.exists()
        assert stranger.poll() is None
        stranger.kill()
