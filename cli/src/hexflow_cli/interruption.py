"""Run a command's coroutine so that ctrl-C, SIGTERM and SIGHUP end it in order, with its clean-up done."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any

from hexflow_cli.exitcode import ExitCode

_CODES = {
    signal.SIGINT: ExitCode.INTERRUPTED,
    signal.SIGTERM: ExitCode.TERMINATED,
    signal.SIGHUP: ExitCode.TERMINATED,
}


def run(command: Coroutine[Any, Any, int]) -> int:
    """Run a command to its end and return its exit code; a signal cancels it once and further ones are ignored."""
    return asyncio.run(_guarded(command))


async def _guarded(command: Coroutine[Any, Any, int]) -> int:
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(command)
    received: list[signal.Signals] = []

    def stop(number: signal.Signals) -> None:
        if not received:
            task.cancel()
        received.append(number)

    for number in _CODES:
        loop.add_signal_handler(number, stop, number)
    try:
        return await task
    except asyncio.CancelledError:
        if not received:
            raise
        return _CODES[received[0]]
    finally:
        for number in _CODES:
            loop.remove_signal_handler(number)
