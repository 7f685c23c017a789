"""The emulated tokenizer."""

import pytest

from hexflow_emulator.tokens import count, cut, prefix_blocks, size
from hexflow_scheduler import estimate_tokens


@pytest.mark.parametrize("text", ["x", "SELECT 1", "Wie viele Kunden wohnen in München? 🙂" * 9])
def test_it_counts_as_the_router_estimates(text: str) -> None:
    assert count(text) == estimate_tokens(text)


def test_even_nothing_takes_a_token() -> None:
    assert count("") == 1


@pytest.mark.parametrize("tokens", range(1, 300, 7))
def test_a_text_of_so_many_tokens_counts_as_many(tokens: int) -> None:
    assert count("x" * size(tokens)) == tokens


def test_prompts_share_blocks_up_to_where_they_part() -> None:
    first, second = (
        prefix_blocks("a" * 300 + "b" * 99, block_tokens=16),
        prefix_blocks("a" * 399, block_tokens=16),
    )
    shared = [one == two for one, two in zip(first, second, strict=True)]
    assert shared == [True] * 5 + [False] * (len(shared) - 5)


def test_a_prompt_never_has_more_blocks_than_tokens() -> None:
    for length in range(500):
        assert sum(block.tokens for block in prefix_blocks("é" * length, block_tokens=7)) <= count(
            "é" * length
        )


def test_a_prompt_shorter_than_a_block_has_none() -> None:
    assert prefix_blocks("short", block_tokens=16) == ()


def test_a_text_comes_out_evenly_and_entirely() -> None:
    assert [cut("abcdefgh", written=written, total=4) for written in range(6)] == [0, 2, 4, 6, 8, 8]
    assert cut("", written=0, total=3) == 0
