"""Faults: how they are written, and whom they strike."""

import pytest

from hexflow_emulator import Fault, FaultError
from hexflow_emulator.faults import Faults


def of(*texts: str) -> Faults:
    return Faults(pending=[Fault.parse(text) for text in texts])


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("error:3", Fault("error", 3, status=500)),
        ("error:1:status=503", Fault("error", 1, status=503)),
        ("error-rate:0.25:status=429", Fault("error-rate", 0.25, status=429)),
        ("stall:2:tokens=5", Fault("stall", 2, tokens=5)),
        ("cut:1", Fault("cut", 1, tokens=1)),
        ("rubbish:1:kind=sse", Fault("rubbish", 1, kind="sse")),
        ("slow:2.5", Fault("slow", 2.5)),
        ("slow-start:30", Fault("slow-start", 30)),
    ],
)
def test_a_fault_is_read(text: str, fault: Fault) -> None:
    assert Fault.parse(text) == fault


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("explode:1", "there is no fault 'explode'; there are error, "),
        ("error", "write a number after error:"),
        ("error:0", "more than 0"),
        ("error:nan", "more than 0"),
        ("error:x", "'x' is not understood"),
        ("error:1:kind=html", "error:NUMBER takes status="),
        ("rubbish:1:kind=poem", "'kind=poem' is not understood"),
        ("error-rate:1.5", "at most 1"),
        ("slow:2:tokens=1", "takes nothing more"),
    ],
)
def test_a_wrong_fault_says_what_may_be_written(text: str, message: str) -> None:
    with pytest.raises(FaultError, match=message):
        Fault.parse(text)


def test_a_counted_fault_strikes_as_often_as_it_says() -> None:
    faults = of("error:2")
    assert [fault.name if (fault := faults.strike()) else None for _ in range(3)] == ["error", "error", None]


def test_of_several_faults_the_first_left_strikes() -> None:
    faults = of("error:1", "stall:1")
    assert [fault.name if (fault := faults.strike()) else None for _ in range(3)] == ["error", "stall", None]


def test_a_rate_strikes_about_as_often_and_repeats_itself() -> None:
    runs = [[of("error-rate:0.3")] for _ in range(2)]
    struck = [[faults.strike() is not None for _ in range(2000)] for (faults,) in runs]
    assert struck[0] == struck[1]
    assert sum(struck[0]) == pytest.approx(600, rel=0.15)


def test_it_dies_with_the_call_that_was_named() -> None:
    faults = of("die-after:3")
    assert [faults.dies() for _ in range(3)] == [False, False, True]
    assert not of("error:1").dies()


def test_what_is_left_is_told() -> None:
    faults = of("error:2", "stall:1")
    faults.strike()
    assert faults.left() == [{"name": "error", "left": 1}, {"name": "stall", "left": 1}]
    faults.replace([])
    assert faults.left() == []
    assert faults.strike() is None
