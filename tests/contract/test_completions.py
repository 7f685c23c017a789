"""Contract: plain completions."""

import httpx

from support.engines import CONTEXT
from support.openai_calls import a_completion, asked

PATH = "/v1/completions"


async def test_an_answer_has_the_fields_of_openai(client: httpx.AsyncClient) -> None:
    answer = await asked(client, a_completion(), path=PATH)
    assert answer["id"].startswith("cmpl-")
    assert answer["object"] == "text_completion"
    (choice,) = answer["choices"]
    assert (choice["index"], choice["finish_reason"]) == (0, "length")
    assert isinstance(choice["text"], str)
    assert answer["usage"]["completion_tokens"] == 8


async def test_it_writes_sixteen_tokens_where_nobody_says(client: httpx.AsyncClient) -> None:
    answer = await asked(client, a_completion(max_tokens=...), path=PATH)
    assert answer["usage"]["completion_tokens"] == 16


async def test_a_list_of_prompts_is_answered_in_order(client: httpx.AsyncClient) -> None:
    answer = await asked(client, a_completion(["one", "two", "three"]), path=PATH)
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2]
    single = await asked(client, a_completion("two"), path=PATH)
    assert answer["choices"][1]["text"] == single["choices"][0]["text"]
    assert answer["usage"]["completion_tokens"] == 24


async def test_a_prompt_of_token_ids_has_as_many_tokens(client: httpx.AsyncClient) -> None:
    answer = await asked(client, a_completion([71, 72, 73, 74, 75]), path=PATH)
    assert answer["usage"]["prompt_tokens"] == 5


async def test_echo_repeats_the_prompt_first(client: httpx.AsyncClient) -> None:
    answer = await asked(client, a_completion("Once upon", echo=True), path=PATH)
    assert answer["choices"][0]["text"].startswith("Once upon")
    assert answer["usage"]["completion_tokens"] == 8


async def test_output_ends_where_the_context_does(client: httpx.AsyncClient) -> None:
    answer = await asked(client, a_completion([71] * (CONTEXT - 9), max_tokens=50), path=PATH)
    assert answer["usage"]["completion_tokens"] == 9
    assert answer["choices"][0]["finish_reason"] == "length"
