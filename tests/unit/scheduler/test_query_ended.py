"""What the ends of queries teach, and what is kept of queries that never report one."""

from typing import Any

import pytest

from hexflow_scheduler import Estimates, InvalidInput, Kernel, Policy
from hexflow_scheduler.fleet import MOST_IDLE_QUERIES
from support.calls import a_call, an_instance, usage


def a_kernel() -> Kernel:
    kernel = Kernel(Policy.named("RoundRobin"))
    kernel.instance(0.0, an_instance())
    return kernel


def run(kernel: Kernel, now: float, call_id: str, *, seconds: float = 1.0, **changes: Any) -> None:
    """Let a call arrive and finish."""
    kernel.arrive(now, [a_call(call_id, workflow="w", **changes)])
    kernel.finished(now + seconds, call_id, usage())


def a_query(kernel: Kernel, name: str, arrival: float) -> None:
    """Run a query whose draft ends after 1 s, whose check ends after 4 s, and that is answered after 10 s."""
    common: dict[str, Any] = {"query_id": name, "query_arrival": arrival}
    run(kernel, arrival, f"{name}/draft", stage="draft", **common)
    run(kernel, arrival + 3.0, f"{name}/check", stage="check", **common)
    kernel.query_ended(arrival + 10.0, name)


def test_the_rest_is_the_mean_time_from_the_end_of_a_stage_to_the_end_of_the_query() -> None:
    kernel = a_kernel()
    for number in range(3):
        a_query(kernel, f"q{number}", 100.0 * number)
    known = kernel.estimates
    assert known.rest_seconds(a_call(workflow="w", stage="draft")) == pytest.approx(9.0)
    assert known.rest_seconds(a_call(workflow="w", stage="check")) == pytest.approx(6.0)
    assert known.query_seconds("w") == pytest.approx(10.0)


def test_the_last_call_of_a_stage_ends_it() -> None:
    kernel = a_kernel()
    for number in range(3):
        start, name = 100.0 * number, f"q{number}"
        run(kernel, start, f"{name}/a", query_id=name, query_arrival=start, stage="draft")
        run(kernel, start + 1.0, f"{name}/b", query_id=name, query_arrival=start, stage="draft", seconds=4.0)
        kernel.query_ended(start + 8.0, name)
    assert kernel.estimates.rest_seconds(a_call(workflow="w", stage="draft")) == pytest.approx(3.0)


def test_a_later_round_of_a_chain_has_a_rest_of_its_own() -> None:
    kernel = a_kernel()
    for number in range(3):
        start, name = 100.0 * number, f"q{number}"
        for rank in range(2):
            run(
                kernel,
                start + rank,
                f"{name}/{rank}",
                query_id=name,
                query_arrival=start,
                stage="s",
                round=rank,
            )
        kernel.query_ended(start + 5.0, name)
    assert kernel.estimates.rest_seconds(a_call(workflow="w", stage="s")) == pytest.approx(4.0)
    assert kernel.estimates.rest_seconds(a_call(workflow="w", stage="s", round=1)) == pytest.approx(3.0)


def test_a_class_with_too_few_ends_falls_back_to_its_stage_and_that_to_all() -> None:
    kernel = a_kernel()
    for number in range(3):
        a_query(kernel, f"q{number}", 100.0 * number)
    known = kernel.estimates
    assert known.rest_seconds(a_call(workflow="other", stage="draft")) == pytest.approx(9.0)
    assert known.rest_seconds(a_call(workflow="other", stage="new")) == pytest.approx(7.5)
    assert known.query_seconds("other") == pytest.approx(10.0)


def test_nothing_is_expected_after_a_call_and_of_a_query_while_nothing_is_known() -> None:
    assert Estimates().rest_seconds(a_call()) == 0.0
    assert Estimates().query_seconds("w") is None


def test_old_ends_fade() -> None:
    known = Estimates()
    for seconds in [10.0] * 200 + [20.0] * 200:
        known.answered("w", seconds)
    assert known.query_seconds("w") == pytest.approx(20.0, rel=0.01)


def test_a_call_that_is_a_query_of_its_own_ends_it() -> None:
    kernel = a_kernel()
    for number in range(3):
        run(kernel, 10.0 * number, f"c{number}", query_arrival=10.0 * number, seconds=2.0)
    assert kernel.estimates.query_seconds("w") == pytest.approx(2.0)
    assert kernel.view().open_queries == 0


def test_a_query_that_was_not_answered_teaches_nothing_and_is_forgotten() -> None:
    kernel = a_kernel()
    for number in range(3):
        run(kernel, 0.0, f"c{number}", query_id=f"q{number}")
        kernel.query_ended(5.0, f"q{number}", answered=False)
    assert kernel.estimates.query_seconds("w") is None
    assert kernel.view().open_queries == 0


def test_an_end_that_is_told_twice_or_of_a_query_without_calls_changes_nothing() -> None:
    kernel = a_kernel()
    run(kernel, 0.0, "c", query_id="q")
    assert kernel.query_ended(2.0, "q") == kernel.query_ended(9.0, "q") == kernel.query_ended(9.0, "x") == ()
    assert kernel.estimates.to_data()["durations"] == [[["w"], 1, 2.0], [[], 1, 2.0]]


def test_a_query_that_ended_with_calls_alive_is_forgotten_with_the_last_of_them() -> None:
    kernel = a_kernel()
    kernel.arrive(0.0, [a_call("c", query_id="q")])
    kernel.query_ended(1.0, "q", answered=False)
    assert kernel.view().open_queries == 1
    kernel.cancel(2.0, "c")
    assert kernel.view().open_queries == 0


def test_queries_that_never_report_an_end_are_kept_up_to_a_number() -> None:
    kernel = a_kernel()
    for number in range(MOST_IDLE_QUERIES + 50):
        run(kernel, float(number), f"c{number}", query_id=f"q{number}")
    assert kernel.view().open_queries == MOST_IDLE_QUERIES


def test_what_the_ends_taught_is_kept_and_restored() -> None:
    kernel = a_kernel()
    for number in range(4):
        a_query(kernel, f"q{number}", 100.0 * number)
    restored = Estimates.from_data(kernel.estimates.to_data())
    assert restored.to_data() == kernel.estimates.to_data()
    assert restored.rest_seconds(a_call(workflow="w", stage="draft")) == pytest.approx(9.0)


def test_estimates_of_an_older_version_are_refused_with_a_remedy() -> None:
    with pytest.raises(InvalidInput, match="version 1 cannot be read; drop them"):
        Estimates.from_data({"version": 1, "lengths": [], "rounds": [], "scales": []})
