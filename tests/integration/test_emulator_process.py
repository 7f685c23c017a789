"""The emulator as a process: its port, its mistakes, its deaths, and the time it keeps."""

import asyncio
import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import httpx
import pytest

from hexflow_scheduler import Profile
from support.engines import PROFILE, emulator
from support.openai_calls import a_chat, asked

COMMAND = (sys.executable, "-m", "hexflow_emulator", "serve", "tiny", "--profile", PROFILE)


def refused(*words: str) -> str:
    """Run the emulator, which must not start; return what it says."""
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    return done.stderr


def test_a_port_in_use_is_one_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        message = refused("--host", "127.0.0.1", "--port", str(port))
    assert f"cannot listen on 127.0.0.1:{port}" in message
    assert "choose another with --port" in message


def test_a_missing_book_is_one_sentence() -> None:
    assert "cannot read the answer book nowhere.yaml" in refused("--book", "nowhere.yaml")


def test_an_unknown_argument_is_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    process = subprocess.Popen(
        [*COMMAND, "--uds", str(path), "--gpu-memory-utilization", "0.9"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert str(path) in process.stdout.readline()
        client = httpx.Client(transport=httpx.HTTPTransport(uds=str(path)))
        with client:
            assert client.get("http://emulator/health").status_code == 200
    finally:
        process.terminate()
        _, errors = process.communicate(timeout=20)
    assert "warning: --gpu-memory-utilization has no effect" in errors


async def test_a_process_that_dies_breaks_all_it_has() -> None:
    with emulator(["--fault", "die-after:3"]) as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=20) as client:
            calls = [
                asyncio.create_task(client.post("/v1/chat/completions", json=a_chat(max_tokens=2000)))
                for _ in range(2)
            ]
            await asyncio.sleep(0.5)
            calls.append(asyncio.create_task(client.post("/v1/chat/completions", json=a_chat())))
            for result in await asyncio.gather(*calls, return_exceptions=True):
                assert isinstance(result, httpx.TransportError)
        assert server.process.wait(10) == 1


@pytest.mark.parametrize("stream", [True, False])
async def test_a_cut_connection_is_seen_as_one(stream: bool) -> None:
    with emulator(["--fault", "cut:1:tokens=3"]) as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=20) as client:
            with pytest.raises(httpx.RemoteProtocolError):
                await client.post("/v1/chat/completions", json=a_chat(max_tokens=100, stream=stream))
            await asked(client, a_chat())


def test_a_slow_start_opens_the_port_late() -> None:
    began = time.monotonic()
    with emulator(["--fault", "slow-start:20", "--time-scale", "10"]):
        assert time.monotonic() - began > 2


@pytest.mark.parametrize("scale", [1, 4, 10])
async def test_calls_take_the_time_of_the_profile_whatever_the_scale(scale: int) -> None:
    """The bound is generous, for machines that are busy; README.md has what is measured on idle ones."""
    values = json.loads(PROFILE)
    profile = Profile(**{("kv_tokens" if k == "kvTokens" else k): v for k, v in values.items()}, slots=8)
    slow = json.dumps({**values, "t0": 0.03})
    with emulator(
        ["--time-scale", str(scale)], words=["--output-tokens", "fixed:60", "--profile", slow]
    ) as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
            await asked(client, a_chat(max_tokens=1))
            seconds, prompt_tokens = [], 0
            for number in range(5):
                began = time.monotonic()
                answer = await asked(client, a_chat(f"{number} " + "words " * 300, max_tokens=60))
                seconds.append((time.monotonic() - began) * scale)
                prompt_tokens = answer["usage"]["prompt_tokens"]
    expected = 0.015 + profile.prefill_seconds(prompt_tokens) + 60 * (0.03 + 0.0003)
    assert median(seconds) == pytest.approx(expected, rel=0.25)
    assert min(seconds) > 0.98 * expected
