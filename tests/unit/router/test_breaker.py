from hexflow_router.breaker import Breaker, BreakerRule, BreakerState

RULE = BreakerRule(failures=3, open_seconds=2.0, longest_seconds=5.0)


def failing(breaker: Breaker, *instants: float) -> Breaker:
    for now in instants:
        breaker.failed(now)
    return breaker


def test_it_opens_after_so_many_failures_in_a_row() -> None:
    assert failing(Breaker(RULE), 0, 1).look(1) is BreakerState.CLOSED
    assert failing(Breaker(RULE), 0, 1, 2).look(2) is BreakerState.OPEN


def test_an_answer_in_between_starts_the_count_anew() -> None:
    breaker = failing(Breaker(RULE), 0, 1)
    breaker.succeeded()
    assert failing(breaker, 2, 3).look(3) is BreakerState.CLOSED


def test_after_its_time_it_lets_a_trial_through_whose_success_closes_it() -> None:
    breaker = failing(Breaker(RULE), 0, 0, 0)
    assert breaker.look(1.9) is BreakerState.OPEN
    assert breaker.look(2.0) is BreakerState.TRIAL
    breaker.succeeded()
    assert breaker.look(2.0) is BreakerState.CLOSED


def test_each_trial_that_fails_doubles_the_time_up_to_a_bound() -> None:
    breaker = failing(Breaker(RULE), 0, 0, 0)
    assert breaker.look(2) is BreakerState.TRIAL
    breaker.failed(2)
    assert breaker.look(5.9) is BreakerState.OPEN
    assert breaker.look(6) is BreakerState.TRIAL
    breaker.failed(6)
    assert breaker.look(10.9) is BreakerState.OPEN
    assert breaker.look(11) is BreakerState.TRIAL


def test_failures_of_calls_that_were_under_way_do_not_prolong_an_open_breaker() -> None:
    breaker = failing(Breaker(RULE), 0, 0, 0, 1.5, 1.9)
    assert breaker.look(2.0) is BreakerState.TRIAL
