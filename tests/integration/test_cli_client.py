"""What `hexflow ask` says when the other side is absent, silent, strange or broken: always one paragraph and a code."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager

import pytest
from aiohttp import web

from hexflow_cli.client import RouterClient
from hexflow_cli.exitcode import CommandError, ExitCode
from support.answers import an_answer

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def a_server(handler: Handler) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def ask(url: str, *, silence_seconds: float = 10.0) -> list[str]:
    async with (
        RouterClient(url, api_key="k", silence_seconds=silence_seconds) as client,
        aclosing(client.ask("w", {"question": "?"})) as events,
    ):
        return [event.name async for event in events]


async def refused(url: str, *, silence_seconds: float = 10.0) -> CommandError:
    with pytest.raises(CommandError) as caught:
        await ask(url, silence_seconds=silence_seconds)
    return caught.value


def answering(status: int, body: object) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        return web.json_response(body, status=status)

    return handler


def streaming(*pieces: bytes, then: Callable[[web.Request], Awaitable[None]] | None = None) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        if then:
            await then(request)
        return response

    return handler


async def forever(request: web.Request) -> None:
    await asyncio.sleep(3600)


async def break_off(request: web.Request) -> None:
    assert request.transport is not None
    request.transport.abort()


async def test_the_question_goes_out_with_the_key_and_the_events_come_back_up_to_the_answer() -> None:
    seen: dict[str, object] = {}
    answer = json.dumps(an_answer().data()).encode()
    stream = streaming(
        b"event: query.accepted\ndata: {}\n\n", b"event: query.finished\ndata: " + answer + b"\n\n"
    )

    async def handler(request: web.Request) -> web.StreamResponse:
        seen.update(path=request.path, key=request.headers["authorization"], body=await request.json())
        return await stream(request)

    async with a_server(handler) as url:
        assert await ask(url + "/") == ["query.accepted", "query.finished"]
    assert seen == {
        "path": "/v1/workflows/w/queries",
        "key": "Bearer k",
        "body": {"question": "?", "stream": True},
    }


async def test_an_answer_of_many_megabytes_is_read() -> None:
    piece = b"event: query.finished\ndata: " + b"x" * 3_000_000 + b"\n\n"
    async with a_server(streaming(piece)) as url:
        assert await ask(url) == ["query.finished"]


async def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    error = await refused(f"http://127.0.0.1:{port}")
    assert str(error).startswith(f"No router at http://127.0.0.1:{port} (")
    assert "`hexflow up`" in str(error)
    assert error.code == ExitCode.UNREACHABLE


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, ExitCode.USAGE), (404, ExitCode.USAGE), (413, ExitCode.USAGE), (429, 4), (503, 4)],
)
async def test_the_routers_own_words_are_passed_on(status: int, code: int) -> None:
    body = {"error": {"message": "There is no workflow 'x'; there is: y.", "type": "t", "code": "not_found"}}
    async with a_server(answering(status, body)) as url:
        error = await refused(url)
    assert (str(error), error.code, error.reason) == (
        "There is no workflow 'x'; there is: y.",
        code,
        "not_found",
    )


async def test_a_missing_key_is_asked_for() -> None:
    async with a_server(answering(401, {"error": {"message": "Who are you?"}})) as url:
        assert "--api-key" in str(await refused(url))


@pytest.mark.parametrize("body", ["hello", {"error": "no object"}, [1]])
async def test_a_server_that_is_no_router_is_called_so(body: object) -> None:
    async with a_server(answering(200, body)) as url:
        error = await refused(url)
    assert "is no HexFlow router" in str(error)
    assert error.code == ExitCode.UNREACHABLE


async def test_a_router_that_says_nothing_at_all() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        await forever(request)
        raise AssertionError

    async with a_server(handler) as url:
        assert "does not answer" in str(await refused(url, silence_seconds=0.2))


async def test_a_router_that_falls_silent_in_the_middle() -> None:
    async with a_server(streaming(b"event: query.accepted\ndata: {}\n\n", then=forever)) as url:
        error = await refused(url, silence_seconds=0.2)
    assert (error.reason, error.code) == ("RouterSilent", ExitCode.UNREACHABLE)


@pytest.mark.parametrize("then", [None, break_off], ids=["ends", "breaks"])
async def test_a_stream_without_an_answer_is_an_error(
    then: Callable[[web.Request], Awaitable[None]] | None,
) -> None:
    async with a_server(streaming(b"event: query.accepted\ndata: {}\n\n", then=then)) as url:
        error = await refused(url)
    assert (error.reason, error.code) == ("StreamBroken", ExitCode.UNREACHABLE)


async def test_the_connection_closes_when_nobody_listens_any_more() -> None:
    gone = asyncio.Event()

    async def until_gone(request: web.Request) -> None:
        try:
            while True:
                await asyncio.sleep(0.02)
                assert request.transport is not None
                if request.transport.is_closing():
                    return
        except (AssertionError, asyncio.CancelledError):
            return
        finally:
            gone.set()

    async with a_server(streaming(b"event: query.accepted\ndata: {}\n\n", then=until_gone)) as url:
        async with RouterClient(url) as client, aclosing(client.ask("w", {"question": "?"})) as events:
            assert (await anext(events)).name == "query.accepted"
        await asyncio.wait_for(gone.wait(), timeout=5)
