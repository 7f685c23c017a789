"""A contest gives every policy the same, keeps little, and says where time went."""

from dataclasses import replace

import pytest

from hexflow_scheduler import Estimates, Profile, UnknownPolicy
from hexflow_simulator.contest import Contest, Entry, RunResult, bound, prepare, run
from hexflow_simulator.contests import Stopped, run_all
from hexflow_simulator.measure import figures
from hexflow_simulator.simulation import simulate
from support.contests import OURS, PLAIN, a_contest, all_results


@pytest.fixture(scope="module")
def contest() -> Contest:
    return a_contest(seeds=(1, 2), paces=(0.5,))


@pytest.fixture(scope="module")
def results(contest: Contest) -> list[RunResult]:
    return all_results(contest)


def test_runs_go_seed_by_seed_through_all_policies_and_other_paces_come_last(contest: Contest) -> None:
    assert [(each.entry.policy, each.seed, each.pace) for each in contest.runs] == [
        ("LeastHarm", 1, 1.0),
        ("RoundRobin", 1, 1.0),
        ("LeastHarm", 2, 1.0),
        ("RoundRobin", 2, 1.0),
        ("LeastHarm", 1, 0.5),
        ("RoundRobin", 1, 0.5),
    ]


def test_the_figures_are_those_of_the_simulation_itself(contest: Contest, results: list[RunResult]) -> None:
    course = prepare(contest)
    plain = simulate(
        contest.traffic.queries(1), contest.fleet, OURS.made(), estimates=Estimates.from_data(course.learned)
    )
    assert results[0].figures == figures(plain.queries)
    assert (results[0].queries, results[0].calls) == (40, plain.call_count)


def test_the_time_of_all_calls_is_in_the_sums_by_instance_and_by_stage(
    contest: Contest, results: list[RunResult]
) -> None:
    course = prepare(contest)
    plain = simulate(
        contest.traffic.queries(1),
        contest.fleet,
        OURS.made(),
        estimates=Estimates.from_data(course.learned),
        record_calls=True,
    )
    whole = sum(call.finished - call.released for call in plain.calls)
    for parts in (results[0].by_instance, results[0].by_stage):
        assert sum(part.calls for part in parts.values()) == plain.call_count
        assert sum(part.waiting + part.prefill + part.decode for part in parts.values()) == pytest.approx(
            whole
        )
        assert sum(part.output_tokens for part in parts.values()) == plain.output_tokens
        assert sum(part.cached_tokens for part in parts.values()) == plain.cached_tokens


def test_one_demanding_query_is_shown_and_it_is_the_same_under_every_policy(results: list[RunResult]) -> None:
    shown = [{call.query_id for call in each.shown} for each in results]
    assert shown[0] == shown[1]
    assert len(shown[0]) == 1
    assert not any(shown[2:])


def test_nothing_beats_the_bound(contest: Contest, results: list[RunResult]) -> None:
    bounds = {seed: bound(contest, seed).figures for seed in contest.seeds}
    for each in results[:4]:
        least = bounds[each.run.seed]
        assert (least.p50, least.p95, least.req95) < (each.figures.p50, each.figures.p95, each.figures.req95)


def test_reckoning_the_bound_can_be_ended(contest: Contest) -> None:
    def stop() -> None:
        raise Stopped

    with pytest.raises(Stopped):
        bound(contest, 1, note=stop)


def test_a_query_without_an_answer_is_counted_with_its_reason(contest: Contest) -> None:
    tiny = tuple(replace(each, instance=replace(each.instance, max_context=500)) for each in contest.fleet)
    small = replace(contest, fleet=tiny)
    result = run(small, prepare(contest), small.runs[0])
    assert sum(result.reasons.values()) > 0
    assert result.figures.answered < 1


def test_a_policy_that_nobody_knows_is_refused_when_it_is_made() -> None:
    with pytest.raises(UnknownPolicy, match="LeastHarm"):
        Entry(policy="LeastHram").made()


def test_an_entry_is_called_by_its_policy_and_its_parameters() -> None:
    assert OURS.label == "LeastHarm"
    assert (
        Entry(policy="HexGenFlow", parameters=(("alpha", 0.3), ("beta", 1.0))).label
        == "HexGenFlow(alpha=0.3, beta=1)"
    )


def test_results_come_as_they_end_and_say_how_far_it_is(contest: Contest, results: list[RunResult]) -> None:
    told: list[int] = []
    found = list(run_all(contest, prepare(contest), contest.runs[:2], progress=told.append))
    assert found == results[:2]
    assert told == sorted(told)
    assert told[-1] == 80


def test_a_stop_is_obeyed_within_a_run(contest: Contest) -> None:
    asked: list[int] = []

    def stop() -> bool:
        asked.append(1)
        return len(asked) == 2

    with pytest.raises(Stopped):
        list(run_all(contest, prepare(contest), contest.runs, stop=stop))
    assert len(asked) == 2


def test_the_plain_policy_is_no_better_where_instances_differ() -> None:
    base = a_contest(60)
    slow = replace(
        base.fleet[1], slowdown=1.0, instance=replace(base.fleet[1].instance, profile=_slower(base))
    )
    unequal = a_contest(60, fleet=(base.fleet[0], slow))
    ours, plain = all_results(unequal)
    assert (ours.run.entry, plain.run.entry) == (OURS, PLAIN)
    assert ours.figures.p95 < plain.figures.p95


def _slower(contest: Contest) -> Profile:
    profile = contest.fleet[1].instance.profile
    return replace(profile, t0=profile.t0 * 4, c1=profile.c1 * 4)
