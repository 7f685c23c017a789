"""Contract: chat completions that are not streamed."""

import httpx
import pytest

from support.openai_calls import a_chat, asked


async def test_an_answer_has_the_fields_of_openai(client: httpx.AsyncClient) -> None:
    answer = await asked(client, a_chat())
    assert answer["id"].startswith("chatcmpl-")
    assert (answer["object"], answer["model"]) == ("chat.completion", "tiny")
    assert isinstance(answer["created"], int)
    (choice,) = answer["choices"]
    assert (choice["index"], choice["finish_reason"], choice["logprobs"]) == (0, "length", None)
    assert choice["message"]["role"] == "assistant"
    assert isinstance(choice["message"]["content"], str)


async def test_usage_adds_up_and_counts_the_tokens_asked_for(client: httpx.AsyncClient) -> None:
    usage = (await asked(client, a_chat(max_tokens=13)))["usage"]
    assert usage["completion_tokens"] == 13
    assert usage["prompt_tokens"] > 0
    assert usage["total_tokens"] == usage["prompt_tokens"] + 13


async def test_a_longer_prompt_has_more_tokens(client: httpx.AsyncClient) -> None:
    short, long = [
        (await asked(client, a_chat(text)))["usage"]["prompt_tokens"] for text in ("hi", "hi " * 99)
    ]
    assert long > short + 50


async def test_samples_are_numbered_and_all_counted(client: httpx.AsyncClient) -> None:
    answer = await asked(client, a_chat(n=3, temperature=1.0))
    assert sorted(choice["index"] for choice in answer["choices"]) == [0, 1, 2]
    assert answer["usage"]["completion_tokens"] == 24
    one = await asked(client, a_chat())
    assert answer["usage"]["prompt_tokens"] == one["usage"]["prompt_tokens"]


async def test_at_temperature_zero_the_same_prompt_has_the_same_answer(client: httpx.AsyncClient) -> None:
    first, second = [(await asked(client, a_chat(max_tokens=20)))["choices"][0]["message"] for _ in range(2)]
    assert first == second


async def test_a_seed_repeats_an_answer_and_another_changes_it(client: httpx.AsyncClient) -> None:
    texts = [
        (await asked(client, a_chat(max_tokens=30, temperature=1.0, seed=seed)))["choices"][0]["message"][
            "content"
        ]
        for seed in (1, 1, 2)
    ]
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize(
    "change",
    [
        {"model": ...},
        {"an_unknown_field": {"nested": [1]}},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]},
        {"max_tokens": ..., "max_completion_tokens": 8},
        {"max_tokens": "8"},
        {"user": "someone", "metadata": {"stage": "x"}, "top_p": 0.9},
        {"priority": -3},
    ],
    ids=[
        "no model",
        "unknown field",
        "parts",
        "max_completion_tokens",
        "number as text",
        "more of openai",
        "priority",
    ],
)
async def test_a_body_is_taken(client: httpx.AsyncClient, change: dict[str, object]) -> None:
    answer = await asked(client, a_chat(**change))
    assert answer["usage"]["completion_tokens"] == 8


async def test_a_stop_word_ends_the_answer_before_it(client: httpx.AsyncClient) -> None:
    whole = (await asked(client, a_chat(max_tokens=60)))["choices"][0]["message"]["content"]
    stop = next(letter for letter in whole[5:] if letter.isascii() and letter.isprintable())
    choice = (await asked(client, a_chat(max_tokens=60, stop=[stop])))["choices"][0]
    assert choice["message"]["content"] == whole[: whole.index(stop)]
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", stop)
