"""Mixes come to what was published of the logs that they stand for."""

import pytest

from hexflow_simulator import chess
from hexflow_simulator.complaint import InvalidWorkload
from hexflow_simulator.mix import MIXES, mix_named
from hexflow_simulator.shape import calls_of
from support.workloads import a_workload, averages

PUBLISHED = {
    "financial": (15.9, 31_900, 1_600),
    "formula1": (17.4, 44_900, 1_720),
    "trace1": (19.2, 50_500, 1_980),
    "trace2": (20.7, 69_700, 2_390),
    "trace3": (20.9, 65_600, 2_500),
}
"""Calls, prompt tokens and output tokens of a query, means of the logs."""

STAGES = {
    "financial": {
        "revise": (0.73, 5970, 188),
        "unit-tests": (0.93, 1011, 92),
        "evaluate": (4.38, 890, 29),
        "candidate": (2, 10043, 586),
        "keywords": (0.85, 662, 40),
    },
    "formula1": {
        "revise": (1.52, 8031, 119),
        "unit-tests": (1, 1095, 95),
        "evaluate": (4.97, 1031, 32),
        "candidate": (2, 11912, 601),
        "keywords": (0.9, 674, 46),
    },
    "trace1": {
        "revise": (3.73, 5954, 82),
        "unit-tests": (0.96, 1110, 102),
        "evaluate": (4.89, 960, 29),
        "candidate": (2, 10000, 680),
        "keywords": (0.67, 669, 44),
    },
    "trace2": {
        "revise": (4.38, 7993, 122),
        "unit-tests": (1, 1286, 101),
        "evaluate": (5.38, 1268, 31),
        "candidate": (2, 11947, 741),
        "keywords": (0.92, 696, 61),
    },
    "trace3": {
        "revise": (5, 6897, 156),
        "unit-tests": (0.96, 1169, 104),
        "evaluate": (5.11, 1142, 30),
        "candidate": (2, 10768, 696),
        "keywords": (0.8, 679, 49),
    },
}
"""Calls a query, prompt and output tokens a call: the published aggregates by stage."""


@pytest.mark.parametrize("log", PUBLISHED)
def test_a_mix_has_the_calls_and_tokens_of_its_log(log: str) -> None:
    got = averages(a_workload(log).queries(1, count=1200))
    assert (got.calls, got.prompt_tokens, got.output_tokens) == pytest.approx(PUBLISHED[log], rel=0.025)
    for stage, known in STAGES[log].items():
        calls, prompt, output = known
        # few queries have many corrections: 1,200 of them know the means within 7 %
        most = 0.15 if stage == "revise" else 0.08
        assert got.stages[stage][0] == pytest.approx(calls, rel=most), stage
        assert got.stages[stage][1] == pytest.approx(prompt, rel=0.03), stage
        assert got.stages[stage][2] == pytest.approx(output, rel=most), stage


@pytest.mark.parametrize(("log", "none"), [("financial", 0.73), ("formula1", 0.62)])
def test_most_queries_of_a_natural_log_need_no_correction(log: str, none: float) -> None:
    queries = list(a_workload(log).queries(1, count=1000))
    corrected = sum(any(stage == "revise" for stage, _ in calls_of(query.stages)) for query in queries)
    assert 1 - corrected / len(queries) == pytest.approx(none, abs=0.03)


def test_corrections_of_the_drawn_logs_are_about_uniform() -> None:
    rounds = [0] * 11
    for query in a_workload("trace3").queries(1, count=2200):
        rounds[sum(stage == "revise" for stage, _ in calls_of(query.stages))] += 1
    assert all(150 < number < 250 for number in rounds)


@pytest.mark.parametrize("log", STAGES)
def test_corrections_come_to_the_mean_of_the_log(log: str) -> None:
    assert chess.rounds(log).mean == pytest.approx(STAGES[log]["revise"][0], rel=0.01)


def test_a_mix_of_logs_lies_between_them() -> None:
    natural = averages(a_workload("natural").queries(1, count=1000))
    assert 15.9 < natural.calls < 17.4
    stratified = averages(a_workload("stratified").queries(1, count=1000))
    assert 19 <= stratified.calls <= 21
    assert 50_000 < stratified.prompt_tokens < 70_000
    assert 2_000 < stratified.output_tokens < 2_500


def test_a_modern_query_links_a_large_schema_and_drafts_over_what_is_left_of_it() -> None:
    for query in a_workload("modern", databases=10).queries(1, count=50):
        link, candidate, revise, evaluate = query.stages
        assert link.calls[0].prompt_tokens > 10_000
        assert 4 <= len(candidate.calls) == len(evaluate.calls) <= 8
        assert len(revise.calls) <= len(candidate.calls)
        assert all(5_500 <= call.prompt_tokens <= 9_500 for call in candidate.calls)
        assert len({call.prefix for call in candidate.calls}) == 1


def test_a_short_query_has_four_drafts_over_a_small_schema() -> None:
    got = averages(a_workload("short").queries(1, count=500))
    assert got.stages["candidate"][0] == 4
    assert got.stages["candidate"][1] < 2_000


def test_an_unknown_mix_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(InvalidWorkload, match="there are: natural, stratified"):
        mix_named("nature")
    assert all(mix_named(name).name == name for name in MIXES)
