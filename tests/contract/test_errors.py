"""Contract: what is refused, and how an engine says so."""

import httpx
import pytest

from support.engines import CONTEXT
from support.openai_calls import a_chat, a_completion, asked

CHAT = "/v1/chat/completions"
PLAIN = "/v1/completions"


async def test_an_unknown_model_is_not_found(client: httpx.AsyncClient) -> None:
    response = await client.post(CHAT, json=a_chat(model="nope"))
    assert response.status_code == 404
    error = response.json()["error"]
    assert (error["type"], error["param"], error["code"]) == ("NotFoundError", "model", 404)
    assert "`nope` does not exist" in error["message"]


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        (CHAT, a_chat(messages=...), "body.messages"),
        (CHAT, a_chat(max_tokens="many"), "body.max_tokens"),
        (CHAT, a_chat(priority="high"), "body.priority"),
        (CHAT, a_chat(seed="a"), "body.seed"),
        (CHAT, [], "body"),
        (CHAT, a_chat(max_tokens=0), "max_tokens"),
        (CHAT, a_chat(max_tokens=-1), "max_tokens"),
        (CHAT, a_chat(max_tokens=CONTEXT + 1), "max_tokens"),
        (CHAT, a_chat("x" * 80_000), "input_tokens"),
        (CHAT, a_chat(temperature=-1), "temperature"),
        (CHAT, a_chat(top_p=2), "top_p"),
        (CHAT, a_chat(stream_options={"include_usage": True}), "stream_options"),
        (CHAT, a_chat(messages=[]), None),
        (CHAT, a_chat(n=0), None),
        (CHAT, a_chat(n=2, temperature=0), None),
        (CHAT, a_chat(min_tokens=9, max_tokens=8), None),
        (PLAIN, a_completion(""), "prompt"),
        (PLAIN, a_completion(...), "prompt"),
        (PLAIN, a_completion([]), None),
        (PLAIN, a_completion("x" * 80_000), "input_tokens"),
    ],
)
async def test_a_wrong_body_is_refused_with_its_place(
    client: httpx.AsyncClient, path: str, body: object, param: str | None
) -> None:
    response = await client.post(path, json=body)
    assert response.status_code == 400
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["param"], error["code"]) == (param, 400)
    assert error["type"] == ("Bad Request" if (param or "").startswith("body") else "BadRequestError")


async def test_a_prompt_over_the_context_is_refused_with_both_numbers(client: httpx.AsyncClient) -> None:
    response = await client.post(CHAT, json=a_chat("x" * 80_000))
    message = response.json()["error"]["message"]
    assert f"maximum context length is {CONTEXT} tokens" in message
    assert "input tokens" in message


@pytest.mark.parametrize("body", [b'{"model": ', b"", b"nonsense"], ids=["cut", "empty", "no json"])
async def test_malformed_json_is_refused(client: httpx.AsyncClient, body: bytes) -> None:
    response = await client.post(CHAT, content=body, headers={"content-type": "application/json"})
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "Bad Request"


@pytest.mark.parametrize("headers", [{}, {"content-type": "text/plain"}], ids=["none", "text"])
async def test_another_content_type_is_refused(client: httpx.AsyncClient, headers: dict[str, str]) -> None:
    response = await client.post(
        CHAT, content=b'{"messages": [{"role": "user", "content": "x"}]}', headers=headers
    )
    assert response.status_code == 400
    assert "Only 'application/json' is allowed" in response.json()["error"]["message"]


async def test_a_content_type_may_have_parameters(client: httpx.AsyncClient) -> None:
    body = b'{"messages": [{"role": "user", "content": "x"}], "max_tokens": 1}'
    headers = {"content-type": "application/json; charset=utf-8"}
    assert (await client.post(CHAT, content=body, headers=headers)).status_code == 200


async def test_invalid_utf8_is_refused(client: httpx.AsyncClient) -> None:
    body = b'{"model": "tiny", "messages": [{"role": "user", "content": "\xff"}]}'
    response = await client.post(CHAT, content=body, headers={"content-type": "application/json"})
    assert (response.status_code, response.json()) == (400, {"detail": "There was an error parsing the body"})


async def test_an_engine_serves_on_after_errors(client: httpx.AsyncClient) -> None:
    for body in (a_chat(model="nope"), a_chat(max_tokens=0), a_chat("x" * 80_000)):
        assert (await client.post(CHAT, json=body)).status_code >= 400
    await asked(client, a_chat())
