"""The seam between the stages and the driver, with a driver's half made of futures."""

import asyncio
import itertools
import json
from collections.abc import Sequence
from typing import Any

import pytest

from hexflow_router.exchange import CallFailed, CompletedReply, Placement, Reply, UpstreamRequest
from hexflow_router.model import CallRecord, StageCalls, StageModel, chat_body, prefix_blocks, read_completion
from hexflow_scheduler import Call, Usage
from hexflow_sql.completion import CompletionError, CompletionRequest, PromptBlock


def a_request(text: str = "How many?", **changes: Any) -> CompletionRequest:
    values: dict[str, Any] = {
        "task": "candidate",
        "blocks": (PromptBlock(role="system", text="Task: candidate"), PromptBlock(role="user", text=text)),
        "max_tokens": 100,
    }
    return CompletionRequest(**(values | changes))


def a_placement(call_id: str = "c1") -> Placement:
    return Placement(
        call_id=call_id,
        instance_id="a100-0",
        pool="a100",
        gpu_type="A100-80GB",
        urgency=-3.0,
        predicted_seconds=2.0,
        priority=7,
        attempts=1,
        sent_at=1.0,
        queued_seconds=0.5,
    )


def a_reply(body: bytes, placement: Placement | None = None) -> CompletedReply:
    return CompletedReply(
        status=200,
        headers=(),
        body=body,
        usage=Usage(prompt_tokens=10, output_tokens=5),
        token_source="usage",
        placement=placement or a_placement(),
        seconds=1.0,
    )


def chat(*texts: str | None, finish: str = "stop") -> bytes:
    return json.dumps(
        {
            "choices": [
                {"index": place, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
                for place, text in enumerate(texts)
            ],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5},
        }
    ).encode()


class AnExchange:
    def __init__(self, request: UpstreamRequest) -> None:
        self.request = request
        self.answer: asyncio.Future[CompletedReply] = asyncio.get_running_loop().create_future()
        self.cancelled = False

    @property
    def call(self) -> Call:
        return self.request.call

    @property
    def placement(self) -> Placement | None:
        return None

    async def reply(self) -> Reply:
        raise NotImplementedError

    async def read(self) -> CompletedReply:
        return await self.answer

    def cancel(self) -> None:
        self.cancelled = True


class Bench:
    """A stage's model over exchanges that the test answers."""

    def __init__(self) -> None:
        self.exchanges: list[AnExchange] = []
        self.told: list[tuple[str, CallRecord]] = []
        ids = itertools.count(1)
        self.model = StageModel(
            calls=StageCalls(
                query_id="q1",
                workflow="shop",
                tenant="analytics",
                tenant_weight=3.0,
                stage="candidates",
                model="a-model",
                pools=frozenset({"a100"}),
                first_seed=100,
                headers=(("traceparent", "00-1-2-01"),),
                arrival=1.0,
                deadline=61.0,
            ),
            release_calls=self.release,
            clock=lambda: 2.0,
            budget=lambda: 20.0,
            new_id=lambda: f"c{next(ids)}",
            count_tokens=len,
            on_placed=lambda record: self.told.append(("placed", record)),
            on_ended=lambda record: self.told.append(("ended", record)),
        )

    def release(self, requests: Sequence[UpstreamRequest]) -> list[AnExchange]:
        made = [AnExchange(request) for request in requests]
        self.exchanges += made
        return made


async def test_siblings_are_released_together_with_budget_and_deadline() -> None:
    bench = Bench()
    released = bench.model.release([a_request(sibling=0, seed=0), a_request(sibling=1, seed=1)])
    calls = [exchange.call for exchange in bench.exchanges]
    assert [call.sibling for call in calls] == [0, 1]
    assert {(call.query_id, call.stage, call.budget_seconds, call.deadline) for call in calls} == {
        ("q1", "candidates", 20.0, 61.0)
    }
    assert {(call.tenant, call.tenant_weight) for call in calls} == {("analytics", 3.0)}
    assert calls[0].prompt_tokens == len("Task: candidate") + len("How many?")
    assert calls[0].prefix == calls[1].prefix
    first, second = (json.loads(exchange.request.body) for exchange in bench.exchanges)
    assert (first["seed"], second["seed"]) == (100, 101)
    assert first["messages"][1] == {"role": "user", "content": "How many?"}
    assert ("traceparent", "00-1-2-01") in bench.exchanges[0].request.headers
    for exchange in bench.exchanges:
        exchange.answer.set_result(a_reply(chat("SELECT 1")))
    assert [(await one).texts for one in released] == [("SELECT 1",), ("SELECT 1",)]
    assert [record.status for _, record in bench.told] == ["Done", "Done"]


async def test_a_placement_is_told_while_the_call_runs() -> None:
    bench = Bench()
    (waiting,) = bench.model.release([a_request()])
    notify = bench.exchanges[0].request.on_placed
    assert notify is not None
    notify(a_placement())
    assert [(what, record.status) for what, record in bench.told] == [("placed", "Running")]
    bench.exchanges[0].answer.set_result(a_reply(chat("x")))
    await waiting
    assert bench.model.records[0].seconds == 1.0


@pytest.mark.parametrize("started", [False, True])
async def test_a_cancelled_completion_withdraws_its_call(started: bool) -> None:
    bench = Bench()
    (waiting,) = bench.model.release([a_request()])
    if started:
        await asyncio.sleep(0)
    bench.model.withdraw()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert bench.exchanges[0].cancelled
    assert bench.model.records[0].status == "Cancelled"


async def test_a_failed_call_is_a_completion_error_with_its_reason() -> None:
    bench = Bench()
    (waiting,) = bench.model.release([a_request()])
    failure = CallFailed("No instance.", status=503, code="no_instance", reason="NoInstance")
    bench.exchanges[0].answer.set_exception(failure)
    with pytest.raises(CompletionError, match="No instance") as error:
        await waiting
    assert error.value.reason == "NoInstance"
    assert (bench.model.records[0].status, bench.model.records[0].reason) == ("Failed", "NoInstance")


async def test_nobody_needs_to_await_a_completion_that_failed(recwarn: pytest.WarningsRecorder) -> None:
    bench = Bench()
    bench.model.release([a_request()])
    bench.exchanges[0].answer.set_exception(CallFailed("x", status=502, code="broken", reason="BrokenAnswer"))
    await asyncio.sleep(0.01)
    assert bench.model.records[0].status == "Failed"
    assert not recwarn.list


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"{}", b'{"choices": []}', b'{"choices": [{"message": 1}]}', b'{"choices": ["\xff"]}'],
)
def test_an_answer_that_is_no_chat_completion_is_rubbish(body: bytes) -> None:
    with pytest.raises(CompletionError) as error:
        read_completion(a_reply(body))
    assert error.value.reason == "Rubbish"


def test_samples_come_in_the_order_of_their_index() -> None:
    body = json.loads(chat("first", None))
    body["choices"].reverse()
    completion = read_completion(a_reply(json.dumps(body).encode()))
    assert completion.texts == ("first", "")
    assert completion.finish_reasons == ("stop", "stop")
    assert completion.output_tokens == 5


def test_blocks_of_one_role_become_one_message() -> None:
    blocks = tuple(
        PromptBlock(role=role, text=text) for role, text in (("system", "a"), ("user", "b"), ("user", "c"))
    )
    body = json.loads(chat_body(a_request(blocks=blocks, samples=3, sampling={"top_p": 0.9}), model="m"))
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert body["messages"][1]["content"].startswith("b")
    assert (body["n"], body["top_p"], body["max_tokens"]) == (3, 0.9, 100)
    assert "seed" not in body


def test_prompts_share_the_blocks_they_begin_with_and_no_more() -> None:
    def keys(*texts: str) -> list[str]:
        return [
            block.key for block in prefix_blocks([PromptBlock(role="user", text=text) for text in texts], len)
        ]

    first, second = keys("schema", "question one"), keys("schema", "question two")
    assert first[0] == second[0]
    assert first[1] != second[1]
    assert keys("other", "question one")[1] != first[1]
    assert keys("sche", "maquestion one")[1] != first[1]
