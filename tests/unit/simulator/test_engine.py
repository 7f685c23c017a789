"""The engine model against times reckoned by hand, and what it must never do."""

import math

import pytest

from hexflow_simulator import EngineOrder, RequestTooLargeError
from support.engine_model import ROUND, a_request, an_engine, blocks, by_name, run_out

T0, T1, T2, C1 = ROUND.t0, ROUND.t1, ROUND.t2, ROUND.c1


def decode(contexts: list[int], steps: int) -> float:
    """Return the seconds of so many decode steps of calls that begin with these contexts."""
    batch = len(contexts)
    return sum(T0 + T1 * batch + T2 * (sum(contexts) + batch * step) for step in range(steps))


# One call


def test_a_call_alone_takes_its_prefill_and_its_steps() -> None:
    engine = an_engine()
    engine.submit(5.0, a_request(prompt=100, output=10))
    (finished,) = run_out(engine)
    assert finished.first_token == pytest.approx(5.0 + T0 + 100 * C1)
    assert finished.finished == pytest.approx(finished.first_token + decode([101], 9))
    assert (finished.output_tokens, finished.cached_tokens, finished.preemptions) == (10, 0, 0)


def test_a_call_alone_takes_what_its_profile_predicts() -> None:
    engine = an_engine(profile={"c2": 1e-8})
    engine.submit(0.0, a_request(prompt=1500, output=200))
    (finished,) = run_out(engine)
    predicted = engine.profile.prefill_seconds(1500) + engine.profile.decode_seconds(1500, 200)
    assert finished.finished == pytest.approx(predicted, rel=0.01)


def test_one_token_of_output_needs_no_decode_step() -> None:
    engine = an_engine()
    engine.submit(0.0, a_request(prompt=50, output=1))
    (finished,) = run_out(engine)
    assert finished.finished == finished.first_token == pytest.approx(T0 + 50 * C1)


def test_a_call_waits_its_fixed_cost_first() -> None:
    engine = an_engine(overhead_seconds=0.015)
    engine.submit(1.0, a_request(output=1))
    assert engine.next_event() == pytest.approx(1.015)
    (finished,) = run_out(engine)
    assert finished.started == pytest.approx(1.015)


def test_prefill_comes_in_chunks_that_get_dearer_with_depth() -> None:
    engine = an_engine(profile={"c2": 1e-8}, step_tokens=1000)
    engine.submit(0.0, a_request(prompt=2500, output=1))
    (finished,) = run_out(engine)
    depths = 1000 * 500 + 1000 * 1500 + 500 * 2250
    assert finished.first_token == pytest.approx(3 * T0 + 2500 * C1 + 1e-8 * depths)


# Several calls


def test_two_calls_share_the_steps_they_have_in_common() -> None:
    engine = an_engine()
    for name, output in (("short", 5), ("long", 8)):
        engine.submit(0.0, a_request(name, prompt=100, output=output))
    finished = by_name(run_out(engine))
    first = T0 + 200 * C1
    assert finished["short"].first_token == finished["long"].first_token == pytest.approx(first)
    assert finished["short"].finished == pytest.approx(first + decode([101, 101], 4))
    assert finished["long"].finished == pytest.approx(first + decode([101, 101], 4) + decode([105], 3))


def test_a_newcomer_joins_at_the_next_step_and_its_prefill_stalls_the_others() -> None:
    engine = an_engine()
    engine.submit(0.0, a_request("old", prompt=100, output=10))
    first = T0 + 100 * C1
    joins = first + decode([101], 3)
    engine.advance(joins - 0.001)
    engine.submit(joins - 0.001, a_request("new", prompt=400, output=2))
    finished = by_name(run_out(engine))
    mixed = T0 + T1 + T2 * 104 + 400 * C1
    assert finished["new"].started == pytest.approx(joins)
    assert finished["new"].first_token == pytest.approx(joins + mixed)
    assert finished["new"].finished == pytest.approx(joins + mixed + decode([105, 401], 1))
    assert finished["old"].finished == pytest.approx(joins + mixed + decode([105, 401], 1) + decode([106], 4))


def test_no_more_run_than_there_are_slots() -> None:
    engine = an_engine(profile={"slots": 2})
    for name in "abc":
        engine.submit(0.0, a_request(name, output=3))
    engine.advance(0.001)
    assert (engine.counts().running, engine.counts().waiting) == (2, 1)
    finished = by_name(run_out(engine))
    assert finished["c"].started == finished["a"].finished


def test_a_step_takes_no_more_tokens_than_its_budget() -> None:
    engine = an_engine(step_tokens=100)
    engine.submit(0.0, a_request("a", prompt=80, output=2))
    engine.submit(0.0, a_request("b", prompt=80, output=2))
    finished = by_name(run_out(engine))
    assert finished["a"].first_token == pytest.approx(T0 + 100 * C1)
    # 60 of the second prompt are left, beside the first call's decode step
    assert finished["b"].first_token == pytest.approx(finished["a"].first_token + T0 + T1 + T2 * 81 + 60 * C1)


def test_a_bigger_batch_makes_each_of_it_slower() -> None:
    alone, crowded = an_engine(), an_engine()
    alone.submit(0.0, a_request("a", output=50))
    for name in "abcdef":
        crowded.submit(0.0, a_request(name, output=50))
    assert by_name(run_out(crowded))["a"].finished > by_name(run_out(alone))["a"].finished


# Order


@pytest.mark.parametrize(("order", "expected"), [(EngineOrder.FCFS, "abcd"), (EngineOrder.PRIORITY, "acdb")])
def test_a_freed_slot_goes_by_the_engines_order(order: EngineOrder, expected: str) -> None:
    engine = an_engine(profile={"slots": 1}, order=order)
    for name, priority in (("a", 9), ("b", 5), ("c", -1), ("d", 0)):
        engine.submit(0.0, a_request(name, priority=priority))
        engine.advance(0.001)
    assert "".join(each.request_id for each in run_out(engine)) == expected


def test_equal_priorities_go_first_come_first_served() -> None:
    engine = an_engine(profile={"slots": 1}, order=EngineOrder.PRIORITY)
    for name in "abcd":
        engine.submit(0.0, a_request(name, priority=3))
    assert [each.request_id for each in run_out(engine)] == list("abcd")


# The KV cache


def test_a_call_waits_until_its_blocks_are_free() -> None:
    engine = an_engine(profile={"kv_tokens": 320})
    engine.submit(0.0, a_request("a", prompt=200, output=20))
    engine.submit(0.0, a_request("b", prompt=200, output=20))
    finished = by_name(run_out(engine))
    assert finished["b"].started == finished["a"].finished
    assert finished["b"].preemptions == 0


def test_out_of_blocks_the_least_important_is_preempted_and_recomputed() -> None:
    engine = an_engine(profile={"kv_tokens": 320}, order=EngineOrder.PRIORITY, keep_prefixes=False)
    engine.submit(0.0, a_request("urgent", prompt=100, output=150, priority=0))
    engine.submit(0.0, a_request("lazy", prompt=100, output=100, priority=5))
    finished = by_name(run_out(engine))
    assert finished["urgent"].preemptions == 0
    assert finished["lazy"].preemptions == 1
    assert finished["lazy"].output_tokens == 100
    assert engine.counts().preemptions == 1
    assert finished["urgent"].finished < finished["lazy"].finished


def test_first_come_first_served_preempts_the_latest() -> None:
    engine = an_engine(profile={"kv_tokens": 320}, keep_prefixes=False)
    for name in ("first", "second"):
        engine.submit(0.0, a_request(name, prompt=100, output=120))
    finished = by_name(run_out(engine))
    assert (finished["first"].preemptions, finished["second"].preemptions) == (0, 1)


def test_tokens_written_before_a_preemption_are_kept_and_computed_again() -> None:
    engine = an_engine(profile={"kv_tokens": 320}, keep_prefixes=False)
    for name in ("first", "second"):
        engine.submit(0.0, a_request(name, prompt=100, output=120))
    seen = 0
    while (at := engine.next_event()) is not None:
        engine.advance(at)
        progress = engine.progress(at, "second")
        if progress is not None:
            assert progress.output_tokens >= seen
            seen = progress.output_tokens


def test_a_call_larger_than_the_cache_is_refused_at_once() -> None:
    engine = an_engine(profile={"kv_tokens": 320})
    with pytest.raises(RequestTooLargeError, match="321 tokens do not fit a KV cache of 320 tokens"):
        engine.submit(0.0, a_request(prompt=300, output=21))
    engine.submit(0.0, a_request(prompt=300, output=20))
    assert len(run_out(engine)) == 1


def test_nothing_is_held_when_all_is_done() -> None:
    engine = an_engine(profile={"kv_tokens": 640})
    for number in range(20):
        engine.submit(0.0, a_request(f"{number}", prompt=50 + number, output=number + 1))
    run_out(engine)
    counts = engine.counts()
    assert (counts.running, counts.waiting, counts.used_blocks) == (0, 0, 0)


# Prefixes


def test_a_known_prefix_is_not_computed_again() -> None:
    engine = an_engine()
    prefix = blocks(("template", 160), ("schema", 800))
    engine.submit(0.0, a_request("a", prompt=1000, output=1, prefix=prefix))
    (first,) = run_out(engine)
    engine.submit(10.0, a_request("b", prompt=1000, output=1, prefix=prefix))
    (second,) = run_out(engine)
    assert (first.cached_tokens, second.cached_tokens) == (0, 960)
    assert second.finished - second.started == pytest.approx(T0 + 40 * C1)
    assert (engine.counts().prefix_queries, engine.counts().prefix_hits) == (2000, 960)


def test_a_sibling_that_starts_later_shares_what_the_first_has_computed() -> None:
    engine = an_engine(step_tokens=1000)
    prefix = blocks(("schema", 960))
    for name in "ab":
        engine.submit(0.0, a_request(name, prompt=1000, output=5, prefix=prefix))
    finished = by_name(run_out(engine))
    assert finished["a"].cached_tokens == 0
    assert finished["b"].cached_tokens == 960
    assert finished["b"].started == finished["a"].first_token


def test_prefixes_are_evicted_for_running_calls_the_oldest_first() -> None:
    engine = an_engine(profile={"kv_tokens": 1600})
    for number, name in enumerate(("old", "young")):
        engine.submit(float(number), a_request(name, prompt=500, output=1, prefix=blocks((name, 480))))
        run_out(engine)
    engine.submit(10.0, a_request("big", prompt=900, output=1))
    run_out(engine)
    for number, (name, cached) in enumerate((("young", 480), ("old", 0))):
        engine.submit(20.0 + number, a_request("again", prompt=500, output=1, prefix=blocks((name, 480))))
        (again,) = run_out(engine)
        assert again.cached_tokens == cached


def test_without_prefix_caching_nothing_is_found() -> None:
    engine = an_engine(keep_prefixes=False)
    for name in "ab":
        engine.submit(0.0, a_request(name, prompt=500, output=1, prefix=blocks(("schema", 480))))
    assert [each.cached_tokens for each in run_out(engine)] == [0, 0]


# Cancelling


def test_cancelling_frees_the_slot_and_the_blocks_at_once() -> None:
    engine = an_engine(profile={"slots": 1})
    engine.submit(0.0, a_request("a", output=1000))
    engine.submit(0.0, a_request("b", output=1))
    engine.advance(0.5)
    assert engine.cancel(0.5, "a")
    counts = engine.counts()
    assert counts.used_blocks <= 7
    (finished,) = run_out(engine)
    assert finished.request_id == "b"
    assert 0.5 <= finished.started <= 0.5 + T0 + T1 + T2 * 200


def test_cancelling_ends_the_step_in_progress_when_it_would_have_ended() -> None:
    engine = an_engine()
    for name in ("stays", "goes"):
        engine.submit(0.0, a_request(name, prompt=100, output=10))
    first = T0 + 200 * C1
    engine.cancel(first + 0.001, "goes")
    (finished,) = run_out(engine)
    assert finished.finished == pytest.approx(first + decode([101, 101], 1) + decode([102], 8))


@pytest.mark.parametrize("when", [0.0, 0.005, 0.2], ids=["incoming", "waiting", "prefilling"])
def test_a_call_can_be_cancelled_wherever_it_is(when: float) -> None:
    engine = an_engine(profile={"slots": 1}, overhead_seconds=0.001, step_tokens=500)
    engine.submit(0.0, a_request("first", prompt=5000, output=2))
    engine.submit(0.0, a_request("second", prompt=100, output=2))
    assert engine.cancel(when, "first" if when == 0.2 else "second")
    assert [each.request_id for each in run_out(engine)] == ["second" if when == 0.2 else "first"]
    assert engine.counts().used_blocks == 0


def test_cancelling_what_is_not_there_says_so() -> None:
    engine = an_engine()
    engine.submit(0.0, a_request("a", output=1))
    run_out(engine)
    assert not engine.cancel(9.0, "a")
    assert not engine.cancel(9.0, "b")


def test_an_id_in_use_is_refused_and_can_be_used_again_later() -> None:
    engine = an_engine()
    engine.submit(0.0, a_request("a"))
    with pytest.raises(ValueError, match="'a' is in use"):
        engine.submit(0.0, a_request("a"))
    run_out(engine)
    engine.submit(50.0, a_request("a"))
    assert len(run_out(engine)) == 1


@pytest.mark.parametrize(("prompt", "output"), [(0, 1), (1, 0)])
def test_a_call_without_tokens_is_refused(prompt: int, output: int) -> None:
    with pytest.raises(ValueError, match="at least one token"):
        an_engine().submit(0.0, a_request(prompt=prompt, output=output))


# Looking


def test_progress_counts_whole_tokens_as_time_passes() -> None:
    engine = an_engine()
    engine.submit(0.0, a_request("a", prompt=100, output=10))
    first = T0 + 100 * C1
    for steps, at in ((0, first - 0.001), (1, first + 0.0001), (3, first + decode([101], 2) + 0.0001)):
        engine.advance(at)
        progress = engine.progress(at, "a")
        assert progress is not None
        assert progress.output_tokens == steps
    assert engine.progress(0.0, "nobody") is None


def test_looking_often_changes_nothing() -> None:
    looked, unlooked = an_engine(profile={"slots": 3}), an_engine(profile={"slots": 3})
    for engine in (looked, unlooked):
        for number in range(9):
            engine.submit(number * 0.1, a_request(f"{number}", prompt=100 + 37 * number, output=20 + number))
    often = []
    for tick in range(3000):
        often += looked.advance(tick * 0.002)
        looked.progress(tick * 0.002, "3")
        looked.next_step(tick * 0.002)
    expected = run_out(unlooked)
    assert [each.request_id for each in often] == [each.request_id for each in expected]
    assert [each.finished for each in often] == pytest.approx([each.finished for each in expected])


def test_time_that_steps_backwards_is_no_time() -> None:
    engine = an_engine()
    engine.submit(5.0, a_request("a", output=5))
    engine.advance(5.05)
    assert engine.advance(1.0) == []
    engine.submit(0.0, a_request("b", output=1))
    assert min(each.started for each in run_out(engine)) >= 5.0


def test_an_idle_engine_has_no_next_event() -> None:
    engine = an_engine()
    assert engine.next_event() is None
    assert engine.next_step(3.0) is None
    engine.submit(3.0, a_request(output=1))
    assert engine.next_event() == 3.0
    engine.advance(3.0)
    assert engine.next_event() == pytest.approx(3.0 + T0 + 100 * C1)
    run_out(engine)
    assert engine.next_event() is None


def test_the_next_step_is_when_the_next_token_comes() -> None:
    engine = an_engine()
    engine.submit(0.0, a_request("a", prompt=100, output=10))
    first = T0 + 100 * C1
    engine.advance(first)
    assert engine.next_step(first) == pytest.approx(first + decode([101], 1))
    assert engine.next_event() == pytest.approx(first + decode([101], 9))


def test_the_decode_jump_is_exact_over_thousands_of_tokens() -> None:
    engine = an_engine(profile={"kv_tokens": 10**6})
    engine.submit(0.0, a_request(prompt=1, output=5000))
    (finished,) = run_out(engine)
    steps = 4999
    exact = T0 + C1 + steps * (T0 + T1) + T2 * (steps * 2 + steps * (steps - 1) / 2)
    assert math.isclose(finished.finished, exact, rel_tol=1e-9)
