"""Arrivals: rates, how they clump, and what is refused."""

from itertools import islice, pairwise
from random import Random
from statistics import fmean, pstdev

import pytest

from hexflow_simulator.arrivals import Arrivals, Bursts, Diurnal, Gamma, Poisson, Replay
from hexflow_simulator.complaint import InvalidWorkload

ALL: list[Arrivals] = [
    Poisson(2.0),
    Gamma(2.0, cv=3.0),
    Bursts(2.0),
    Diurnal(2.0, swing=0.6, period=500.0),
    Replay((0.0, 0.1, 4.0)),
]


def some(arrivals: Arrivals, count: int = 4000, *, seed: int = 1) -> list[float]:
    return list(islice(arrivals.times(Random(seed)), count))


def gaps(instants: list[float]) -> list[float]:
    return [later - earlier for earlier, later in pairwise([0.0, *instants])]


@pytest.mark.parametrize("arrivals", ALL, ids=lambda each: type(each).__name__)
def test_instants_are_in_order_and_the_same_for_the_same_seed(arrivals: Arrivals) -> None:
    instants = some(arrivals, 500)
    assert instants == sorted(instants)
    assert instants == some(arrivals, 500)


@pytest.mark.parametrize(
    ("arrivals", "cv"), [(Poisson(2.0), 1.0), (Gamma(2.0, 3.0), 3.0), (Gamma(2.0, 0.5), 0.5)]
)
def test_gaps_have_the_rate_and_the_variation_that_were_asked_for(arrivals: Arrivals, cv: float) -> None:
    found = gaps(some(arrivals, 15_000))
    assert 1 / fmean(found) == pytest.approx(2.0, rel=0.06)
    assert pstdev(found) / fmean(found) == pytest.approx(cv, rel=0.06)


def test_a_burst_brings_ten_times_the_queries_for_thirty_seconds() -> None:
    arrivals = Bursts(1.0, factor=10.0, seconds=30.0, every=600.0)
    instants = some(arrivals, 15_000)
    within = [instant for instant in instants if instant % 600 >= 570]
    calm = [instant for instant in instants if instant % 600 < 570]
    periods = instants[-1] / 600
    assert len(within) / periods / 30 == pytest.approx(10.0, rel=0.05)
    assert len(calm) / periods / 570 == pytest.approx(1.0, rel=0.05)
    assert min(within) >= 570


def test_a_day_swings_between_its_lowest_and_its_highest_rate() -> None:
    instants = some(Diurnal(1.0, swing=0.8, period=1000.0), 20_000)
    periods = instants[-1] / 1000
    lowest = sum(instant % 1000 < 50 or instant % 1000 >= 950 for instant in instants) / periods / 100
    highest = sum(450 <= instant % 1000 < 550 for instant in instants) / periods / 100
    assert (lowest, highest) == pytest.approx((0.2, 1.8), abs=0.08)
    assert len(instants) / instants[-1] == pytest.approx(1.0, rel=0.03)


def test_a_replay_gives_the_recording_and_begins_again() -> None:
    assert some(Replay((5.0, 6.0, 9.0)), 7) == [0.0, 1.0, 4.0, 6.0, 7.0, 10.0, 12.0]
    assert some(Replay((5.0, 6.0, 9.0), repeat=False), 7) == [0.0, 1.0, 4.0]


@pytest.mark.parametrize("arrivals", ALL[:-1], ids=lambda each: type(each).__name__)
def test_a_process_at_twice_the_rate_brings_twice_as_many(arrivals: Arrivals) -> None:
    slow, fast = some(arrivals, 8000), some(arrivals.at_rate(4.0), 8000)
    assert slow[-1] / fast[-1] == pytest.approx(2.0, rel=0.1)


def test_a_replay_at_another_rate_is_the_same_recording_pressed_together() -> None:
    pressed = Replay((0.0, 1.0, 4.0)).at_rate(1.0)
    assert pressed.rate == pytest.approx(1.0)
    assert pressed.instants == pytest.approx((0.0, 0.5, 2.0))


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_rate_is_a_number_above_zero(value: float) -> None:
    with pytest.raises(InvalidWorkload, match="rate must be a number above zero"):
        Poisson(value)
    with pytest.raises(InvalidWorkload, match="cv must be"):
        Gamma(1.0, value)


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(InvalidWorkload, match="cannot come every 30"):
        Bursts(1.0, seconds=30.0, every=30.0)
    with pytest.raises(InvalidWorkload, match="give 0 to 1"):
        Diurnal(1.0, swing=1.2)
    with pytest.raises(InvalidWorkload, match="at least two"):
        Replay((1.0,))
    with pytest.raises(InvalidWorkload, match="in order"):
        Replay((0.0, 2.0, 1.0, 3.0))
