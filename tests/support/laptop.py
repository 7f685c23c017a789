"""`hexflow up` as a real process, the way a person starts it, with a state folder of its own."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from hexflow_cli.port import free_port
from support.waiting import until

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "laptop"


@dataclass(frozen=True, slots=True)
class Finished:
    """Hold what a command wrote and how it ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Return what it wrote to stdout, which must be one JSON document."""
        return json.loads(self.out)


@dataclass(frozen=True, slots=True)
class RunningLaptop:
    """Hold a `hexflow up` that is ready."""

    process: subprocess.Popen[str]
    state: dict[str, Any]
    state_dir: Path
    log: Path

    @property
    def url(self) -> str:
        """Return the tenants' URL."""
        return str(self.state["url"])

    def family(self) -> list[psutil.Process]:
        """Return the process and everything below it."""
        try:
            root = psutil.Process(self.process.pid)
            return [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def instances(self) -> list[dict[str, str]]:
        """Return what the router is told of instances."""
        (file,) = self.state_dir.glob("run-*/instances.json")
        return list(json.loads(file.read_text())["instances"])

    def hexflow(self, *arguments: str, stdin: bytes | None = None) -> Finished:
        """Run another `hexflow` command beside it."""
        return hexflow(*arguments, state_dir=self.state_dir, stdin=stdin)


def environment(state_dir: Path) -> dict[str, str]:
    """Return the environment of a command whose state is elsewhere than the user's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HEXFLOW_")}
    return {**kept, "HEXFLOW_STATE_DIR": str(state_dir), "COLUMNS": "120"}


def hexflow(*arguments: str, state_dir: Path, stdin: bytes | None = None, timeout: float = 60) -> Finished:
    """Run a `hexflow` command to its end."""
    done = subprocess.run(
        [sys.executable, "-m", "hexflow_cli", *arguments],
        env=environment(state_dir),
        input=stdin,
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    return Finished(done.returncode, done.stdout.decode(), done.stderr.decode())


def copy_examples(folder: Path) -> Path:
    """Copy the example resources to where they may be edited."""
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("*.sqlite"))
    return folder


@contextmanager
def a_running_laptop(
    folder: Path, *arguments: str, files: Sequence[Path] = (), time_scale: float = 50
) -> Iterator[RunningLaptop]:
    """Run `hexflow up`, hand it out when it is ready, and end it with SIGTERM."""
    state_dir = folder / "state"
    state_dir.mkdir(parents=True, exist_ok=True)
    log = folder / "up.log"
    command = [sys.executable, "-m", "hexflow_cli", "up", "--json", "--time-scale", f"{time_scale:g}"]
    command += ["--port", str(free_port("127.0.0.1")), "--admin-port", str(free_port("127.0.0.1"))]
    command += [part for path in files for part in ("-f", str(path))]
    with (
        log.open("w") as stderr,
        subprocess.Popen(
            [*command, *arguments],
            env=environment(state_dir),
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            text = ""
            while not text.endswith("}\n") or text.count("{") != text.count("}"):
                line = process.stdout.readline()
                assert line, f"hexflow up ended early:\n{text}{log.read_text()[-3000:]}"
                text += line
            yield RunningLaptop(process, json.loads(text), state_dir, log)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


def assert_nothing_is_left(family: Sequence[psutil.Process], state_dir: Path) -> None:
    """Fail unless all processes have gone and the state folder is empty, within a few seconds."""

    def left() -> list[object]:
        alive = [item for item in family if item.is_running() and item.status() != psutil.STATUS_ZOMBIE]
        return [*alive, *state_dir.iterdir()]

    until(lambda: left() == [], seconds=15)
