"""The emulated tokenizer: a fixed number of bytes to a token, as the router estimates them.

Only counts and cuts matter to an engine's time, so no vocabulary is needed. Prefix blocks are hashes of
the prompt's bytes from its start, as vLLM hashes the tokens.
"""

from hashlib import blake2b

from hexflow_scheduler import PrefixBlock, estimate_tokens
from hexflow_scheduler.estimate import BYTES_PER_TOKEN


def count(text: str) -> int:
    """Return the tokens of a text; even an empty one takes one."""
    return max(1, estimate_tokens(text))


def size(tokens: int) -> int:
    """Return the bytes that so many tokens take."""
    return int(tokens * BYTES_PER_TOKEN)


def prefix_blocks(text: str, *, block_tokens: int) -> tuple[PrefixBlock, ...]:
    """Return the full blocks of a prompt as a chain of hashes."""
    data = text.encode()
    digest = blake2b(digest_size=12)
    blocks: list[PrefixBlock] = []
    start = 0
    while (end := size((len(blocks) + 1) * block_tokens)) <= len(data):
        digest.update(data[start:end])
        blocks.append(PrefixBlock(key=digest.hexdigest(), tokens=block_tokens))
        start = end
    return tuple(blocks)


def cut(text: str, *, written: int, total: int) -> int:
    """Return how many characters of a text are out once ``written`` of its ``total`` tokens are."""
    return len(text) if written >= total else len(text) * written // total
