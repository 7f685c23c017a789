"""What an instance's prefix cache holds, as far as one can tell from the calls that were sent there.

Prompts share leading blocks (template, schema, question). A block that a running call holds is in the KV
cache once for all of them; blocks of ended calls stay until others push them out.
"""

from collections import OrderedDict
from collections.abc import Collection, Sequence

from hexflow_scheduler.call import PrefixBlock


class BlockCounts:
    """Count how many calls hold each block."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[str, tuple[int, int]] = {}
        """How many calls hold a block, and its tokens as the first of them gave them."""

    @property
    def keys(self) -> Collection[str]:
        """The blocks that are held."""
        return self._held

    def fresh_tokens(self, blocks: Sequence[PrefixBlock]) -> int:
        """Return the tokens of those blocks that nobody holds yet."""
        return sum(block.tokens for block in blocks if block.key not in self._held)

    def hold(self, blocks: Sequence[PrefixBlock]) -> int:
        """Hold blocks for one call more; return the tokens of those that nobody held."""
        fresh = 0
        for block in blocks:
            count, tokens = self._held.get(block.key, (0, block.tokens))
            self._held[block.key] = count + 1, tokens
            fresh += 0 if count else tokens
        return fresh

    def release(self, blocks: Sequence[PrefixBlock]) -> int:
        """Hold blocks for one call less; return the tokens of those that nobody holds any more."""
        freed = 0
        for block in blocks:
            count, tokens = self._held.pop(block.key)
            if count > 1:
                self._held[block.key] = count - 1, tokens
            else:
                freed += tokens
        return freed


class PrefixMirror:
    """Remember the blocks that were used last, up to a number of tokens."""

    __slots__ = ("_blocks", "_tokens")

    def __init__(self) -> None:
        self._blocks: OrderedDict[str, int] = OrderedDict()
        self._tokens = 0

    @property
    def tokens(self) -> int:
        """Tokens of the blocks that are remembered."""
        return self._tokens

    def touch(self, blocks: Sequence[PrefixBlock], *, capacity: int) -> None:
        """Make these the blocks used last, forgetting the eldest beyond ``capacity`` tokens."""
        # The head of a prompt is of no less use than its tail, so it goes last and stays longest.
        for block in reversed(blocks):
            self._tokens += block.tokens - self._blocks.pop(block.key, 0)
            self._blocks[block.key] = block.tokens
        while self._tokens > capacity and self._blocks:
            self._tokens -= self._blocks.popitem(last=False)[1]

    def hit_tokens(self, blocks: Sequence[PrefixBlock], held: BlockCounts) -> int:
        """Return the tokens of the leading blocks that are remembered or that a live call holds."""
        tokens, live, remembered = 0, held.keys, self._blocks
        for block in blocks:
            key = block.key
            if key not in live and key not in remembered:
                break
            tokens += block.tokens
        return tokens
