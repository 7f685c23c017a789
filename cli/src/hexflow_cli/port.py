"""TCP ports of this machine: find a free one, and say plainly when the wanted one is taken."""

import socket

import psutil

from hexflow_cli.exitcode import CommandError, ExitCode

_LARGEST = 65_535


def free_port(host: str) -> int:
    """Return a port of `host` that nobody listens on at this moment.

    Somebody may take it before it is used; whoever uses it must be ready to ask for another.
    """
    family, _, _, _, address = _resolve(host, 0)
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        try:
            listener.bind(address)
        except OSError as error:
            raise _not_here(host, error) from error
        return int(listener.getsockname()[1])


def is_free(host: str, port: int) -> bool:
    """Return whether a server could listen on that port now."""
    return _hindrance(host, port) is None


def _hindrance(host: str, port: int) -> OSError | None:
    family, _, _, _, address = _resolve(host, port)
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
            listener.listen()
        except OSError as error:
            return error
    return None


def claim(host: str, port: int, *, option: str) -> int:
    """Return `port` if a server may listen there; raise CommandError with whoever has it otherwise."""
    if not 0 < port <= _LARGEST:
        raise CommandError(
            f"{option} {port} is no port: write a number from 1 to {_LARGEST}, or leave {option} out for a free one.",
            code=ExitCode.USAGE,
            reason="InvalidPort",
        )
    hindrance = _hindrance(host, port)
    if hindrance is None:
        return port
    free_port(host)  # says so where the address itself is the trouble
    if isinstance(hindrance, PermissionError):
        raise CommandError(
            f"Port {port} of {host} is only for the administrator. Choose one from 1024 upwards with {option}.",
            code=ExitCode.ENVIRONMENT,
            reason="PortForbidden",
        )
    raise CommandError(
        f"Port {port} of {host} is in use{_owner(port)}. Choose another with {option}, or leave {option} out "
        "and a free one is found.",
        code=ExitCode.ENVIRONMENT,
        reason="PortInUse",
    )


def preferred(host: str, port: int) -> int:
    """Return `port` if it is free, else any free one."""
    return port if is_free(host, port) else free_port(host)


def _resolve(host: str, port: int) -> tuple[int, int, int, str, tuple[object, ...]]:
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except OSError as error:
        raise _not_here(host, error) from error


def _not_here(host: str, error: OSError) -> CommandError:
    return CommandError(
        f"--host {host} is no address of this machine ({error.strerror}). Use 127.0.0.1, or 0.0.0.0 for all.",
        code=ExitCode.USAGE,
        reason="InvalidHost",
    )


def _owner(port: int) -> str:
    try:
        listening = [
            item.pid
            for item in psutil.net_connections(kind="tcp")
            if item.status == psutil.CONN_LISTEN and item.laddr and item.laddr.port == port and item.pid
        ]
        return f" by {psutil.Process(listening[0]).name()} (pid {listening[0]})" if listening else ""
    except (psutil.Error, OSError):  # other people's sockets are hidden on some systems
        return ""
