from hexflow_scheduler import Kernel, Policy, PrefixBlock
from support.calls import FAST, a_call, an_instance, usage
from support.decisions import sent, the_place

TEMPLATE = PrefixBlock(key="template", tokens=300)
SCHEMA = PrefixBlock(key="template/shop", tokens=600)
OTHER = PrefixBlock(key="template/bank", tokens=600)


def a_kernel(*, kv_tokens: int = 100_000, slots: int = 8, prefix_caching: bool = True) -> Kernel:
    kernel = Kernel(Policy.named("RoundRobin"))
    profile = FAST.__class__(t0=0.02, t1=0, t2=0, c1=0.001, c2=0, kv_tokens=kv_tokens, slots=slots)
    kernel.instance(0.0, an_instance(profile=profile, prefix_caching=prefix_caching))
    return kernel


def seconds(kernel: Kernel, call_id: str, *prefix: PrefixBlock) -> float:
    return the_place(kernel.arrive(9.0, [a_call(call_id, prefix=prefix)]), call_id).predicted_seconds


def test_a_prefix_that_a_running_call_holds_costs_no_prefill() -> None:
    kernel = a_kernel()
    assert seconds(kernel, "first", TEMPLATE, SCHEMA) == 3.0
    assert seconds(kernel, "second", TEMPLATE, SCHEMA) == 2.1
    assert seconds(kernel, "other", TEMPLATE, OTHER) == 2.7


def test_a_prefix_stays_cached_when_its_calls_have_ended() -> None:
    kernel = a_kernel()
    seconds(kernel, "first", TEMPLATE, SCHEMA)
    kernel.finished(9.0, "first", usage())
    assert seconds(kernel, "second", TEMPLATE, SCHEMA) == 2.1


def test_a_block_counts_only_behind_the_blocks_before_it() -> None:
    kernel = a_kernel()
    seconds(kernel, "first", TEMPLATE, SCHEMA)
    assert seconds(kernel, "second", OTHER, SCHEMA) == 3.0


def test_the_blocks_used_least_recently_are_pushed_out_first() -> None:
    kernel = a_kernel(kv_tokens=1300)
    for name, block in (("first", SCHEMA), ("second", OTHER)):
        seconds(kernel, name, TEMPLATE, block)
        kernel.finished(9.0, name, usage())
    assert seconds(kernel, "third", TEMPLATE, OTHER) == 2.1
    kernel.finished(9.0, "third", usage())
    assert seconds(kernel, "fourth", TEMPLATE, SCHEMA) == 2.7


def test_an_engine_without_a_prefix_cache_pays_for_every_prompt() -> None:
    kernel = a_kernel(prefix_caching=False)
    seconds(kernel, "first", TEMPLATE, SCHEMA)
    assert seconds(kernel, "second", TEMPLATE, SCHEMA) == 3.0


def test_running_calls_share_the_room_of_their_prefix() -> None:
    # 1,100 tokens for the first, 200 more for each that shares 900 with it
    kernel = a_kernel(kv_tokens=1500)
    calls = [a_call(f"c{n}", prefix=(TEMPLATE, SCHEMA)) for n in range(4)]
    assert sent(kernel.arrive(0.0, calls)) == ["c0", "c1", "c2"]
    assert kernel.view().instances[0].free_kv_tokens == 0
    assert sent(kernel.finished(3.0, "c0", usage())) == ["c3"]


def test_room_is_given_back_whole_when_all_have_ended() -> None:
    kernel = a_kernel(kv_tokens=5000)
    kernel.arrive(0.0, [a_call(f"c{n}", prefix=(TEMPLATE, SCHEMA)) for n in range(3)])
    for number in range(3):
        kernel.finished(3.0, f"c{number}", usage())
    assert kernel.view().instances[0].free_kv_tokens == 5000


def test_a_call_that_waits_does_not_take_room() -> None:
    kernel = a_kernel(slots=1)
    kernel.arrive(0.0, [a_call("runs", prefix=(TEMPLATE,)), a_call("waits", prefix=(TEMPLATE,))])
    assert kernel.view().instances[0].free_kv_tokens == 100_000 - 1100
    kernel.cancel(0.0, "runs")
    kernel.cancel(0.0, "waits")
    assert kernel.view().instances[0].free_kv_tokens == 100_000


def test_two_lengths_given_for_one_block_do_not_lose_room() -> None:
    kernel = a_kernel()
    for number, tokens in enumerate((300, 20, 700)):
        kernel.arrive(0.0, [a_call(f"c{number}", prefix=(PrefixBlock(key="same", tokens=tokens),))])
    for number in range(3):
        kernel.finished(3.0, f"c{number}", usage())
    assert kernel.view().instances[0].free_kv_tokens == 100_000
