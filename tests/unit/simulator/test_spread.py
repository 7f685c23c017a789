"""Spreads meet the aggregates they are made from."""

from statistics import pstdev

import pytest

from hexflow_simulator.complaint import InvalidWorkload
from hexflow_simulator.spread import (
    SIZE,
    Spread,
    binomial,
    constant,
    declining,
    evenly,
    lognormal,
    pooled,
    through,
    tilted,
)


def shares(spread: Spread) -> dict[int, float]:
    return {value: spread.values.count(value) / SIZE for value in sorted(set(spread.values))}


@pytest.mark.parametrize(
    "known",
    [
        {"least": 11, "median": 82, "mean": 187.6, "p95": 1010, "most": 1078},
        {"least": 10, "median": 123.5, "mean": 118.6, "p95": 184.9, "most": 312},
        {"least": 413, "median": 681.5, "mean": 694.6, "p95": 989.6, "most": 1012},
        {"least": 22, "median": 22, "mean": 28.6, "p95": 73.9, "most": 357},
    ],
)
def test_a_spread_goes_through_its_aggregates(known: dict[str, float]) -> None:
    spread = through(**known)
    assert spread.mean == pytest.approx(known["mean"], rel=0.01)
    assert spread.quantile(0.5) == pytest.approx(known["median"], rel=0.01, abs=1)
    assert spread.quantile(0.95) == pytest.approx(known["p95"], rel=0.02)
    assert known["least"] <= spread.least
    assert spread.most <= known["most"]
    assert list(spread.values) == sorted(spread.values)


def test_a_mean_that_no_spread_can_have_is_refused() -> None:
    with pytest.raises(InvalidWorkload, match="has a mean of 500"):
        through(least=1, median=10, mean=500, p95=20, most=30)
    with pytest.raises(InvalidWorkload, match="must rise"):
        through(least=1, median=10, mean=5, p95=9, most=30)
    with pytest.raises(InvalidWorkload, match="does not fit"):
        tilted(least=1, most=3, mean=5)
    with pytest.raises(InvalidWorkload, match="does not lie between"):
        binomial(least=1, most=3, mean=4)
    with pytest.raises(InvalidWorkload, match="falls from 1 on"):
        declining(least=0, most=3, mean=1)
    with pytest.raises(InvalidWorkload, match="1024 values"):
        Spread((1, 2, 3))


def test_a_tilt_makes_all_alike_in_the_middle_and_geometric_below_it() -> None:
    assert all(
        share == pytest.approx(1 / 11, abs=0.001)
        for share in shares(tilted(least=0, most=10, mean=5)).values()
    )
    few = shares(tilted(least=1, most=10, mean=2))
    assert sum(value * share for value, share in few.items()) == pytest.approx(2, rel=0.01)
    assert few[2] / few[1] == pytest.approx(few[3] / few[2], rel=0.03)


def test_a_power_leaves_more_long_ones_than_a_geometric_number() -> None:
    power, geometric = declining(least=1, most=10, mean=2.76), tilted(least=1, most=10, mean=2.76)
    assert power.mean == pytest.approx(geometric.mean, rel=0.02)
    assert shares(power)[10] > 2 * shares(geometric)[10]
    assert shares(power)[1] > shares(geometric)[1]


def test_a_binomial_number_lies_about_its_mean() -> None:
    spread = binomial(least=2, most=8, mean=4.74)
    assert (spread.least, spread.most) == (2, 8)
    assert spread.mean == pytest.approx(4.74, rel=0.01)
    assert pstdev(spread.values) == pytest.approx(1.22, abs=0.05)


def test_lengths_can_be_log_normal_within_limits() -> None:
    spread = lognormal(mean=400, sigma=0.4, least=60, most=1500)
    assert spread.mean == pytest.approx(400, rel=0.01)
    assert 60 <= spread.least < spread.quantile(0.5) < 400 < spread.most <= 1500


def test_numbers_can_be_even_constant_or_mostly_none() -> None:
    assert set(shares(evenly(4, 8)).values()) == {205 / 1024, 204 / 1024} | set()
    assert set(constant(7).values) == {7}
    rare = constant(3).or_none(0.75)
    assert shares(rare) == {0: 0.75, 3: 0.25}
    assert evenly(0, 4).plus(-2).least == 0


def test_a_pool_draws_from_each_by_its_weight() -> None:
    pool = pooled([(3.0, constant(1)), (1.0, constant(9))])
    assert shares(pool) == {1: 0.75, 9: 0.25}
