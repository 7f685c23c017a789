from hexflow_scheduler.urgency import latest_start, time_allowed, urgency


def test_urgency_is_compute_time_less_what_is_left_of_the_budget() -> None:
    # t_comp 8 s, t_slo 20 s, released at 100, now 115: 8 - (20 - 15) = 3
    latest = latest_start(released=100.0, allowed=20.0, compute_seconds=8.0)
    assert latest == 112.0
    assert urgency(115.0, latest) == 3.0


def test_the_budget_goes_before_the_deadline() -> None:
    assert time_allowed(released=10.0, deadline=70.0, budget_seconds=15.0, typical_seconds=4.0) == 15.0


def test_without_a_budget_all_the_time_to_the_deadline_is_allowed() -> None:
    assert time_allowed(released=10.0, deadline=70.0, budget_seconds=None, typical_seconds=4.0) == 60.0


def test_without_a_deadline_five_times_the_typical_time_is_allowed() -> None:
    assert time_allowed(released=10.0, deadline=None, budget_seconds=None, typical_seconds=4.0) == 20.0
