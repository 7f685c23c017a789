"""The router's data path put together for tests: kernel, driver, discovery and the OpenAI surface."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hexflow_router.auth import Doorkeeper
from hexflow_router.breaker import BreakerRule
from hexflow_router.catalogue import Catalogue, WorkflowTerms
from hexflow_router.discovery import Discovery
from hexflow_router.driver import Driver
from hexflow_router.exchange import UpstreamRequest
from hexflow_router.fleet import PoolSetup
from hexflow_router.metrics import Metrics
from hexflow_router.openai import OpenAIDoor
from hexflow_router.upstream import Address, HttpUpstream, TimeOuts, Upstream
from hexflow_router.watch import ProbeRule
from hexflow_scheduler import Call, InstanceState, Kernel, Policy, Profile
from support.waiting import eventually

FAST = Profile(t0=0.002, t1=0.0001, t2=1e-9, c1=1e-6, c2=0.0, kv_tokens=100_000, slots=32)
"""A profile under which tests take no time."""
BODY = b'{"model":"tiny","messages":[{"role":"user","content":"hi"}]}'
STREAMED = b'{"model":"tiny","stream":true,"messages":[{"role":"user","content":"hi"}]}'
_numbers = itertools.count(1)


def a_pool(name: str = "a100", *urls: str, **given: Any) -> PoolSetup:
    """Return a pool with endpoints at ``urls``."""
    usual: dict[str, Any] = {"gpu_type": "A100-80GB", "model": "tiny", "profile": FAST}
    return PoolSetup(name=name, endpoints=tuple(Address(url=url) for url in urls), **{**usual, **given})


def a_request(
    *, body: bytes = BODY, ours: bool = False, stream: bool = False, **given: Any
) -> UpstreamRequest:
    """Return a call to release; ``ours`` for one of our own, which may be tried again at any time."""
    number = next(_numbers)
    now = time.time()
    usual: dict[str, Any] = {
        "call_id": f"call-{number}",
        "query_id": f"call-{number}",
        "model": "tiny",
        "prompt_tokens": 10,
        "max_tokens": 50,
        "query_arrival": now,
        "deadline": now + 60 if ours else None,
    }
    return UpstreamRequest(
        call=Call(**{**usual, **given}),
        path="/v1/chat/completions",
        body=body,
        stream=stream,
        retry_after_first_byte=ours,
    )


@dataclass
class DataPath:
    """Hold the parts."""

    driver: Driver
    discovery: Discovery
    door: OpenAIDoor
    metrics: Metrics

    def value(self, name: str, **labels: str) -> float:
        """Return the value of a metric, 0 where it has none."""
        return self.metrics.registry.get_sample_value(name, labels) or 0.0

    async def until(self, condition: Callable[[], bool], *, seconds: float = 10.0) -> None:
        """Wait for a condition."""
        await eventually(condition, seconds=seconds)

    def any_ready(self) -> bool:
        """Return whether at least one instance takes calls."""
        return any(instance.state is InstanceState.READY for instance in self.driver.instances())

    def running(self) -> int:
        """Return how many calls run, by the kernel's own account."""
        return sum(len(shown.running) for shown in self.driver.kernel.view().instances)


@contextlib.asynccontextmanager
async def watching(discovery: Discovery) -> AsyncIterator[None]:
    """Let discovery watch while the block runs."""
    task = asyncio.create_task(discovery.run())
    await asyncio.sleep(0)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@contextlib.asynccontextmanager
async def data_path(
    *pools: PoolSetup,
    policy: str = "LeastOutstanding",
    time_outs: TimeOuts | None = None,
    upstream: Upstream | None = None,
    probe_rule: ProbeRule | None = None,
    breaker_rule: BreakerRule | None = None,
    workflows: Mapping[str, WorkflowTerms] | None = None,
    doorkeeper: Doorkeeper | None = None,
    look: bool = True,
    **door: Any,
) -> AsyncIterator[DataPath]:
    """Run a data path over the pools; every instance was looked at once, and is not looked at again by itself."""
    metrics = Metrics()
    driver = Driver(
        Kernel(Policy.named(policy)),
        upstream=upstream or HttpUpstream(connect_seconds=1.0),
        clock=time.time,
        time_outs=time_outs or TimeOuts(first_byte_seconds=5, idle_seconds=5, total_seconds=20),
        metrics=metrics,
    )
    discovery = Discovery(
        driver, probe_rule=probe_rule or ProbeRule(time_out_seconds=2), breaker_rule=breaker_rule
    )
    discovery.configure(pools)
    catalogue = Catalogue(
        models={
            pool.model: frozenset(each.name for each in pools if each.model == pool.model) for pool in pools
        },
        workflows=workflows or {},
        doorkeeper=doorkeeper or Doorkeeper(),
    )
    path = DataPath(driver, discovery, OpenAIDoor(driver, catalogue=lambda: catalogue, **door), metrics)
    try:
        if look:
            await discovery.look()
        yield path
    finally:
        await driver.close()
