"""The emulated tokenizer: a fixed number of bytes to a token.

Only counts and cuts matter to an engine's time, so no vocabulary is needed. Prefix blocks are hashes of
the prompt's bytes from its start, as vLLM hashes the tokens.
"""

from hashlib import blake2b

from hexflow_scheduler.call import PrefixBlock

BYTES_PER_TOKEN = 4
"""What English, SQL and DDL come to with today's vocabularies, within about a quarter."""


def count(text: str) -> int:
    """Return the tokens of a text; even an empty one takes one."""
    return max(1, -(-len(text.encode()) // BYTES_PER_TOKEN))


def prefix_blocks(text: str, *, block_tokens: int) -> tuple[PrefixBlock, ...]:
    """Return the full blocks of a prompt as a chain of hashes."""
    data = text.encode()
    stride = block_tokens * BYTES_PER_TOKEN
    digest = blake2b(digest_size=12)
    blocks = []
    for start in range(0, len(data) - stride + 1, stride):
        digest.update(data[start : start + stride])
        blocks.append(PrefixBlock(key=digest.hexdigest(), tokens=block_tokens))
    return tuple(blocks)


def cut(text: str, *, written: int, total: int) -> int:
    """Return how many characters of a text are out once ``written`` of its ``total`` tokens are."""
    return len(text) if written >= total else len(text) * written // total
