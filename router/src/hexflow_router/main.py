"""The router as a process: two ports, one event loop, signals.

SIGTERM and SIGINT drain (readiness off, nothing new, what runs may finish); a second one ends at once.
Whatever keeps the process from starting is one readable sentence and exit status 2.
"""

import asyncio
import contextlib
import logging
import resource
import signal
import socket
import sys
from collections.abc import Iterator, Sequence

import uvicorn
import uvloop
from starlette.types import ASGIApp

from hexflow_api import ResourceError
from hexflow_router.assembly import Router, running_router
from hexflow_router.bounds import BoundedProtocol
from hexflow_router.eventlog import EventLogError
from hexflow_router.journal import JournalError
from hexflow_router.settings import Settings, SettingsError

_log = logging.getLogger("hexflow.router")

CANNOT_START = 2
"""Exit status of a router that could not start."""
CLOSING_SECONDS = 2.0
"""Real seconds that connections get to close once nothing runs."""


class StartError(RuntimeError):
    """The router cannot start; the text says what to do."""


class _Server(uvicorn.Server):
    """A server that leaves the signals to the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a router until a signal ends it; return the exit status."""
    try:
        settings = Settings.from_arguments(sys.argv[1:] if arguments is None else arguments)
        # Libraries log what passes through them at lower levels: statements, rows, headers.
        logging.basicConfig(
            level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr
        )
        logging.getLogger("hexflow").setLevel(settings.log_level.upper())
        _open_as_many_files_as_may_be()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(settings))
    except (SettingsError, ResourceError, JournalError, EventLogError, StartError) as problem:
        sys.stderr.write(f"hexflow router cannot start: {problem}\n")
        return CANNOT_START
    except KeyboardInterrupt:
        return 130
    return 0


def _open_as_many_files_as_may_be() -> None:
    # The usual limit is low for the sake of programs that use select(); each client needs a file, and one more its engine.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def listen(host: str, port: int, *, flag: str) -> socket.socket:
    """Return a socket that listens. Raises StartError with what to do where the port is taken."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # asyncio sets TCP_NODELAY only where the protocol is named; without it small answers wait 40 ms.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, port))
            listener.listen(2048)
            listener.setblocking(False)
        except BaseException:
            listener.close()
            raise
    except OSError as problem:
        reason = (problem.strerror or str(problem)).lower()
        raise StartError(
            f"Port {port} of {host} cannot be listened on ({reason}): stop what listens there, or choose"
            f" another with {flag} (0 takes a free one)."
        ) from None
    return listener


async def _serve(settings: Settings) -> None:
    tenants = listen(settings.host, settings.port, flag="--port")
    try:
        admin = listen(settings.admin_host, settings.admin_port, flag="--admin-port")
    except StartError:
        tenants.close()
        raise
    with tenants, admin:
        async with running_router(settings) as router:
            await _until_stopped(settings, router, tenants, admin)


async def _until_stopped(
    settings: Settings, router: Router, tenants: socket.socket, admin: socket.socket
) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _on_signal, stop)
    servers = [_server(router.app), _server(router.admin_app)]
    serving = [
        loop.create_task(server.serve(sockets=[listener]))
        for server, listener in zip(servers, (tenants, admin), strict=True)
    ]
    stopping = loop.create_task(stop.wait())
    _log.info("Questions and calls at %s", _address(tenants))
    _log.info("Metrics and debugging at %s", _address(admin))
    await asyncio.wait((stopping, *serving), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    _log.info("Stopping: running queries have %g seconds to end.", settings.grace_seconds)
    await router.drain(settings.grace_seconds)
    for server in servers:
        server.should_exit = True
    await asyncio.gather(*serving, return_exceptions=True)


def _on_signal(stop: asyncio.Event) -> None:
    if stop.is_set():
        _log.warning("Told to stop a second time: ending at once.")
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTERM)
    stop.set()


def _server(app: ASGIApp) -> _Server:
    return _Server(
        uvicorn.Config(
            app,
            http=BoundedProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=int(CLOSING_SECONDS),
        )
    )


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
