"""Emulated instances as processes of their own, so that tests can kill them."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp

SLOW = {"t0": 0.02, "t1": 0.0001, "t2": 1e-9, "c1": 1e-6, "c2": 0.0, "kvTokens": 100_000, "slots": 8}
"""Fifty tokens a second: a call of 100 tokens takes two seconds."""


@dataclass
class EngineProcess:
    """Hold one emulated instance."""

    url: str
    process: asyncio.subprocess.Process

    def kill(self) -> None:
        """End it without a word."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()

    async def running(self) -> int:
        """Return how many calls it runs, by its own count."""
        async with aiohttp.ClientSession() as session, session.get(self.url + "/metrics") as reply:
            page = await reply.text()
        line = next(line for line in page.splitlines() if line.startswith("vllm:num_requests_running"))
        return int(float(line.rpartition(" ")[2]))

    async def fault(self, *specs: str) -> None:
        """Ask for faults."""
        async with (
            aiohttp.ClientSession() as session,
            session.post(self.url + "/emulator/faults", json={"faults": list(specs)}) as reply,
        ):
            assert reply.status == 200, await reply.text()


@contextlib.asynccontextmanager
async def engine_process(
    *arguments: str, output: str = "fixed:100", port: int = 0
) -> AsyncIterator[EngineProcess]:
    """Run an emulated instance of the model ``tiny``."""
    process = await asyncio.create_subprocess_exec(
        *(
            sys.executable,
            "-m",
            "hexflow_emulator",
            "serve",
            "tiny",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
        ),
        *("--profile", json.dumps(SLOW), "--output-tokens", output, "--scheduling-policy", "priority"),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(30):
            lines: list[str] = []
            while "http://" not in (lines or [""])[-1]:
                line = await process.stdout.readline()
                assert line, f"the emulator ended: {lines}"
                lines.append(line.decode())
        yield EngineProcess("http://" + lines[-1].partition("http://")[2].strip(), process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        process._transport.close()  # type: ignore[attr-defined]
