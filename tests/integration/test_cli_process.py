"""Children and files never outlive the command that made them, however that ends."""

import asyncio
import json
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen

import psutil
import pytest

from hexflow_cli.process import Supervisor
from support.waiting import until

OWNER = """
import asyncio, json, signal, sys
from pathlib import Path
from hexflow_cli.process import Supervisor

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell is born deaf to it

async def main(folder, death_signal):
    async with Supervisor(log=lambda name, line: None, death_signal=death_signal) as supervisor:
        supervisor.remove_at_end(folder)
        (folder / "secret").write_text("s3cret")
        children = [await supervisor.start(f"server-{n}", "http.server", ["0", "--bind", "127.0.0.1"]) for n in range(2)]
        print(json.dumps([child.pid for child in children]), flush=True)
        await asyncio.sleep(3600)

asyncio.run(main(Path(sys.argv[1]), sys.argv[2] == "True"))
"""


@dataclass(frozen=True, slots=True)
class Owner:
    process: Popen[str]
    children: list[psutil.Process]
    folder: Path

    def left_behind(self) -> list[object]:
        running = [child for child in self.children if child.is_running() and child.status() != "zombie"]
        return [*running, *([self.folder] if self.folder.exists() else [])]


@pytest.fixture(params=[True, False], ids=["with the kernel's death signal", "with the keeper alone"])
def owner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Owner]:
    folder = tmp_path / "run"
    folder.mkdir()
    with Popen(
        [sys.executable, "-c", OWNER, str(folder), str(request.param)], stdout=PIPE, text=True
    ) as process:
        assert process.stdout is not None
        pids = json.loads(process.stdout.readline())
        yield Owner(process, [psutil.Process(pid) for pid in pids], folder)
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_behind_when_the_owner_is_killed(owner: Owner, number: signal.Signals) -> None:
    assert len(owner.left_behind()) == 3
    owner.process.send_signal(number)
    owner.process.wait(timeout=20)
    until(lambda: owner.left_behind() == [], seconds=10)


async def test_a_child_that_ignores_sigterm_is_killed_after_the_grace_period(tmp_path: Path) -> None:
    (tmp_path / "stubborn.py").write_text(
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('here', flush=True)\ntime.sleep(60)\n"
    )
    lines: list[str] = []
    async with Supervisor(log=lambda name, line: lines.append(line)) as supervisor:
        child = await supervisor.start("s", "stubborn", [], environment={"PYTHONPATH": str(tmp_path)})
        while "here" not in lines:
            await asyncio.sleep(0.02)
        await supervisor.stop(child, grace_seconds=0.2)
        assert child.returncode == -signal.SIGKILL


async def test_every_line_of_a_child_reaches_the_log_even_a_very_long_one(tmp_path: Path) -> None:
    (tmp_path / "talker.py").write_text("print('a' * 300_000)\nprint('b')\nprint('last words', end='')\n")
    lines: list[str] = []
    async with Supervisor(log=lambda name, line: lines.append(line)) as supervisor:
        child = await supervisor.start("t", "talker", [], environment={"PYTHONPATH": str(tmp_path)})
        assert await child.wait() == 0
        supervisor.forget(child)
    assert sum(line.count("a") for line in lines) == 300_000 + 1  # and the one in "last words"
    assert lines[-2:] == ["b", "last words"]
