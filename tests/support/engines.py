"""Start engines for the contract tests: an emulated one, or a real vLLM on the CPU, with the same arguments.

A real one is installed by ``make vllm`` (``tests/vllm/install.sh``). Where it is not, its tests are left
out with that remedy; under CI that is an error.
"""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import pytest

MODEL = "tiny"
CONTEXT = 16_384
BLOCK = 32
FLAGS = (
    "--served-model-name",
    MODEL,
    "--max-model-len",
    str(CONTEXT),
    "--block-size",
    str(BLOCK),
    "--host",
    "127.0.0.1",
)
"""What both are started with; a test that needs more names it."""
INSTALL = Path(__file__).parents[1] / "vllm" / "install.sh"
PROFILE = '{"t0": 0.002, "t1": 0.0003, "t2": 1e-8, "c1": 1e-5, "c2": 0, "kvTokens": 131072}'
"""About as fast as the tiny model on a CPU, so that both are caught in the act."""


@dataclass(frozen=True, slots=True)
class EngineServer:
    """A running engine."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def terminate(self) -> None:
        """Send SIGTERM, as Kubernetes does."""
        self.process.send_signal(signal.SIGTERM)

    def said(self) -> str:
        """Return the end of its log, without the lines of those who only looked."""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(
            [line for line in lines if "GET /metrics" not in line and "GET /health" not in line][-40:]
        )


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def emulator(
    flags: Sequence[str], *, words: Sequence[str] = ("--output-tokens", "uniform:60:90")
) -> Iterator[EngineServer]:
    """Run an emulated engine."""
    command = [sys.executable, "-m", "hexflow_emulator", "serve", MODEL, "--profile", PROFILE, *words]
    with _running(command, flags, environment=dict(os.environ), seconds=30) as server:
        yield server


@contextmanager
def real_vllm(flags: Sequence[str]) -> Iterator[EngineServer]:
    """Run a real vLLM on the CPU, or skip the test where none is installed."""
    where = subprocess.run([INSTALL, "--where"], check=True, text=True, stdout=subprocess.PIPE)
    venv = Path(where.stdout.strip())
    if not (venv / ".installed").exists():
        reason = "no real vLLM is installed; `make vllm` installs it"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "1",
    }
    command = [
        str(venv / "bin" / "vllm"), "serve", str(venv / "tiny-model"), "--dtype", "float32", "--enforce-eager",
        "--kv-cache-memory-bytes", "64M",
    ]  # fmt: skip
    with _running(command, flags, environment=environment, seconds=400) as server:
        yield server


@contextmanager
def _running(
    command: Sequence[str], flags: Sequence[str], *, environment: dict[str, str], seconds: float
) -> Iterator[EngineServer]:
    port = free_port()
    with TemporaryDirectory() as folder, (Path(folder) / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, *FLAGS, *flags, "--port", str(port)],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            # Not a session of its own: Linux shares the CPU among sessions, so that the processes of a real engine,
            # which spin while they wait for each other, kept the tests from running for seconds.
            process_group=0,
            preexec_fn=_die_with_parent,
        )
        server = EngineServer(f"http://127.0.0.1:{port}", process, Path(log.name))
        try:
            _wait_until_healthy(server, seconds=seconds)
            yield server
        except Exception as error:
            error.add_note(f"the engine's log ends by:\n{server.said()}")
            raise
        finally:
            _end(process)


def _die_with_parent() -> None:
    """Let the kernel end this process when the test run dies without cleaning up."""
    if sys.platform == "linux":
        pdeathsig = 1
        ctypes.CDLL(None).prctl(pdeathsig, signal.SIGKILL)


def _wait_until_healthy(server: EngineServer, *, seconds: float) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            if httpx.get(f"{server.url}/health", timeout=2).status_code == 200:
                return
        except httpx.TransportError:
            pass
        assert server.process.poll() is None, "the engine ended before it was healthy"
        assert time.monotonic() < end, f"the engine was not healthy within {seconds:g} s"
        time.sleep(0.2)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the whole group: a real engine has children, which a kill of the parent alone would orphan."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(10)
