"""The sustainable rate is found by bisection, with the same queries at every rate."""

import pytest

from hexflow_scheduler import Policy, Profile
from hexflow_simulator import QueryResult, simulate
from hexflow_simulator.capacity import sustainable_rate
from hexflow_simulator.measure import required_scale, warmed_up
from support.simulated import a_call, a_query, a_stage, an_instance


@pytest.mark.parametrize("limit", [0.03, 0.4, 0.5, 1.0, 7.3])
def test_the_highest_rate_that_holds_is_found_wherever_the_search_begins(limit: float) -> None:
    asked: list[float] = []

    def holds(rate: float) -> bool:
        asked.append(rate)
        return rate <= limit

    found = sustainable_rate(holds, guess=0.5)
    assert found is not None
    assert limit / 1.02 <= found <= limit
    assert len(asked) < 20


def test_a_rate_that_never_or_always_holds_ends_the_search() -> None:
    assert sustainable_rate(lambda rate: False, guess=1.0) is None
    assert sustainable_rate(lambda rate: True, guess=1.0) == 64.0
    with pytest.raises(ValueError, match="positive"):
        sustainable_rate(lambda rate: True, guess=0.0)


def test_a_server_that_takes_one_call_a_second_sustains_that() -> None:
    one_at_a_time = Profile(t0=0.01, t1=0.0, t2=0.0, c1=0.0001, c2=0.0, kv_tokens=100_000, slots=1)

    def run(rate: float, seed: int) -> tuple[QueryResult, ...]:
        queries = [
            a_query(
                f"q{number}",
                a_stage("a", a_call(100, 99 + seed)),
                arrival=number / rate,
                base_seconds=1.0,
            )
            for number in range(60)
        ]
        return simulate(queries, [an_instance(profile=one_at_a_time)], Policy.named("RoundRobin")).queries

    def sustained(seed: int) -> float | None:
        return sustainable_rate(lambda rate: required_scale(warmed_up(run(rate, seed))) <= 2.5, guess=0.3)

    assert sustained(1) == pytest.approx(1.0, rel=0.03)
    assert sustained(101) == pytest.approx(0.5, rel=0.03)
