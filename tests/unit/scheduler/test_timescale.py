import pytest

from hexflow_scheduler import InvalidInput, TimeScale


def test_real_time_is_left_alone() -> None:
    assert TimeScale().emulated(1_700_000_000.5) == 1_700_000_000.5
    assert TimeScale().real_seconds(3.0) == 3.0


def test_time_runs_faster_from_the_origin_on() -> None:
    scale = TimeScale(10.0, 1000.0)
    assert scale.emulated(1000.0) == 1000.0
    assert scale.emulated(1003.0) == 1030.0
    assert scale.real_seconds(30.0) == 3.0
    assert scale.emulated_seconds(3.0) == 30.0


@pytest.mark.parametrize("factor", [0.0, -1.0, float("nan"), float("inf")])
def test_a_scale_that_is_no_positive_number_is_refused(factor: float) -> None:
    with pytest.raises(InvalidInput, match="a time scale is a positive number"):
        TimeScale(factor)
