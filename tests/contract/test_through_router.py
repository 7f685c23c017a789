"""Contract: a plain OpenAI client talks to the engine through the router, and cannot tell."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest
from openai import AsyncOpenAI, NotFoundError

from hexflow_router.assembly import running_router
from hexflow_router.settings import Settings
from support.engines import CONTEXT, EngineServer
from support.openai_calls import LONG, RUNNING, a_chat, in_background, lines, streamed, text_of, until_metric
from support.resources import pool_data
from support.router import write_yaml
from support.serving import serving


@asynccontextmanager
async def a_router(engine: EngineServer, folder: Path, **settings: float) -> AsyncIterator[str]:
    """Run a router whose one pool is the engine, named by its address; yield the router's own."""
    pool = pool_data(
        "outside", gpuType="CPU", model={"name": "tiny"}, tensorParallelSize=None, maxModelLen=CONTEXT,
        maxNumSeqs=2, priorityScheduling=True, endpoints=[{"url": engine.url}],
        profile={"inline": {"t0": 0.002, "t1": 0.0003, "t2": 1e-8, "c1": 1e-5, "c2": 0, "kvTokens": 131072}},
    )  # fmt: skip
    write_yaml(folder / "pools.yaml", pool)
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(
            running_router(
                Settings.model_validate({"config": (folder,), "port": 0, "admin_port": 0, **settings})
            )
        )
        url = await stack.enter_async_context(serving(running.app))
        async with httpx.AsyncClient(base_url=url) as client, asyncio.timeout(60):
            while (await client.get("/readyz")).status_code != 200:
                await asyncio.sleep(0.05)
        yield url


@pytest.fixture
async def router(engine: EngineServer, tmp_path: Path) -> AsyncIterator[str]:
    """Run a router before the engine that all tests share."""
    async with a_router(engine, tmp_path) as url:
        yield url


@pytest.fixture
async def openai(router: str) -> AsyncIterator[AsyncOpenAI]:
    """Return OpenAI's own client of the router."""
    async with AsyncOpenAI(base_url=f"{router}/v1", api_key="none", max_retries=0, timeout=60) as client:
        yield client


async def test_a_streamed_call_arrives_token_by_token(openai: AsyncOpenAI) -> None:
    stream = await openai.chat.completions.create(
        model="tiny",
        messages=[{"role": "user", "content": "hello"}],
        max_tokens=40,
        temperature=0,
        stream=True,
        stream_options={"include_usage": True},
        extra_body={"ignore_eos": True},
    )
    chunks = [chunk async for chunk in stream]
    choices = [chunk.choices[0] for chunk in chunks if chunk.choices]
    assert choices[0].delta.role == "assistant"
    assert choices[-1].finish_reason == "length"
    assert len(chunks) > 10
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 40


async def test_a_whole_answer_is_the_engines_own(openai: AsyncOpenAI, client: httpx.AsyncClient) -> None:
    body = a_chat(max_tokens=20)
    direct = (await client.post("/v1/chat/completions", json=body)).json()
    through = await openai.chat.completions.create(
        model="tiny", messages=body["messages"], max_tokens=20, temperature=0, extra_body={"ignore_eos": True}
    )
    assert through.choices[0].message.content == direct["choices"][0]["message"]["content"]
    assert through.usage is not None
    assert through.usage.prompt_tokens == direct["usage"]["prompt_tokens"]


async def test_a_stream_looks_the_same_through_the_router(router: str, client: httpx.AsyncClient) -> None:
    body = a_chat(max_tokens=20, stream_options={"include_usage": True})
    async with httpx.AsyncClient(base_url=router, timeout=60) as through:
        direct, relayed = [await streamed(each, body) for each in (client, through)]
    assert text_of(relayed) == text_of(direct)
    for place in (0, -2, -1):
        assert {**relayed[place], "id": "", "created": 0}.keys() == direct[place].keys()
    assert relayed[0]["choices"] == direct[0]["choices"]
    assert relayed[-1]["usage"]["completion_tokens"] == 20


async def test_an_engines_refusal_is_passed_through(router: str, client: httpx.AsyncClient) -> None:
    body = a_chat(max_tokens=CONTEXT + 1)
    async with httpx.AsyncClient(base_url=router, timeout=60) as through:
        answers = [await each.post("/v1/chat/completions", json=body) for each in (client, through)]
    assert [answer.status_code for answer in answers] == [400, 400]


async def test_an_unknown_model_is_an_openai_error(openai: AsyncOpenAI) -> None:
    with pytest.raises(NotFoundError, match="nope"):
        await openai.chat.completions.create(model="nope", messages=[{"role": "user", "content": "x"}])


async def test_leaving_the_router_frees_the_engine(router: str, client: httpx.AsyncClient) -> None:
    async with httpx.AsyncClient(base_url=router, timeout=60) as through:
        for stream in (True, False):
            body = a_chat(max_tokens=LONG, stream=stream)
            async with in_background(through.post("/v1/chat/completions", json=body)) as calls:
                await until_metric(client, RUNNING, 1, calls=calls)
            await until_metric(client, RUNNING, 0, seconds=5)


async def test_a_call_ends_with_an_error_when_its_engine_is_told_to_stop(
    start: Callable[[Sequence[str]], AbstractContextManager[EngineServer]], tmp_path: Path
) -> None:
    """Also where the engine leaves its streams open and says no more, as vLLM may."""
    with start(["--max-num-seqs", "2"]) as server:
        async with (
            a_router(server, tmp_path, idle_seconds=5) as url,
            httpx.AsyncClient(base_url=url, timeout=60) as through,
            through.stream(
                "POST", "/v1/chat/completions", json=a_chat(max_tokens=LONG, stream=True)
            ) as response,
        ):
            data = lines(response)
            for _ in range(3):
                await anext(data)
            server.terminate()
            rest = [line async for line in data]
        # vLLM may report the error itself, and then closes its stream in the usual way.
        told = rest[:-1] if rest[-1] == "[DONE]" else rest
        assert '"error"' in told[-1]
        assert "[DONE]" not in told
