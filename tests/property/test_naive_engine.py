"""Both engine models against the same, token by token."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hexflow_scheduler import Profile
from hexflow_simulator import Engine, EngineModel, EngineOptions, EngineOrder, EngineRequest
from hexflow_simulator.authors import AuthorsEngine, AuthorsSpeed
from support.engine_model import a_request, blocks
from support.naive_engine import Times, authors_times, our_times

PREFIXES = [
    blocks(("template", 32), ("schema-a", 48)),
    blocks(("template", 32), ("schema-b", 37)),
    blocks(("template", 32)),
    (),
]
# Odd gaps, so that nothing arrives exactly at a boundary, where a last bit would decide.
gaps = st.integers(0, 60).map(lambda number: number * 0.0100317)
asked = st.lists(
    st.tuples(
        gaps,
        st.sampled_from(PREFIXES),
        st.integers(1, 90),
        st.integers(1, 40),
        st.integers(-2, 2),
        st.sampled_from(["candidate", "revise", "tester"]),
    ),
    min_size=1,
    max_size=14,
)


def requests(given_: list) -> list[tuple[float, EngineRequest]]:  # type: ignore[type-arg]
    now, made = 0.0, []
    for number, (gap, prefix, own, output, priority, stage) in enumerate(given_):
        now += gap
        tokens = own + sum(block.tokens for block in prefix)
        request = a_request(
            f"{number}", prompt=tokens, output=output, priority=priority, prefix=prefix, stage=stage
        )
        made.append((now, request))
    return made


def times(engine: EngineModel, asked_: list[tuple[float, EngineRequest]]) -> Times:
    finished = []
    for at, request in asked_:
        finished += engine.advance(at)
        engine.submit(at, request)
    while (event := engine.next_finish()) is not None:
        ended = engine.advance(event)
        assert {done.finished for done in ended} <= {event}, "it was looked at too late"
        finished += ended
    return {done.request_id: (done.started, done.first_token, done.finished) for done in finished}


def agree(jumping: Times, walking: Times) -> None:
    assert jumping.keys() == walking.keys()
    for request_id, expected in walking.items():
        assert jumping[request_id] == pytest.approx(expected, abs=1e-6), request_id


@settings(max_examples=150, deadline=None)
@given(
    asked,
    st.integers(220, 700),
    st.integers(1, 6),
    st.sampled_from(EngineOrder),
    st.booleans(),
    st.integers(8, 200),
    st.sampled_from([1, 7, 16]),
)
def test_our_engine_jumps_to_where_single_steps_lead(
    given_: list,  # type: ignore[type-arg]
    kv_tokens: int,
    slots: int,
    order: EngineOrder,
    keep_prefixes: bool,
    step_tokens: int,
    block_tokens: int,
) -> None:
    profile = Profile(
        t0=0.0203, t1=0.00107, t2=0.0000113, c1=0.000109, c2=1.3e-8, kv_tokens=kv_tokens, slots=slots
    )
    options = EngineOptions(
        order=order, keep_prefixes=keep_prefixes, step_tokens=step_tokens, block_tokens=block_tokens
    )
    made = requests(given_)
    agree(times(Engine(profile, options), made), our_times(made, profile, options))


@settings(max_examples=150, deadline=None)
@given(asked, st.integers(12, 40), st.sampled_from(EngineOrder), st.sampled_from([0.0, 0.0151]))
def test_the_authors_engine_jumps_to_where_single_steps_lead(
    given_: list,  # type: ignore[type-arg]
    kv_blocks: int,
    order: EngineOrder,
    overhead: float,
) -> None:
    speed = AuthorsSpeed(
        decode=0.0353,
        prefill={"candidate": 0.000261, "revise": 0.00007},
        other_prefill=0.0003,
        kv_blocks=kv_blocks,
    )
    options = EngineOptions(order=order, overhead_seconds=overhead)
    made = requests(given_)
    agree(times(AuthorsEngine(speed, options), made), authors_times(made, speed, options))
