"""Measure how well an emulated instance keeps its profile's time: ``python tests/bench/emulated_time.py``.

Calls go one after the other, so that the profile alone says how long each takes; the rest is error, of
the sleep, of HTTP and of whatever else the machine does. Prints one row for each time scale and the load
of the machine, without which the figures mean nothing.
"""

import asyncio
import os
import sys
import time
from statistics import median

import httpx

from hexflow_emulator.arguments import parse

FLAGS = ("--gpu", "A100-80GB", "--tensor-parallel-size", "2", "--output-tokens", "lognormal:250:0.6")
MODEL = "Qwen/Qwen2.5-Coder-32B-Instruct"
CALLS = 12


def say(line: str) -> None:
    """Print a line at once: a row takes a while."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def errors_at(scale: float) -> list[tuple[float, float]]:
    """Return the predicted emulated seconds of each call and its relative error."""
    profile = parse(["serve", MODEL, *FLAGS], environment={}).profile
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "hexflow_emulator", "serve", MODEL, *FLAGS, "--time-scale", f"{scale:g}",
        "--host", "127.0.0.1", "--port", "0", stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        url = (await process.stdout.readline()).decode().split()[-1]
        seen = []
        async with httpx.AsyncClient(base_url=url, timeout=600) as client:
            for number in range(CALLS + 1):
                body = {
                    "messages": [
                        {
                            "role": "user",
                            "content": f"{number} " + "SELECT name FROM customers; " * (90 + 20 * number),
                        }
                    ],
                    "seed": number,
                }
                began = time.perf_counter()
                usage = (await client.post("/v1/chat/completions", json=body)).json()["usage"]
                seconds = (time.perf_counter() - began) * scale
                prompt, output = usage["prompt_tokens"], usage["completion_tokens"]
                expected = 0.015 + profile.prefill_seconds(prompt) + profile.decode_seconds(prompt, output)
                seen.append((expected, seconds / expected - 1))
        return seen[1:]
    finally:
        process.terminate()
        await process.wait()


async def main() -> None:
    """Print the table."""
    say(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs, {CALLS} calls a row")
    say("| time scale | emulated seconds of a call (median) | error median | error largest |")
    say("| --- | --- | --- | --- |")
    for scale in (1, 2, 4, 10, 30):
        seen = await errors_at(scale)
        errors = [error for _, error in seen]
        say(
            f"| {scale} | {median(expected for expected, _ in seen):.2f} | {median(errors):+.2%} | {max(errors, key=abs):+.2%} |"
        )


if __name__ == "__main__":
    asyncio.run(main())
