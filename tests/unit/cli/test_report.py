from math import inf

import pytest

from hexflow_cli.report import Outcome, percentile, sum_up
from hexflow_router.answer import Status
from support.answers import a_call_report, a_stage_report, an_answer


def an_outcome(
    number: int = 1, *, tenant: str = "support", arrival: float = 0.0, **answer: object
) -> Outcome:
    return Outcome(
        number=number,
        tenant=tenant,
        question="?",
        arrival_seconds=arrival,
        answer=an_answer(id=f"query-{number}", **answer),
        right=True,
    )


@pytest.mark.parametrize(("share", "value"), [(0.5, 15), (0.95, 29), (1.0, 30), (0.0, 1)])
def test_a_percentile_is_a_latency_that_some_question_had(share: float, value: float) -> None:
    assert percentile(range(30, 0, -1), share) == value


def test_no_values_have_a_percentile_of_nought() -> None:
    assert percentile([], 0.95) == 0.0


def test_attainment_counts_answers_in_time_for_each_tenant() -> None:
    report = sum_up(
        "HexGenFlow",
        [
            an_outcome(1, tenant="gold", seconds=10.0),
            an_outcome(2, tenant="gold", seconds=70.0, deadline_met=False),
            an_outcome(3, tenant="plain", seconds=30.0),
        ],
    )
    assert report.overall.met == 2
    assert report.by_tenant["gold"].attainment == 0.5
    assert report.by_tenant["plain"].attainment == 1.0
    assert list(report.by_tenant) == ["gold", "plain"]


def test_a_question_without_an_answer_took_for_ever_and_is_wrong() -> None:
    lost = Outcome(number=1, tenant="t", question="?", arrival_seconds=0.0, answer=None, failure="gone")
    failed = an_outcome(2, status=Status.FAILED, deadline_met=False)
    report = sum_up("HexGenFlow", [lost, failed])
    assert lost.seconds == failed.seconds == inf
    assert report.overall.met == 0
    assert report.wrong == (lost,)


def test_the_makespan_runs_from_the_first_question_to_the_last_answer() -> None:
    report = sum_up("HexGenFlow", [an_outcome(1, seconds=50.0), an_outcome(2, arrival=20.0, seconds=40.0)])
    assert report.makespan_seconds == 60.0


def test_a_stage_is_summed_up_on_its_longest_chain_of_calls() -> None:
    chain = [
        a_call_report(id="a", sibling=0, round=0, queued_seconds=1.0, seconds=2.0),
        a_call_report(id="b", sibling=0, round=1, queued_seconds=0.0, seconds=3.0),
        a_call_report(id="c", sibling=1, round=0, queued_seconds=0.5, seconds=4.0),
    ]
    outcome = Outcome(
        number=1,
        tenant="t",
        question="?",
        arrival_seconds=0.0,
        answer=an_answer(a_stage_report(*chain, seconds=7.0, statement_seconds=0.5)),
        right=True,
    )
    (stage,) = sum_up("HexGenFlow", [outcome]).stages
    assert (stage.calls, stage.mean_waited_seconds, stage.mean_served_seconds) == (3, 1.0, 5.0)
    assert (stage.mean_seconds, stage.mean_statement_seconds) == (7.0, 0.5)


def test_an_instance_is_summed_up_over_all_questions() -> None:
    calls = (a_call_report(id="a"), a_call_report(id="b", instance="l40s-0", gpu_type="L40S"))
    outcomes = [
        Outcome(
            number=n,
            tenant="t",
            question="?",
            arrival_seconds=0.0,
            answer=an_answer(a_stage_report(*calls), id=str(n)),
            right=True,
        )
        for n in (1, 2)
    ]
    first, second = sum_up("HexGenFlow", outcomes).instances
    assert (first.instance, first.gpu_type, first.calls, first.questions) == ("a100-0", "A100-80GB", 2, 2)
    assert (first.prompt_tokens, first.cached_tokens, first.served_seconds) == (4000, 3000, 8.0)
    assert second.instance == "l40s-0"


def test_a_call_that_was_never_sent_only_waited() -> None:
    call = a_call_report(instance=None, queued_seconds=None, seconds=5.0)
    outcome = Outcome(
        number=1,
        tenant="t",
        question="?",
        arrival_seconds=0.0,
        answer=an_answer(a_stage_report(call)),
        right=True,
    )
    report = sum_up("HexGenFlow", [outcome])
    assert report.stages[0].mean_waited_seconds == 5.0
    assert report.instances == ()
