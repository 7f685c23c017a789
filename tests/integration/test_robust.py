"""What is wrong about lengths, speeds, rates and neighbours costs LeastHarm little; ``make bench-robust`` has the figures.

Runs this small tell signs and rough sizes only: one seed of one scenario, a hundred queries or so.
"""

import pytest

from hexflow_scheduler import Policy
from hexflow_simulator.robustness import (
    RECOVERED,
    Spot,
    burst,
    flood,
    learned_scale,
    lost_by_lengths,
    lost_by_speed,
)
from hexflow_simulator.scenario import scenario_named

OURS = Policy.named("LeastHarm")


def a_spot(*, load: float = 0.8, count: int = 120) -> Spot:
    return Spot(scenario=scenario_named("S2"), load=load, count=count)


def test_an_error_of_a_third_in_lengths_costs_little() -> None:
    assert 0.8 < lost_by_lengths(a_spot(), OURS, 11, error=0.3) < 1.15


def test_an_instance_that_is_believed_faster_than_it_is_costs_little() -> None:
    assert 0.8 < lost_by_speed(a_spot(), OURS, 11, place=0, factor=1.5) < 1.15


@pytest.mark.parametrize(("factor", "dies"), [(2.0, False), (1.0, True)])
def test_the_speed_of_an_instance_that_changed_is_known_after_20_calls(factor: float, dies: bool) -> None:
    scales = learned_scale(a_spot(count=200), OURS, 11, place=0, factor=factor, dies=dies)
    assert scales.error < 0.25, scales


def test_after_a_burst_queries_take_no_longer_to_be_as_quick_as_under_another_policy() -> None:
    spot = a_spot(load=0.4)
    ours, theirs = (burst(spot, policy, 11) for policy in (OURS, Policy.named("LeastOutstanding")))
    assert ours.usual < theirs.usual
    level = RECOVERED * theirs.usual
    assert ours.back(level) <= theirs.back(level)


def test_under_fairness_a_tenant_keeps_what_a_neighbour_in_flood_took() -> None:
    spot = a_spot(load=0.6, count=200)
    fair = flood(spot, Policy.named("LeastHarm", fairness=1.0), 11, factor=5.0)
    plain = flood(spot, OURS, 11, factor=5.0)
    assert fair.lost <= 1.0 < plain.lost, (fair, plain)
    assert fair.flooded_other < plain.flooded_other, (fair, plain)
