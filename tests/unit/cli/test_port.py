import os
import socket
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from hexflow_cli import port
from hexflow_cli.exitcode import CommandError, ExitCode


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield int(server.getsockname()[1])


def test_a_free_port_can_be_listened_on() -> None:
    with socket.create_server(("127.0.0.1", port.free_port("127.0.0.1"))):
        pass


def test_a_port_in_use_is_named_with_its_owner_and_the_remedy(taken: int) -> None:
    with pytest.raises(CommandError) as caught:
        port.claim("127.0.0.1", taken, option="--port")
    message = str(caught.value)
    assert f"Port {taken} of 127.0.0.1 is in use by {psutil.Process().name()} (pid {os.getpid()})." in message
    assert "--port" in message
    assert (caught.value.code, caught.value.reason) == (ExitCode.ENVIRONMENT, "PortInUse")


def test_the_usual_port_gives_way_to_a_free_one(taken: int) -> None:
    assert port.preferred("127.0.0.1", taken) != taken


def test_a_port_that_only_the_administrator_may_use_is_not_called_in_use() -> None:
    first_open = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")
    if not first_open.exists() or int(first_open.read_text()) <= 1:
        pytest.skip("everybody may use every port here")
    me = os.geteuid()
    if me == 0:
        os.seteuid(65_534)
    try:
        with pytest.raises(CommandError, match="only for the administrator"):
            port.claim("127.0.0.1", 1, option="--port")
    finally:
        os.seteuid(me)


@pytest.mark.parametrize("number", [0, -1, 65536])
def test_a_number_that_is_no_port_is_refused(number: int) -> None:
    with pytest.raises(CommandError, match="from 1 to 65535") as caught:
        port.claim("127.0.0.1", number, option="--port")
    assert caught.value.code == ExitCode.USAGE


def test_a_host_that_is_not_here_is_refused() -> None:
    with pytest.raises(CommandError, match="no address of this machine"):
        port.free_port("no such host")


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1"])
def test_an_address_of_another_machine_is_refused(host: str) -> None:
    with pytest.raises(CommandError, match="no address of this machine"):
        port.preferred(host, 8080)
    with pytest.raises(CommandError, match="no address of this machine"):
        port.claim(host, 8080, option="--port")
