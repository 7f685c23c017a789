"""The driver in virtual time: what it makes of decisions, failures and instances that go away."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from hexflow_router.driver import Driver
from hexflow_router.exchange import CallFailed, UpstreamRequest
from hexflow_router.upstream import Address, TimeOuts
from hexflow_scheduler import DuplicateCall, Instance, InstanceState, Kernel, Policy, Relief
from support import virtual_time
from support.asgi import AsgiUpstream
from support.datapath import FAST, STREAMED, a_request

READY = InstanceState.READY
DONE = b"data: [DONE]\n\n"


def event(text: str = "a", finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


@dataclass
class Engine:
    """Answer each call with the next of ``answers``: (seconds, status, headers); streams take a second an event."""

    answers: list[tuple[float, int, dict[str, str]]] = field(default_factory=list)
    calls: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    left: int = 0

    async def __call__(self, scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Any) -> None:
        body = json.loads((await receive())["body"])
        self.calls.append((virtual_time.now(), body))
        answering = asyncio.ensure_future(self.answer(body, send))
        leaving = asyncio.ensure_future(receive())
        await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not answering.done():
            self.left += 1
        for task in (answering, leaving):
            task.cancel()
        await asyncio.gather(answering, leaving, return_exceptions=True)

    async def answer(self, body: dict[str, Any], send: Any) -> None:
        seconds, status, headers = self.answers.pop(0) if self.answers else (1.0, 200, {})
        await asyncio.sleep(seconds)
        kind = "text/event-stream" if body.get("stream") and status == 200 else "application/json"
        fields = [
            (name.encode(), value.encode()) for name, value in {"content-type": kind, **headers}.items()
        ]
        await send({"type": "http.response.start", "status": status, "headers": fields})
        if kind == "text/event-stream":
            for piece in (event(), event(), event(), event(finish="stop"), DONE):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                await asyncio.sleep(1)
            await send({"type": "http.response.body", "body": b""})
        else:
            choice = {"message": {"content": "a"}, "finish_reason": "stop"}
            await send({"type": "http.response.body", "body": json.dumps({"choices": [choice]}).encode()})


@dataclass
class Scene:
    driver: Driver
    engines: dict[str, Engine]

    def tell(self, name: str, state: InstanceState = READY, **given: Any) -> None:
        usual: dict[str, Any] = {
            "pool": name,
            "gpu_type": "A100-80GB",
            "models": frozenset({"tiny"}),
            "profile": FAST,
        }
        instance = Instance(instance_id=name, state=state, **{**usual, **given})
        self.driver.tell(instance, Address(url=f"http://{name}"))


def play(act: Callable[[Scene], Awaitable[None]], *names: str, **given: Any) -> None:
    async def whole() -> None:
        engines = {name: Engine() for name in names}
        driver = Driver(
            Kernel(Policy.named("LeastOutstanding")),
            upstream=AsgiUpstream({f"http://{name}": engine for name, engine in engines.items()}),
            clock=virtual_time.now,
            **given,
        )
        scene = Scene(driver, engines)
        for name in names:
            scene.tell(name)
        await act(scene)
        assert driver.outstanding == 0
        await driver.close()

    virtual_time.run(whole())


def a_call(**given: Any) -> UpstreamRequest:
    request = a_request(**given)
    now = virtual_time.now()
    return replace(
        request,
        call=replace(request.call, query_arrival=now, deadline=now + 100 if given.get("ours") else None),
    )


def test_an_open_stream_outlives_its_instance_that_is_said_to_be_gone() -> None:
    async def act(scene: Scene) -> None:
        (exchange,) = scene.driver.release([a_call(body=STREAMED, stream=True)])
        reply = await exchange.reply()
        chunks = aiter(reply.chunks)
        assert await anext(chunks) == event()
        scene.tell("one", InstanceState.GONE)
        assert scene.driver.outstanding == 0  # to the kernel the call is over
        assert [piece async for piece in chunks][-1] == DONE
        assert len(scene.engines["two"].calls) == 0

    play(act, "one", "two")


def test_a_stream_left_by_its_reader_after_its_instance_is_gone_is_stopped_at_the_engine() -> None:
    async def act(scene: Scene) -> None:
        (exchange,) = scene.driver.release([a_call(body=STREAMED, stream=True)])
        await exchange.reply()
        scene.tell("one", InstanceState.GONE)
        exchange.cancel()
        await asyncio.sleep(0.01)
        assert scene.engines["one"].left == 1

    play(act, "one")


def test_a_call_that_runs_on_an_instance_that_is_gone_goes_to_another() -> None:
    async def act(scene: Scene) -> None:
        (exchange,) = scene.driver.release([a_call()])
        await asyncio.sleep(0.5)
        scene.tell("one", InstanceState.GONE)
        reply = await exchange.read()
        assert (reply.placement.instance_id, reply.placement.attempts) == ("two", 2)
        assert scene.engines["one"].left == 1

    play(act, "one", "two")


def test_a_call_of_ours_waits_for_an_instance_to_come_back() -> None:
    async def act(scene: Scene) -> None:
        (exchange,) = scene.driver.release([a_call(ours=True)])
        await asyncio.sleep(0.5)
        scene.tell("one", InstanceState.GONE)
        await asyncio.sleep(20)
        scene.tell("one~2", pool="one")
        scene.driver.upstream.apps["http://one~2"] = Engine()  # type: ignore[attr-defined]
        assert (await exchange.read()).placement.instance_id == "one~2"

    play(act, "one")


def test_a_call_of_ours_that_nobody_takes_ends_at_its_deadline() -> None:
    async def act(scene: Scene) -> None:
        scene.tell("one", InstanceState.UNREADY)
        started = virtual_time.now()
        (exchange,) = scene.driver.release([a_call(ours=True)])
        with pytest.raises(CallFailed) as failed:
            await exchange.read()
        assert failed.value.reason == "NoInstanceInTime"
        assert virtual_time.now() - started == pytest.approx(100, abs=0.1)

    play(act, "one")


def test_an_overloaded_engine_alone_is_given_the_time_it_asks_for() -> None:
    async def act(scene: Scene) -> None:
        scene.engines["one"].answers = [(0.0, 503, {"retry-after": "3"}), (0.0, 429, {})]
        (exchange,) = scene.driver.release([a_call(ours=True)])
        assert (await exchange.read()).placement.attempts == 3
        first, second, third = (instant for instant, _ in scene.engines["one"].calls)
        assert second - first == pytest.approx(3.0)
        assert third - second == pytest.approx(1.0)

    play(act, "one")


def test_a_refusal_is_an_error_to_whoever_reads_the_whole_answer() -> None:
    async def act(scene: Scene) -> None:
        scene.engines["one"].answers = [(0.0, 400, {})]
        (exchange,) = scene.driver.release([a_call(ours=True)])
        with pytest.raises(CallFailed) as failed:
            await exchange.read()
        assert (failed.value.status, failed.value.reason) == (400, "EngineRefused")

    play(act, "one", "two")


def test_a_queued_call_is_sent_when_a_slot_is_free_and_says_how_long_it_waited() -> None:
    async def act(scene: Scene) -> None:
        scene.tell("one", profile=replace(FAST, slots=1))
        exchanges = scene.driver.release([a_call(ours=True), a_call(ours=True)])
        assert scene.driver.in_flight("one") == 1
        await asyncio.sleep(0.5)
        assert scene.driver.oldest_wait() == pytest.approx(0.5)
        replies = [await exchange.read() for exchange in exchanges]
        assert [reply.placement.queued_seconds for reply in replies] == pytest.approx([0.0, 1.0])
        assert [reply.seconds for reply in replies] == pytest.approx([1.0, 1.0])

    play(act, "one")


def test_cancelling_twice_or_after_the_end_does_no_harm() -> None:
    async def act(scene: Scene) -> None:
        (exchange,) = scene.driver.release([a_call()])
        await exchange.read()
        exchange.cancel()
        (exchange,) = scene.driver.release([a_call()])
        exchange.cancel()
        exchange.cancel()
        with pytest.raises(CallFailed) as failed:
            await exchange.reply()
        assert failed.value.reason == "Cancelled"

    play(act, "one")


def test_an_observer_that_fails_costs_no_call() -> None:
    def observer(_: object) -> None:
        raise RuntimeError("observer")

    async def act(scene: Scene) -> None:
        (exchange,) = scene.driver.release([replace(a_call(), on_placed=observer)])
        assert (await exchange.read()).status == 200

    play(act, "one")


def test_an_observer_may_cancel_a_sibling() -> None:
    async def act(scene: Scene) -> None:
        exchanges: list[Any] = []
        second = a_call(ours=True)
        first = replace(a_call(ours=True), on_placed=lambda _: exchanges[0].cancel())
        scene.tell("one", profile=replace(FAST, slots=1))
        exchanges += scene.driver.release([second])
        (other,) = scene.driver.release([first])
        assert (await other.read()).status == 200
        assert (await exchanges[0].read()).status == 200  # it had ended before the other was sent

    play(act, "one")


def test_two_calls_of_one_id_are_refused_and_the_first_lives_on() -> None:
    async def act(scene: Scene) -> None:
        request = a_call()
        (exchange,) = scene.driver.release([request])
        with pytest.raises(DuplicateCall):
            scene.driver.release([request])
        assert (await exchange.read()).status == 200

    play(act, "one")


def test_a_time_scale_does_not_make_a_busy_machine_a_silent_engine() -> None:
    async def act(scene: Scene) -> None:
        scene.engines["one"].answers = [(8.0, 200, {})]  # 8 real seconds are 800 emulated ones here
        (exchange,) = scene.driver.release([a_call(ours=True)])
        assert (await exchange.read()).placement.attempts == 1

    time_outs = TimeOuts(first_byte_seconds=120, idle_seconds=60, total_seconds=900)
    play(act, "one", real_seconds=lambda seconds: seconds / 100, time_outs=time_outs)


def test_a_call_that_is_dropped_leaves_its_engine_and_says_so_whatever_an_engine_said_before() -> None:
    async def act(scene: Scene) -> None:
        scene.driver.succeed(Kernel(replace(Policy.named("LeastOutstanding"), relief=Relief(drop=1.0))))
        for _ in range(3):
            scene.driver.kernel.estimates.answered("w", 1.0)
        ours = {"ours": True, "query_id": "q", "workflow": "w", "stage": "s", "optional": True}
        scene.engines["one"].answers = [(5.0, 200, {}), (100.0, 200, {})]
        scene.engines["two"].answers = [(1.0, 503, {})]
        first, second = scene.driver.release([a_call(**ours), a_call(**ours)])
        await first.read()
        with pytest.raises(CallFailed) as dropped:
            await second.read()
        assert (dropped.value.code, dropped.value.reason) == ("dropped", "Dropped")
        assert "late" in dropped.value.message
        await asyncio.sleep(1)
        assert [len(engine.calls) for engine in scene.engines.values()] == [2, 1]
        assert scene.engines["one"].left == 1

    play(act, "one", "two")
