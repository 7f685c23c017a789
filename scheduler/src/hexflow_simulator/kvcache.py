"""The KV cache of a modelled engine: blocks that running calls hold, and prefix blocks kept for the next.

A prefix is a chain of keys, each the hash of everything from the start of the prompt to its end. A key
that nobody holds stays until room is needed, the longest unused first; of one chain the tail goes before
the head, since a tail without its head can never be found again.

Knows blocks and keys; knows no time and no engine.
"""

from collections import OrderedDict
from collections.abc import Sequence

from hexflow_scheduler import PrefixBlock


class KVCache:
    """Count the blocks of one engine's KV cache.

    Lengths are tokens, capacity is whole blocks of ``block_tokens``. What is held never exceeds it.
    """

    def __init__(self, *, capacity_tokens: int, block_tokens: int, keep_prefixes: bool) -> None:
        self.block_tokens = block_tokens
        self.capacity = capacity_tokens // block_tokens
        self.keeps_prefixes = keep_prefixes
        self._private = 0
        self._held: dict[str, list[int]] = {}  # key -> [blocks, holders]
        self._held_blocks = 0
        self._idle: OrderedDict[str, int] = OrderedDict()  # key -> blocks, longest unused first
        self._idle_blocks = 0

    @property
    def used(self) -> int:
        """Blocks that running calls need; what could be evicted is not among them."""
        return self._private + self._held_blocks

    @property
    def free(self) -> int:
        """Blocks that can be had at once, evicting prefixes where needed."""
        return self.capacity - self.used

    @property
    def cached(self) -> int:
        """Blocks of prefixes that nobody holds."""
        return self._idle_blocks

    def blocks(self, tokens: int) -> int:
        """Return how many blocks so many tokens take."""
        return -(-tokens // self.block_tokens)

    def found(self, prefix: Sequence[PrefixBlock], *, limit: int) -> int:
        """Return how many leading blocks of a prefix are here, ending within ``limit`` tokens.

        An engine computes at least the last token of a prompt itself, so the limit is one less than it.
        """
        if not self.keeps_prefixes:
            return 0
        tokens = found = 0
        for block in prefix:
            tokens += block.tokens
            if tokens > limit or not (block.key in self._held or block.key in self._idle):
                break
            found += 1
        return found

    def idle_among(self, prefix: Sequence[PrefixBlock]) -> int:
        """Return the blocks of these keys that count as free until they are held."""
        return sum(self._idle.get(block.key, 0) for block in prefix)

    def take(self, blocks: int) -> None:
        """Give blocks to a running call, evicting prefixes for them. The caller has looked at ``free``."""
        self._private += blocks
        self._evict()

    def give_back(self, blocks: int) -> None:
        """Take blocks back from a running call."""
        self._private -= blocks

    def hold(self, block: PrefixBlock) -> None:
        """Keep a prefix block that is here for one more running call."""
        if entry := self._held.get(block.key):
            entry[1] += 1
            return
        size = self._idle.pop(block.key)
        self._idle_blocks -= size
        self._held[block.key] = [size, 1]
        self._held_blocks += size

    def publish(self, block: PrefixBlock) -> int:
        """Turn blocks that a running call has just computed into a prefix it holds.

        Returns the blocks that stop being private to the call, 0 where prefixes are not kept. Where
        another call computed the same at the same time, one copy is dropped.
        """
        if not self.keeps_prefixes:
            return 0
        size = self.blocks(block.tokens)
        self._private -= size
        if block.key in self._held or block.key in self._idle:
            self.hold(block)
        else:
            self._held[block.key] = [size, 1]
            self._held_blocks += size
        return size

    def release(self, prefix: Sequence[PrefixBlock]) -> None:
        """Let go of the prefix blocks of one call, the tail first."""
        for block in reversed(prefix):
            entry = self._held[block.key]
            entry[1] -= 1
            if not entry[1]:
                del self._held[block.key]
                self._held_blocks -= entry[0]
                self._idle[block.key] = entry[0]
                self._idle_blocks += entry[0]

    def clear(self) -> None:
        """Forget every prefix that nobody holds."""
        self._idle.clear()
        self._idle_blocks = 0

    def _evict(self) -> None:
        while self._private + self._held_blocks + self._idle_blocks > self.capacity and self._idle:
            _, size = self._idle.popitem(last=False)
            self._idle_blocks -= size
