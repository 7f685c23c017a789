"""The bounds on requests, in front of a FastAPI app as in front of the OpenAI surface."""

import asyncio
import json
from collections.abc import AsyncIterator

import aiohttp
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse

from hexflow_router.bounds import LARGEST_HEADER, LONGEST_PIPELINE, BoundedProtocol, BoundedRequests
from support.serving import serving


def an_app() -> BoundedRequests:
    app = FastAPI()

    @app.post("/")
    async def size(request: Request) -> int:
        return len(await request.body())

    @app.post("/headers")
    async def headers(request: Request) -> dict[str, str]:
        return dict(request.headers)

    @app.get("/endless")
    async def endless() -> StreamingResponse:
        async def words() -> AsyncIterator[bytes]:
            while True:
                await asyncio.sleep(0)
                yield b"word " * 10_000

        return StreamingResponse(words())

    return BoundedRequests(app, largest_body=1000)


class Hasty(BoundedProtocol):
    request_seconds = 0.2
    stalled_seconds = 0.2


CHUNKED = b"POST /headers HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n"


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


async def test_a_trailer_adds_nothing_to_the_header() -> None:
    async with serving(an_app()) as url:
        reply = await raw(url, CHUNKED, b"0\r\nauthorization: Bearer late\r\n\r\n")
        assert reply.startswith(b"HTTP/1.1 200 ")
        assert b"late" not in reply


async def test_a_trailer_or_a_chunk_s_extension_without_end_is_refused() -> None:
    for endless in (b"0\r\n" + b"a: b\r\n" * 1000, b"2;" + b"x" * 6000):
        async with serving(an_app()) as url:
            reply = await raw(url, CHUNKED, endless, *[endless[3:]] * (LARGEST_HEADER // 5000))
            assert reply.startswith(b"HTTP/1.1 431 ")


async def test_a_body_in_the_smallest_chunks_is_taken() -> None:
    async with serving(an_app()) as url:
        head = CHUNKED.replace(b"/headers", b"/").partition(b"2\r\n{}")[0]
        reply = await raw(url, head, b"1\r\nx\r\n" * 1000, b"0\r\n\r\n")
        assert reply.endswith(b"1000")


async def test_what_is_no_http_is_refused_like_everything_else() -> None:
    async with serving(an_app()) as url:
        reply = await raw(url, b"\x16\x03\x01 hello\r\n\r\n")
        assert reply.startswith(b"HTTP/1.1 400 ")
        assert json.loads(reply.partition(b"\r\n\r\n")[2])["error"]["code"] == "invalid_http"


async def test_a_request_that_is_not_whole_in_time_is_refused() -> None:
    for part in (b"GET / HTTP/1.1\r\nhos", b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{"):
        async with serving(an_app(), protocol=Hasty) as url:
            reply = await raw(url, part)
            assert reply.startswith(b"HTTP/1.1 408 ")
            assert json.loads(reply.partition(b"\r\n\r\n")[2])["error"]["code"] == "request_timeout"


async def test_a_connection_that_says_nothing_is_closed() -> None:
    async with serving(an_app(), protocol=Hasty) as url:
        assert await raw(url) == b""


async def test_one_client_too_many_is_told_and_leaves_files_for_the_engines() -> None:
    class Small(BoundedProtocol):
        def most_connections(self) -> int:
            return 2

    async with serving(an_app(), protocol=Small) as url:
        port = int(url.rpartition(":")[2])
        others = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        reply = await raw(url)
        assert reply.startswith(b"HTTP/1.1 503 ")
        assert json.loads(reply.partition(b"\r\n\r\n")[2])["error"]["code"] == "too_many_connections"
        for _, writer in others:
            writer.close()
            await writer.wait_closed()
        while b"HTTP/1.1 200" not in await raw(url, CHUNKED, b"0\r\n\r\n"):
            await asyncio.sleep(0.05)


async def test_an_answer_that_is_read_may_take_longer_than_a_request() -> None:
    async with serving(an_app(), protocol=Hasty) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n\r\n")
        loop = asyncio.get_running_loop()
        start = loop.time()
        while loop.time() < start + 0.6:
            assert await asyncio.wait_for(reader.read(1 << 20), 5)
        writer.close()


async def test_a_client_that_does_not_read_its_answer_is_cut_off() -> None:
    async with serving(an_app(), protocol=Hasty) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]), limit=1000)
        writer.write(b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n")
        await asyncio.sleep(1)
        try:
            async with asyncio.timeout(10):
                while await reader.read(1 << 20):
                    pass
        except ConnectionError:
            pass
        writer.close()


async def test_requests_queued_without_end_on_one_connection_end_it() -> None:
    request = b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n"
    async with serving(an_app()) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(request * (LONGEST_PIPELINE + 2))
        try:
            async with asyncio.timeout(10):
                while await reader.read(1 << 20):
                    pass
        except ConnectionError:
            pass
        writer.close()
