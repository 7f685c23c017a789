"""A kernel that knows true lengths expects them; one that is misled errs by as much as it is told to."""

from statistics import median

import pytest

from hexflow_scheduler import Call, Estimates, Policy, Usage, decode
from hexflow_simulator import Knowledge, simulate
from hexflow_simulator.knowledge import informed
from support.calls import a_call as call_of
from support.simulated import a_call, a_query, a_stage, instances, random_queries


def expected(knowledge: Knowledge, count: int = 1, true: int = 700, **fields: int) -> list[float]:
    estimates = informed(None, knowledge)
    made = []
    for number in range(count):
        call: Call = call_of(f"c{number}", max_tokens=4096, **fields)
        estimates.tell(call.call_id, true)
        made.append(estimates.output_tokens(call))
    return made


def test_true_lengths_are_expected_where_they_are_known() -> None:
    assert expected(Knowledge(true_lengths=True)) == [700.0]
    assert expected(Knowledge()) == [400.0]


def test_an_error_is_lognormal_around_what_would_be_expected_else() -> None:
    ratios = [tokens / 700 for tokens in expected(Knowledge(true_lengths=True, error=0.3), 2000)]
    assert median(ratios) == pytest.approx(1.0, abs=0.02)
    above = sum(ratio > 1.35 for ratio in ratios) / len(ratios)
    assert above == pytest.approx(0.159, abs=0.03)


def test_a_call_has_the_same_error_whenever_it_arrives_and_another_with_another_seed() -> None:
    knowledge = Knowledge(error=0.3, seed=1)
    assert expected(knowledge, 3)[2] == expected(knowledge, 5)[2]
    assert expected(knowledge) != expected(Knowledge(error=0.3, seed=2))


def test_what_was_learned_before_is_kept_and_the_original_is_left_alone() -> None:
    learned = Estimates()
    for number in range(5):
        learned.finished(call_of(f"c{number}"), Usage(prompt_tokens=10, output_tokens=50))
    made = informed(learned, Knowledge())
    call = call_of("x")
    assert made.output_tokens(call) == learned.output_tokens(call) < 60
    made.finished(call, Usage(prompt_tokens=10, output_tokens=5000))
    assert made.to_data() != learned.to_data()


def test_a_simulated_kernel_predicts_by_what_it_knows() -> None:
    query = a_query("q", a_stage("a", a_call(100, 77)))
    lines: list[str] = []
    plain = simulate([query], instances(1), Policy.named("RoundRobin"), sink=lines.append)
    place = decode(lines[2]).decisions[0]
    assert getattr(place, "output_tokens") == 400.0  # noqa: B009 - a Place
    known = simulate(
        [query], instances(1), Policy.named("RoundRobin"), knowledge=Knowledge(true_lengths=True)
    )
    assert known.queries == plain.queries
    with pytest.raises(ValueError, match="could not be replayed"):
        simulate([query], instances(1), Policy.named("RoundRobin"), knowledge=Knowledge(), sink=lines.append)


def test_knowledge_changes_where_calls_go() -> None:
    queries = random_queries(25, rate=3.0)
    policy = Policy.named("HexGenFlow")
    runs = [
        simulate(queries, instances(3), policy, knowledge=knowledge).queries
        for knowledge in (None, Knowledge(true_lengths=True), Knowledge(error=0.5))
    ]
    assert runs[0] != runs[1] != runs[2] != runs[0]
