"""Whatever happens to a kernel, in whatever order: these things hold."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hexflow_scheduler import (
    Decision,
    End,
    Kernel,
    Place,
    Policy,
    RecordingKernel,
    Send,
    decode,
    encode,
    policy_names,
    replay,
)
from hexflow_scheduler.policy import DISPATCH_RULES, QUEUE_RULES
from support.rig import Rig, Step

POLICIES = st.sampled_from(policy_names())


def small(low: int, high: int) -> st.SearchStrategy[int]:
    return st.integers(low, high)


def step(name: str, *numbers: st.SearchStrategy[int]) -> st.SearchStrategy[Step]:
    return st.tuples(*numbers).map(lambda drawn: Step(name, drawn))


ARRIVE = step("arrive", small(1, 5), small(50, 1600), small(1, 3), small(0, 160), small(0, 80), small(0, 6))
APPEAR = step("instance", small(0, 3), st.just(0), small(1, 5), small(1000, 9000), small(0, 2))
CHANGE = step("instance", small(0, 3), small(0, 3), small(1, 5), small(1000, 9000), small(0, 2))
FINISH = step("finish", small(0, 20), small(0, 200))
ANYTHING = st.one_of(
    ARRIVE,
    ARRIVE,
    FINISH,
    FINISH,
    step("fail", small(0, 20), small(0, 1)),
    step("cancel", small(0, 40)),
    APPEAR,
    CHANGE,
    step("load", small(0, 3), small(0, 4)),
    step("parameters", small(0, 10), small(0, 1)),
    step("wait", small(0, 60)),
)
# Left to itself the list of steps stays short, where few calls wait.
STEPS = st.builds(
    lambda fleet, steps: [*fleet, *steps],
    st.lists(APPEAR, max_size=4),
    st.one_of(st.lists(ANYTHING, max_size=8), st.lists(ANYTHING, min_size=25, max_size=80)),
)


def a_rig(policy: str, *, unit: float = 1.0) -> Rig:
    # The paper's beta as it is printed is a number of square seconds; no other parameter has a unit.
    literal = policy.startswith("HexGenFlowLiteral")
    parameters = {"beta": 1000.0 * unit**2} if literal else {}
    return Rig(Kernel(Policy.named(policy, park_seconds=5.0 * unit, **parameters)), unit=unit)


@given(policy=POLICIES, steps=STEPS)
@settings(deadline=None, max_examples=150)
def test_each_call_ends_exactly_once_and_no_instance_exceeds_its_slots_or_cache(
    policy: str, steps: list[Step]
) -> None:
    rig = a_rig(policy)
    rig.play(steps)
    rig.finish_all()
    assert len(rig.ends) == rig.arrived
    assert sum(isinstance(decision, End) for decision in rig.decisions) == rig.arrived


@given(policy=POLICIES, steps=STEPS)
@settings(deadline=None, max_examples=50)
def test_the_same_inputs_give_the_same_decisions(policy: str, steps: list[Step]) -> None:
    first, second = a_rig(policy), a_rig(policy)
    first.play(steps)
    second.play(steps)
    assert first.decisions == second.decisions
    assert first.kernel.view() == second.kernel.view()


@given(policy=POLICIES, steps=STEPS)
@settings(deadline=None, max_examples=50)
def test_a_log_read_back_from_its_lines_replays_to_the_same_decisions(policy: str, steps: list[Step]) -> None:
    lines: list[str] = []
    rig = Rig(RecordingKernel(Policy.named(policy), sink=lines.append))
    rig.play(steps)
    assert [encode(decode(line)) for line in lines] == lines
    replayed = replay(decode(line) for line in lines)
    assert replayed.difference is None
    assert replayed.decisions == len(rig.decisions)
    assert replayed.kernel.view() == rig.kernel.view()
    assert replayed.kernel.estimates.to_data() == rig.kernel.estimates.to_data()


@given(policy=POLICIES, steps=STEPS)
@settings(deadline=None, max_examples=100)
def test_scaling_all_times_by_ten_changes_no_decision(policy: str, steps: list[Step]) -> None:
    plain, scaled = a_rig(policy), a_rig(policy, unit=10.0)
    plain.play(steps)
    scaled.play(steps)
    assert without_times(plain.decisions) == without_times(scaled.decisions)


# Each rule once, under the same long and busy story: what is drawn above reaches few of all the pairs.
RULES = [*DISPATCH_RULES, *(f"LeastOutstanding+{queue}" for queue in QUEUE_RULES)]


def a_busy_story(seed: int) -> list[Step]:
    chance = Random(seed)
    story = [Step("instance", (index, 0, 2 + index, 4000, chance.randrange(3))) for index in range(4)]
    for _ in range(70):
        match chance.randrange(8):
            case 0 | 1 | 2:
                drawn = [chance.randrange(1, 5), chance.randrange(50, 1600), chance.randrange(1, 3)]
                story.append(
                    Step(
                        "arrive",
                        (
                            *drawn,
                            chance.choice([0, 40, 90, 160]),
                            chance.choice([0, 40]),
                            chance.randrange(7),
                        ),
                    )
                )
            case 3 | 4 | 5:
                story.append(Step("finish", (chance.randrange(20), chance.randrange(200))))
            case 6:
                story.append(Step(chance.choice(["cancel", "fail"]), (chance.randrange(20),)))
            case _:
                story.append(Step("wait", (chance.randrange(60),)))
    return [step if step.name != "fail" else Step("fail", (*step.numbers, 1)) for step in story]


@pytest.mark.parametrize("policy", RULES)
def test_each_rule_keeps_what_all_keep_and_replays_and_does_not_mind_the_unit_of_time(policy: str) -> None:
    story, lines = a_busy_story(4), list[str]()
    plain, scaled = a_rig(policy), a_rig(policy, unit=10.0)
    recorded = Rig(RecordingKernel(plain.kernel.policy, sink=lines.append))
    for rig in (plain, scaled, recorded):
        rig.play(story)
        rig.finish_all()
        assert len(rig.ends) == rig.arrived > 40
    assert without_times(plain.decisions) == without_times(scaled.decisions)
    assert plain.decisions == recorded.decisions
    assert replay(decode(line) for line in lines).difference is None


def without_times(decisions: Sequence[Decision]) -> list[tuple[object, ...]]:
    """Return decisions without the numbers that are seconds."""
    plain: list[tuple[object, ...]] = []
    for decision in decisions:
        match decision:
            case Place():
                plain.append(("place", decision.call_id, decision.instance_id, decision.output_tokens))
            case Send():
                plain.append(("send", decision.call_id, decision.instance_id, decision.attempt))
            case _:
                plain.append((decision,))
    return plain
