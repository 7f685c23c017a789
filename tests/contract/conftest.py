"""Each contract test runs against an emulated engine and a real vLLM, with nothing changed but the server."""

from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager

import httpx
import pytest

from support.engines import EngineServer, emulator, real_vllm
from support.openai_calls import NO_KEEPING

Start = Callable[[Sequence[str]], AbstractContextManager[EngineServer]]

STARTS: dict[str, Start] = {"emulator": emulator, "vllm": real_vllm}
# A real server takes half a minute to start on idle cores and several on busy ones.
KINDS = ["emulator", pytest.param("vllm", marks=[pytest.mark.vllm, pytest.mark.timeout(600)])]


@pytest.fixture(scope="session", params=KINDS)
def start(request: pytest.FixtureRequest) -> Start:
    """Start an engine of one kind with more flags; a context manager that ends it."""
    return STARTS[request.param]


@pytest.fixture(scope="session")
def engine(start: Start) -> Iterator[EngineServer]:
    """One server of each kind for all tests that leave it as it was."""
    flags = [
        "--max-num-seqs", "2", "--scheduling-policy", "priority", "--enable-prompt-tokens-details",
        "--enable-request-id-headers",
    ]  # fmt: skip
    with start(flags) as server:
        yield server


@pytest.fixture
async def client(engine: EngineServer) -> AsyncIterator[httpx.AsyncClient]:
    """Talk to the engine that all tests share."""
    async with httpx.AsyncClient(base_url=engine.url, timeout=60, limits=NO_KEEPING) as client:
        yield client


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what the engine said beside a test of it that failed."""
    report = yield
    if report.failed and isinstance(item, pytest.Function):
        for name, server in item.funcargs.items():
            if isinstance(server, EngineServer) and server.log.exists():
                report.sections.append((f"log of {name}", server.said()))
    return report
