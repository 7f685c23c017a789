"""The KV cache: blocks counted, prefixes kept and let go."""

from hexflow_simulator import KVCache
from support.engine_model import blocks


def a_cache(capacity_tokens: int = 160, *, keep_prefixes: bool = True) -> KVCache:
    return KVCache(capacity_tokens=capacity_tokens, block_tokens=16, keep_prefixes=keep_prefixes)


def publish(cache: KVCache, chain: tuple) -> None:  # type: ignore[type-arg]
    for block in chain:
        cache.take(cache.blocks(block.tokens))
        cache.publish(block)


def test_tokens_take_whole_blocks() -> None:
    assert [a_cache().blocks(tokens) for tokens in (0, 1, 16, 17)] == [0, 1, 1, 2]


def test_capacity_is_whole_blocks() -> None:
    assert a_cache(175).capacity == 10


def test_what_is_private_is_used_until_it_is_given_back() -> None:
    cache = a_cache()
    cache.take(4)
    assert (cache.used, cache.free) == (4, 6)
    cache.give_back(4)
    assert (cache.used, cache.free) == (0, 10)


def test_a_published_prefix_is_found_up_to_where_chains_part() -> None:
    cache = a_cache()
    publish(cache, blocks(("template", 16), ("schema", 32), ("question", 16)))
    other = blocks(("template", 16), ("schema", 32), ("other", 16))
    assert cache.found(other, limit=1000) == 2
    assert cache.found(blocks(("schema", 32)), limit=1000) == 0


def test_the_last_token_of_a_prompt_is_never_found() -> None:
    cache = a_cache()
    chain = blocks(("template", 16), ("schema", 32))
    publish(cache, chain)
    assert cache.found(chain, limit=47) == 1
    assert cache.found(chain, limit=48) == 2


def test_prefixes_are_not_kept_where_caching_is_off() -> None:
    cache = a_cache(keep_prefixes=False)
    cache.take(1)
    assert cache.publish(blocks(("template", 16))[0]) == 0
    assert (cache.used, cache.found(blocks(("template", 16)), limit=99)) == (1, 0)


def test_a_released_prefix_stays_but_counts_as_free() -> None:
    cache = a_cache()
    chain = blocks(("template", 16), ("schema", 32))
    publish(cache, chain)
    assert (cache.used, cache.cached) == (3, 0)
    cache.release(chain)
    assert (cache.used, cache.cached, cache.free) == (0, 3, 10)
    assert cache.found(chain, limit=99) == 2


def test_a_prefix_held_by_two_is_free_when_both_let_go() -> None:
    cache = a_cache()
    chain = blocks(("template", 16))
    publish(cache, chain)
    cache.hold(chain[0])
    cache.release(chain)
    assert cache.used == 1
    cache.release(chain)
    assert cache.used == 0


def test_two_copies_computed_at_once_become_one() -> None:
    cache = a_cache()
    chain = blocks(("template", 32))
    cache.take(4)
    for _ in range(2):
        assert cache.publish(chain[0]) == 2
    assert cache.used == 2


def test_the_longest_unused_goes_first_and_tails_before_heads() -> None:
    cache = a_cache()
    old, new = blocks(("old", 32), ("tail", 32)), blocks(("new", 32))
    publish(cache, old)
    cache.release(old)
    publish(cache, new)
    cache.release(new)
    cache.take(5)  # 6 blocks are cached, 4 are free: one of two blocks must go
    assert cache.found(old, limit=999) == 1
    assert cache.found(new, limit=999) == 1
    cache.take(2)
    assert cache.found(old, limit=999) == 0
    assert cache.found(new, limit=999) == 1


def test_using_a_prefix_makes_it_young_again() -> None:
    cache = a_cache()
    first, second = blocks(("first", 64)), blocks(("second", 64))
    for chain in (first, second):
        publish(cache, chain)
        cache.release(chain)
    cache.hold(first[0])
    cache.release(first)
    cache.take(3)
    assert cache.found(first, limit=999) == 1
    assert cache.found(second, limit=999) == 0


def test_what_is_held_is_never_evicted() -> None:
    cache = a_cache()
    chain = blocks(("held", 80))
    publish(cache, chain)
    cache.take(5)
    assert cache.found(chain, limit=999) == 1
    assert cache.free == 0


def test_clearing_forgets_what_nobody_holds() -> None:
    cache = a_cache()
    held, idle = blocks(("held", 16)), blocks(("idle", 16))
    publish(cache, held)
    publish(cache, idle)
    cache.release(idle)
    cache.clear()
    assert (cache.found(held, limit=99), cache.found(idle, limit=99), cache.cached) == (1, 0, 0)
