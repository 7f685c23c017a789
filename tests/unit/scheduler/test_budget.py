import pytest

from hexflow_scheduler import stage_budget


def test_the_time_left_is_split_in_proportion_to_cost() -> None:
    # 40 s left, a stage of 6 s before stages of 10 s and 4 s: 40 * 6 / 20
    assert stage_budget(40.0, 6.0, 14.0) == 12.0


def test_the_last_stage_gets_all_that_is_left() -> None:
    assert stage_budget(7.5, 3.0, 0.0) == 7.5


def test_a_late_query_has_a_negative_budget() -> None:
    assert stage_budget(-10.0, 5.0, 5.0) == -5.0


def test_a_stage_of_unknown_cost_gets_everything_when_nothing_is_known() -> None:
    assert stage_budget(30.0, 0.0, 0.0) == 30.0


def test_a_stage_that_costs_nothing_gets_nothing_of_what_others_need() -> None:
    assert stage_budget(30.0, 0.0, 4.0) == 0.0


def test_splitting_again_at_each_release_spends_just_the_whole_when_every_stage_takes_its_budget() -> None:
    costs, left = [2.0, 6.0, 3.0, 1.0], 60.0
    for place, cost in enumerate(costs):
        left -= stage_budget(left, cost, sum(costs[place + 1 :]))
    assert left == pytest.approx(0.0)
