import socket

from hexflow_router.main import listen


def test_connections_send_small_answers_at_once() -> None:
    # asyncio turns Nagle's algorithm off only for sockets whose protocol is named.
    with listen("127.0.0.1", 0, flag="--port") as listener:
        assert listener.proto == socket.IPPROTO_TCP
