"""What holds of the engine model whatever is asked of it, in whatever order."""

from hypothesis import given, settings
from hypothesis import strategies as st

from hexflow_simulator import Engine, EngineOrder, EngineRequest
from support.engine_model import a_request, an_engine, blocks, run_out

SCHEMAS = [
    blocks(("template", 32), ("schema-a", 48)),
    blocks(("template", 32), ("schema-b", 37)),
    blocks(("template", 32)),
    (),
]

requests = st.builds(
    lambda prompt, output, priority, prefix: {
        "prompt": prompt + sum(block.tokens for block in prefix),
        "output": output,
        "priority": priority,
        "prefix": prefix,
    },
    st.integers(1, 90),
    st.integers(1, 60),
    st.integers(-2, 2),
    st.sampled_from(SCHEMAS),
)
actions = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), requests),
        st.tuples(st.just("cancel"), st.integers(0, 30)),
        st.tuples(st.just("wait"), st.floats(0, 0.4)),
    ),
    max_size=40,
)
engines = st.builds(
    an_engine,
    profile=st.fixed_dictionaries({"kv_tokens": st.integers(300, 900), "slots": st.integers(1, 6)}),
    order=st.sampled_from(EngineOrder),
    keep_prefixes=st.booleans(),
    step_tokens=st.integers(8, 200),
    block_tokens=st.sampled_from([1, 7, 16]),
    overhead_seconds=st.sampled_from([0.0, 0.015]),
)


def check(engine: Engine) -> None:
    counts = engine.counts()
    assert counts.running <= engine.profile.slots
    assert counts.used_blocks >= 0
    assert counts.used_blocks + counts.cached_blocks <= counts.capacity_blocks
    assert counts.prefix_hits <= counts.prefix_queries


@settings(max_examples=150, deadline=None)
@given(engines, actions)
def test_every_request_ends_once_and_no_limit_is_ever_passed(engine: Engine, actions: list) -> None:  # type: ignore[type-arg]
    now, submitted, cancelled, finished = 0.0, dict[str, EngineRequest](), set[str](), []
    for kind, value in actions:
        if kind == "submit":
            request = a_request(f"{len(submitted)}", **value)
            if request.prompt_tokens + request.output_tokens > 240:
                continue
            engine.submit(now, request)
            submitted[request.request_id] = request
        elif kind == "cancel":
            if engine.cancel(now, f"{value}"):
                cancelled.add(f"{value}")
        else:
            now += value
            finished += engine.advance(now)
        check(engine)
    while (at := engine.next_event()) is not None:
        finished += engine.advance(at)
        check(engine)
    ended = [each.request_id for each in finished]
    assert sorted([*ended, *cancelled]) == sorted(submitted)
    assert engine.counts().used_blocks == 0
    assert (engine.counts().running, engine.counts().waiting) == (0, 0)
    for each in finished:
        request = submitted[each.request_id]
        assert each.output_tokens == request.output_tokens
        assert each.submitted <= each.started <= each.first_token <= each.finished
        assert 0 <= each.cached_tokens < request.prompt_tokens


@settings(max_examples=60, deadline=None)
@given(engines, st.lists(requests, min_size=1, max_size=8), st.integers(1, 400))
def test_looking_in_between_never_changes_what_happens(engine: Engine, asked: list, ticks: int) -> None:  # type: ignore[type-arg]
    other = Engine(engine.profile, engine.options)
    small = [value for value in asked if value["prompt"] + value["output"] <= 240]
    for number, value in enumerate(small):
        for each in (engine, other):
            each.submit(number * 0.05, a_request(f"{number}", **value))
    looked = []
    for tick in range(ticks):
        now = number_of(small) * 0.05 + tick * 0.0073
        looked += engine.advance(now)
        engine.progress(now, "0")
    looked += run_out(engine)
    unlooked = run_out(other)
    assert [each.request_id for each in looked] == [each.request_id for each in unlooked]
    for first, second in zip(looked, unlooked, strict=True):
        assert abs(first.finished - second.finished) < 1e-6


def number_of(asked: list) -> int:  # type: ignore[type-arg]
    return max(0, len(asked) - 1)


@settings(max_examples=60, deadline=None)
@given(engines, st.lists(requests, min_size=1, max_size=8))
def test_the_same_requests_take_the_same_time(engine: Engine, asked: list) -> None:  # type: ignore[type-arg]
    runs = []
    for each in (engine, Engine(engine.profile, engine.options)):
        for number, value in enumerate(asked):
            if value["prompt"] + value["output"] <= 240:
                each.submit(number * 0.05, a_request(f"{number}", **value))
        runs.append(run_out(each))
    assert runs[0] == runs[1]
