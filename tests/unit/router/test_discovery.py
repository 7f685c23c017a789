"""Discovery in virtual time: engines are little ASGI apps in this process."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from hexflow_router.breaker import BreakerRule, BreakerState
from hexflow_router.discovery import Discovery, InstancesFile, Listed, endpoint_id
from hexflow_router.driver import Driver
from hexflow_router.gauges import measure
from hexflow_router.upstream import Address
from hexflow_router.watch import Hold
from hexflow_scheduler import InstanceState, Kernel, Policy
from support import virtual_time
from support.asgi import AsgiUpstream
from support.datapath import FAST, a_pool, a_request, watching


@dataclass
class FakeEngine:
    """Answer probes as told; a call is answered by 200 or by ``status``."""

    models: list[dict[str, Any]] = field(default_factory=lambda: [{"id": "tiny", "max_model_len": 2048}])
    running: int | None = 0
    started_at: float | None = 100.0
    key: str | None = None
    health: int = 200
    status: int = 200
    blocks: int | None = None
    probes: int = 0

    async def __call__(self, scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Any) -> None:
        await receive()
        status, body = self.answer(scope)
        await send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [(b"content-type", b"application/json")],
            }
        )
        await send({"type": "http.response.body", "body": body})

    def answer(self, scope: dict[str, Any]) -> tuple[int, bytes]:
        given = dict(scope["headers"]).get(b"authorization", b"").decode()
        if scope["path"] == "/health":
            return self.health, b""
        if scope["path"] == "/metrics":
            return 200, self.page().encode()
        if self.key is not None and given != f"Bearer {self.key}":
            return 401, b'{"error":"Unauthorized"}'
        if scope["path"] == "/v1/models":
            self.probes += 1
            return 200, json.dumps({"object": "list", "data": self.models}).encode()
        choice = {"index": 0, "message": {"content": "hi"}, "finish_reason": "stop"}
        return self.status, json.dumps(
            {"choices": [choice]} if self.status == 200 else {"error": "boom"}
        ).encode()

    def page(self) -> str:
        lines = ["up 1"]
        if self.running is not None:
            lines.append(f"vllm:num_requests_running {self.running}")
        if self.started_at is not None:
            lines.append(f"process_start_time_seconds {self.started_at}")
        if self.blocks is not None:
            lines.append(f'vllm:cache_config_info{{block_size="16",num_gpu_blocks="{self.blocks}"}} 1')
        return "\n".join(lines) + "\n"


@dataclass
class Scene:
    engine: FakeEngine
    upstream: AsgiUpstream
    driver: Driver
    discovery: Discovery

    @property
    def watch(self) -> Any:
        return self.discovery.watches()[0]

    def told(self) -> Any:
        (instance,) = self.driver.instances()
        return instance


def play(act: Callable[[Scene], Awaitable[None]], *, with_key: str | None = None, **given: Any) -> None:
    """Play an act on a stage with one pool of one engine, looked at once."""

    async def whole() -> None:
        engine = FakeEngine(**given)
        upstream = AsgiUpstream({"http://one": engine})
        driver = Driver(Kernel(Policy.named("LeastOutstanding")), upstream=upstream, clock=virtual_time.now)
        discovery = Discovery(driver, breaker_rule=BreakerRule(failures=2, open_seconds=2.0))
        discovery.configure([_pool(with_key)])
        assert driver.instances()[0].state is InstanceState.UNREADY
        await discovery.look()
        await act(Scene(engine, upstream, driver, discovery))
        await driver.close()

    virtual_time.run(whole())


def _pool(key: str | None = None) -> Any:
    return replace(a_pool(max_context=4096), endpoints=(Address(url="http://one", api_key=key),))


def test_an_instance_is_ready_once_it_lists_the_model() -> None:
    async def act(scene: Scene) -> None:
        assert scene.told().state is InstanceState.READY
        assert scene.told().max_context == 2048
        assert scene.told().models == {"tiny"}

    play(act)


def test_a_server_with_another_model_takes_no_calls_and_the_reason_names_both() -> None:
    async def act(scene: Scene) -> None:
        assert scene.told().state is InstanceState.UNREADY
        assert scene.watch.reason == "ModelNotListed"
        assert "other" in scene.watch.message
        assert "tiny" in scene.watch.message

    play(act, models=[{"id": "other"}])


def test_a_key_is_sent_and_a_wrong_one_is_told() -> None:
    async def right(scene: Scene) -> None:
        assert scene.told().state is InstanceState.READY
        assert "k1" not in repr(scene.watch.address) + json.dumps(scene.watch.state())

    async def wrong(scene: Scene) -> None:
        assert scene.watch.reason == "EngineRefusedKey"

    play(right, key="k1", with_key="k1")
    play(wrong, key="k1", with_key="k2")


def test_the_engines_own_size_of_the_cache_replaces_the_profiles() -> None:
    async def act(scene: Scene) -> None:
        assert scene.told().profile.kv_tokens == 1600

    play(act, blocks=100)


def test_another_start_of_the_process_is_another_instance() -> None:
    async def act(scene: Scene) -> None:
        before = scene.told().instance_id
        scene.engine.started_at = 200.0
        await scene.discovery.look()
        assert scene.told().instance_id != before
        assert scene.told().state is InstanceState.READY

    play(act)


@pytest.mark.parametrize(("started_at", "same"), [(100.0, True), (300.0, False), (None, False)])
def test_after_a_look_that_failed_the_start_of_the_process_tells_whether_it_is_the_same(
    started_at: float | None, same: bool
) -> None:
    async def act(scene: Scene) -> None:
        before = scene.told().instance_id
        app = scene.upstream.apps.pop("http://one")
        await scene.discovery.look()
        assert scene.told().state is InstanceState.UNREADY
        scene.engine.started_at = started_at
        scene.upstream.apps["http://one"] = app
        await scene.discovery.look()
        assert scene.told().state is InstanceState.READY
        assert (scene.told().instance_id == before) is same

    play(act, started_at=100.0)


def test_a_server_that_answers_no_look_is_given_up() -> None:
    async def act(scene: Scene) -> None:
        before = scene.told().instance_id
        scene.upstream.apps.clear()
        for _ in range(3):
            await scene.discovery.look()
        assert scene.told().instance_id != before
        assert scene.told().state is InstanceState.UNREADY

    play(act)


def test_a_server_that_stays_away_is_given_up_once() -> None:
    async def act(scene: Scene) -> None:
        app = scene.upstream.apps.pop("http://one")
        seen = set()
        for _ in range(20):
            await scene.discovery.look()
            seen.add(scene.told().instance_id)
        assert len(seen) == 2
        scene.upstream.apps["http://one"] = app
        await scene.discovery.look()
        assert scene.told().instance_id in seen
        assert scene.told().state is InstanceState.READY

    play(act)


def test_an_unhealthy_server_takes_no_calls_but_keeps_what_runs() -> None:
    async def act(scene: Scene) -> None:
        before = scene.told().instance_id
        for status in (503, 500, 503, 503):
            scene.engine.health = status
            await scene.discovery.look()
        assert (scene.told().instance_id, scene.told().state) == (before, InstanceState.UNREADY)
        scene.engine.health = 404  # a server that has no such path
        await scene.discovery.look()
        assert scene.told().state is InstanceState.READY

    play(act)


def test_calls_of_others_are_counted_only_when_two_looks_agree() -> None:
    async def act(scene: Scene) -> None:
        scene.engine.running = 5
        await scene.discovery.look()
        assert scene.driver.kernel.view().instances[0].foreign_running == 0
        await scene.discovery.look()
        assert scene.driver.kernel.view().instances[0].foreign_running == 5
        scene.engine.running = None  # the page names no count any more
        await asyncio.sleep(11)
        await scene.discovery.look()
        assert scene.watch.stale()
        assert scene.driver.kernel.view().instances[0].foreign_running == 0

    play(act)


def test_failures_open_the_breaker_and_a_trial_closes_it() -> None:
    async def act(scene: Scene) -> None:
        scene.engine.status = 500
        for _ in range(2):
            (exchange,) = scene.driver.release([a_request()])
            assert (await exchange.reply()).status == 500
        assert scene.told().state is InstanceState.UNREADY
        measure(scene.driver.metrics, driver=scene.driver, discovery=scene.discovery)
        page = scene.driver.metrics.exposition().decode()
        assert f'hexflow_breaker_open{{instance="{scene.told().instance_id}",pool="a100"}} 1.0' in page
        scene.engine.status = 200
        await asyncio.sleep(2.5)
        await scene.discovery.look()
        assert scene.watch.breaker is BreakerState.TRIAL
        assert scene.told().profile.slots == 1
        (exchange,) = scene.driver.release([a_request()])
        assert (await exchange.read()).token_source == "estimate"
        assert scene.told().profile.slots == FAST.slots

    play(act)


def test_instances_of_pools_that_are_suspended_or_unknown_are_not_used() -> None:
    async def act(scene: Scene) -> None:
        scene.discovery.configure([replace(_pool(), endpoints=(), suspended=True)])
        scene.discovery.list_instances(
            [Listed(id="x", pool="a100", url="http://one"), Listed(id="y", pool="b", url="http://one")]
        )
        assert scene.driver.instances() == []
        scene.discovery.configure([replace(_pool(), endpoints=())])
        assert [instance.instance_id for instance in scene.driver.instances()] == ["x"]

    play(act)


def test_an_address_that_changes_is_another_server() -> None:
    async def act(scene: Scene) -> None:
        scene.upstream.apps["http://two"] = FakeEngine()
        scene.discovery.configure([replace(_pool(), endpoints=(Address(url="http://two"),))])
        await scene.discovery.look()
        assert [instance.instance_id for instance in scene.driver.instances()] == [
            endpoint_id("a100", "http://two")
        ]
        assert scene.told().state is InstanceState.READY

    play(act)


def test_watching_looks_about_once_a_second() -> None:
    async def act(scene: Scene) -> None:
        scene.engine.probes = 0
        async with watching(scene.discovery):
            await asyncio.sleep(10.5)
        assert scene.engine.probes == 11

    play(act)


def test_a_look_that_fails_by_a_defect_is_not_the_last(caplog: pytest.LogCaptureFixture) -> None:
    async def act(scene: Scene) -> None:
        sound = scene.upstream.send

        async def broken(*_: object, **__: object) -> Any:
            raise RuntimeError("a defect")

        async with watching(scene.discovery):
            scene.upstream.send = broken  # type: ignore[method-assign]
            await asyncio.sleep(2.5)
            scene.engine.health = 503
            scene.upstream.send = sound  # type: ignore[method-assign]
            await asyncio.sleep(2)
            assert scene.watch.reason == "NotHealthy"
            scene.engine.health = 200
            await asyncio.sleep(2)
        assert scene.told().state is InstanceState.READY

    play(act)
    assert "failed by a defect" in caplog.text


@pytest.mark.parametrize(
    "entry",
    [
        {"id": "", "pool": "p", "url": "http://one"},
        {"id": "a b", "pool": "p", "url": "http://one"},
        {"id": "a~2", "pool": "p", "url": "http://one"},
        {"id": "a", "pool": "p", "url": ""},
        {"id": "a", "pool": "p", "url": "one:8000"},
        {"id": "a", "pool": "p", "url": "file:///etc/hosts"},
        {"id": "a", "pool": "p", "url": "http://me:secret@one"},
        {"id": "a", "pool": "p", "url": "http://one:port"},
        {"id": "a", "pool": "p"},
    ],
)
def test_a_list_of_instances_that_makes_no_sense_is_refused(tmp_path: Path, entry: dict[str, str]) -> None:
    file = InstancesFile(tmp_path / "instances.json")
    file.path.write_text(json.dumps({"instances": [entry]}))
    with pytest.raises(ValueError, match="is not a list of instances"):
        file.read()


@pytest.mark.parametrize("url", ["http://one", "https://one.two:8000/", "http://[::1]:8000/v1"])
def test_a_list_of_instances_is_read(tmp_path: Path, url: str) -> None:
    file = InstancesFile(tmp_path / "instances.json")
    file.path.write_text(json.dumps({"instances": [{"id": "l40s-0", "pool": "l40s", "url": url}]}))
    assert file.read() == (Listed("l40s-0", "l40s", url),)


def test_what_an_engine_said_is_shown_to_people() -> None:
    async def act(scene: Scene) -> None:
        state = scene.watch.state()
        assert (state["reason"], state["engineRunning"], state["breaker"]) == ("Ready", 3, "Closed")

    play(act, running=3)


@pytest.mark.parametrize(
    ("hold", "state"),
    [
        (Hold.POD_NOT_READY, InstanceState.UNREADY),
        (Hold.TERMINATING, InstanceState.DRAINING),
        (Hold.SUSPENDED, InstanceState.DRAINING),
    ],
)
def test_who_is_held_back_gets_no_calls_however_well_it_answers(hold: Hold, state: InstanceState) -> None:
    async def act(scene: Scene) -> None:
        def listed(hold: Hold | None) -> list[Listed]:
            return [Listed(id="pod", pool="a100", url="http://one", hold=hold)]

        pool = replace(_pool(), endpoints=())
        scene.discovery.configure([pool], listed(None))
        await scene.discovery.look()
        assert scene.told().state is InstanceState.READY
        assert scene.watch.why_not == ""
        scene.discovery.list_instances(listed(hold))
        await scene.discovery.look()
        assert scene.told().state is state
        assert str(hold) in scene.watch.why_not
        # a pool that is suspended drops what nobody says will end well
        scene.discovery.configure([replace(pool, suspended=True)])
        assert scene.told().state is state
        scene.discovery.configure([replace(pool, suspended=True)], listed(None))
        assert scene.driver.instances() == []

    play(act)
