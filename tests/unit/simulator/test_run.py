"""A stretch of equal steps: when each is complete, and how many are at an instant."""

import pytest

from hexflow_simulator.run import Segment


def a_segment(*, steps: int = 10, first: float = 0.02, growth: float = 0.001) -> Segment:
    return Segment(start=100.0, steps=steps, first=first, growth=growth)


def test_each_step_is_longer_than_the_one_before() -> None:
    segment = a_segment()
    assert [segment.at(steps) - 100 for steps in range(4)] == pytest.approx([0, 0.02, 0.041, 0.063])
    assert segment.end == segment.at(10)


@pytest.mark.parametrize("growth", [0.0, 1e-9, 0.001, 0.5])
@pytest.mark.parametrize("steps", [1, 2, 1000])
def test_as_many_steps_are_done_as_have_ended(growth: float, steps: int) -> None:
    segment = a_segment(steps=steps, growth=growth)
    for done in range(0, steps + 1, max(1, steps // 50)):
        ends = segment.at(done)
        assert segment.done(ends) == done
        assert segment.done(ends + 1e-7) == done
        if done:
            assert segment.done(ends - 1e-7) == done - 1


def test_no_more_steps_are_done_than_there_are() -> None:
    assert a_segment(steps=3).done(1e9) == 3
    assert a_segment(steps=3).done(0.0) == 0
