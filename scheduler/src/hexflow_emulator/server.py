"""One emulated instance as a process: its socket, its signals, its end.

Under SIGTERM it does as vLLM does: at once, with streams that end as ``abort``; or, with
``--shutdown-timeout``, it finishes what it has while new requests get a 500 and ``/health`` stays well.
"""

import asyncio
import socket
import sys
import time
from pathlib import Path
from types import FrameType

import uvicorn

from hexflow_emulator.app import instance_app
from hexflow_emulator.arguments import EmulatorOptions
from hexflow_emulator.errors import EmulatorError
from hexflow_emulator.instance import EmulatedInstance

GRACE_SECONDS = 3
"""Real seconds that open connections are given to take their last bytes."""
POLL_SECONDS = 0.05


class InstanceServer(uvicorn.Server):
    """Serve an instance, and drain it when told to stop."""

    def __init__(self, config: uvicorn.Config, instance: EmulatedInstance) -> None:
        super().__init__(config)
        self._instance = instance
        self._draining: asyncio.Task[None] | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drain at the first signal, stop at the second."""
        if self._instance.draining:
            super().handle_exit(sig, frame)
            return
        self._instance.draining = True
        self._captured_signals.append(sig)

    async def on_tick(self, counter: int) -> bool:
        """Begin to drain as soon as a signal has come; uvicorn asks ten times a second."""
        if self._instance.draining and self._draining is None:
            self._draining = asyncio.get_running_loop().create_task(self._drain(), name="drain")
        return await super().on_tick(counter)

    async def _drain(self) -> None:
        runner, options = self._instance.runner, self._instance.options
        ends = time.monotonic() + options.shutdown_timeout / options.time_scale
        while not runner.idle and time.monotonic() < ends:  # noqa: ASYNC110 - idle or too late, whichever is first
            await asyncio.sleep(POLL_SECONDS)
        runner.abort_all()
        self.should_exit = True


def serve(options: EmulatorOptions) -> None:
    """Serve one instance until a signal ends it.

    Raises EmulatorError where it cannot start: the port is taken, the book cannot be read.
    """
    instance = EmulatedInstance(options, clock=time.time, sleep=asyncio.sleep)
    for warning in options.warnings:
        sys.stderr.write(f"warning: {warning}\n")
    if wait := instance.faults.value("slow-start"):
        time.sleep(wait / options.time_scale)
    listener = _listen(options)
    where = options.uds or "http://{}:{}".format(*listener.getsockname()[:2])
    config = uvicorn.Config(
        instance_app(instance),
        log_level="warning",
        access_log=False,
        lifespan="off",
        timeout_keep_alive=75,
        timeout_graceful_shutdown=GRACE_SECONDS,
        server_header=False,
    )
    sys.stdout.write(
        f"{options.names[0]} as on {options.gpu}, {options.time_scale:g}x real time, at {where}\n"
    )
    sys.stdout.flush()
    try:
        InstanceServer(config, instance).run(sockets=[listener])
    finally:
        if options.uds:
            Path(options.uds).unlink(missing_ok=True)


def _listen(options: EmulatorOptions) -> socket.socket:
    if options.uds:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        address: str | tuple[str, int] = options.uds
    else:
        family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
        # asyncio sets TCP_NODELAY only where the protocol is named; without it small answers wait 40 ms.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        address = (options.host, options.port)
    try:
        listener.bind(address)
        listener.listen(2048)
    except (OSError, OverflowError) as error:
        listener.close()
        place = options.uds or f"{options.host}:{options.port}"
        raise EmulatorError(
            f"cannot listen on {place}: {error}; choose another with --port, or 0 for a free one"
        ) from error
    listener.setblocking(False)
    return listener
