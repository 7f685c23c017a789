"""Contract: streams."""

import json

import httpx

from support.openai_calls import LONG, a_chat, a_completion, asked, lines, streamed, text_of


async def test_a_stream_opens_with_the_role_alone(client: httpx.AsyncClient) -> None:
    events = await streamed(client, a_chat())
    assert events[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert all("role" not in event["choices"][0]["delta"] for event in events[1:])


async def test_all_events_share_one_id_and_kind(client: httpx.AsyncClient) -> None:
    events = await streamed(client, a_chat())
    assert {(event["object"], event["model"]) for event in events} == {("chat.completion.chunk", "tiny")}
    assert len({event["id"] for event in events}) == 1


async def test_the_pieces_are_the_whole(client: httpx.AsyncClient) -> None:
    body = a_chat(max_tokens=40)
    whole = (await asked(client, body))["choices"][0]["message"]["content"]
    assert text_of(await streamed(client, body)) == whole


async def test_only_the_last_piece_says_why_it_ended(client: httpx.AsyncClient) -> None:
    events = await streamed(client, a_chat())
    reasons = [event["choices"][0]["finish_reason"] for event in events]
    assert reasons[-1] == "length"
    assert set(reasons[:-1]) == {None}


async def test_tokens_come_as_they_are_written(client: httpx.AsyncClient) -> None:
    events = await streamed(client, a_chat(max_tokens=300))
    assert len(events) > 20


async def test_usage_is_not_told_unless_asked_for(client: httpx.AsyncClient) -> None:
    assert all("usage" not in event for event in await streamed(client, a_chat()))


async def test_usage_comes_last_without_choices(client: httpx.AsyncClient) -> None:
    events = await streamed(client, a_chat(stream_options={"include_usage": True}))
    assert events[-1]["choices"] == []
    assert events[-1]["usage"]["completion_tokens"] == 8
    assert all(event["choices"] and event.get("usage") is None for event in events[:-1])
    usage = (await asked(client, a_chat()))["usage"]
    assert events[-1]["usage"]["prompt_tokens"] == usage["prompt_tokens"]


async def test_continuous_usage_grows_with_the_answer(client: httpx.AsyncClient) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    events = await streamed(client, a_chat(max_tokens=60, stream_options=options))
    counts = [event["usage"]["completion_tokens"] for event in events]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (0, 60)


async def test_samples_share_a_stream_and_each_ends(client: httpx.AsyncClient) -> None:
    body = a_chat(n=2, temperature=1.0, stream_options={"include_usage": True})
    events = await streamed(client, body)
    ends = [c["index"] for event in events for c in event["choices"] if c["finish_reason"] is not None]
    assert sorted(ends) == [0, 1]
    assert events[-1]["usage"]["completion_tokens"] == 16


async def test_a_plain_completion_streams_its_text(client: httpx.AsyncClient) -> None:
    body = a_completion("once", max_tokens=40)
    whole = (await asked(client, body, path="/v1/completions"))["choices"][0]["text"]
    events = await streamed(client, body, path="/v1/completions")
    assert {event["object"] for event in events} == {"text_completion"}
    assert text_of(events) == whole


async def test_an_error_before_the_first_byte_is_no_stream(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/chat/completions", json=a_chat(model="nope", stream=True))
    assert response.status_code == 404
    assert response.headers["content-type"] == "application/json"


async def test_each_event_is_one_line_of_json_and_a_blank_one(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/chat/completions", json=a_chat(stream=True))
    events = response.text.split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    for event in events[:-2]:
        assert event.startswith("data: {")
        assert "\n" not in event
        json.loads(event.removeprefix("data: "))


async def test_the_first_token_comes_long_before_the_last(client: httpx.AsyncClient) -> None:
    async with client.stream(
        "POST", "/v1/chat/completions", json=a_chat(max_tokens=LONG, stream=True)
    ) as response:
        stream = lines(response)
        first = json.loads(await anext(stream))
        assert first["choices"][0]["finish_reason"] is None
        running = await client.get("/metrics")
        assert 'vllm:num_requests_running{engine="0",model_name="tiny"} 1.0' in running.text
