"""The bounds on requests, in front of a FastAPI app as in front of the OpenAI surface."""

import asyncio
import json

import aiohttp
from fastapi import FastAPI, Request

from hexflow_router.bounds import BoundedRequests
from support.serving import serving


def an_app() -> BoundedRequests:
    app = FastAPI()

    @app.post("/")
    async def size(request: Request) -> int:
        return len(await request.body())

    return BoundedRequests(app, largest_body=1000)


async def raw(url: str, *pieces: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    for piece in pieces:
        writer.write(piece)
        await asyncio.sleep(0.01)
    try:
        return await asyncio.wait_for(reader.read(65536), 5)
    finally:
        writer.close()


async def test_a_body_within_the_bound_passes_and_a_larger_one_does_not() -> None:
    async with serving(an_app()) as url, aiohttp.ClientSession() as session:
        async with session.post(url, data=b"x" * 1000) as reply:
            assert (reply.status, await reply.json()) == (200, 1000)
        async with session.post(url, data=b"x" * 1001) as reply:
            assert reply.status == 413
            assert (await reply.json())["error"]["code"] == "body_too_large"


async def test_a_length_that_is_only_announced_is_refused() -> None:
    async with serving(an_app()) as url:
        reply = await raw(url, b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999\r\n\r\n")
        assert reply.startswith(b"HTTP/1.1 413 ")


async def test_many_headers_count_together_and_across_packets() -> None:
    many = [f"x-{number}: {'a' * 1000}\r\n".encode() for number in range(80)]
    async with serving(an_app()) as url:
        reply = await raw(url, b"POST / HTTP/1.1\r\nhost: x\r\n", *many, b"\r\n")
        assert reply.startswith(b"HTTP/1.1 431 ")
        assert json.loads(reply.partition(b"\r\n\r\n")[2])["error"]["code"] == "header_too_large"


async def test_a_long_path_counts_too() -> None:
    async with serving(an_app()) as url:
        reply = await raw(url, b"GET /" + b"a" * (1 << 20) + b" HTTP/1.1\r\nhost: x\r\n\r\n")
        assert reply.startswith(b"HTTP/1.1 431 ")


async def test_large_bodies_on_one_connection_are_not_taken_for_headers() -> None:
    request = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 900\r\n\r\n" + b"x" * 900
    async with serving(an_app()) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        for _ in range(80):
            writer.write(request)
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
            assert await reader.readexactly(3) == b"900"
        writer.close()
