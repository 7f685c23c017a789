"""Evaluation: agreement, unit tests, ties, lateness."""

import asyncio
from collections.abc import Sequence

import pytest

from hexflow_sql import (
    AllCandidatesFailed,
    Candidate,
    CandidateChosen,
    Completion,
    CompletionError,
    CompletionRequest,
    Draft,
    Event,
    NoStatement,
    ResultsCompared,
    StageTimedOut,
    StatementFailed,
    UnitTestJudged,
    settle,
)
from support.language_model import ScriptedModel, text_of
from support.sql import a_candidate, a_draft, a_result, a_schema
from support.stages import Clock, ScriptedDatabase, run_stage, skipped

TESTS = '{"tests": ["counts each customer once", "leaves out returns"]}'
SCHEMA = a_schema()
DATABASE = ScriptedDatabase(SCHEMA, lambda _: a_result((1,)))


def candidates(*values: int | None) -> tuple[Candidate, ...]:
    """Build candidates with one cell each; None has failed."""
    return tuple(
        a_candidate(
            index,
            f"SELECT {value} FROM t",
            result=None if value is None else a_result((value,)),
            error="no such column: x" if value is None else None,
        )
        for index, value in enumerate(values)
    )


async def evaluated(
    entries: Sequence[Candidate], model: ScriptedModel | None = None, **more: object
) -> Draft:
    return await run_stage(
        "Evaluation",
        a_draft(schema=SCHEMA, candidates=tuple(entries)),
        model=model or ScriptedModel({}),
        database=DATABASE,
        **more,  # type: ignore[arg-type]
    )


async def test_agreement_needs_no_model() -> None:
    model = ScriptedModel({})
    events: list[Event] = []
    draft = await evaluated(candidates(7, 7, 7, 7), model, events=events)
    assert draft.chosen == 0
    assert settle(draft).votes == 4
    assert model.requests == []
    assert events == [
        ResultsCompared(stage="evaluation", clusters=((0, 1, 2, 3),)),
        CandidateChosen(stage="evaluation", candidate=0, votes=4, passed=0, why="all results agree"),
    ]


async def test_failed_candidates_do_not_disturb_agreement() -> None:
    model = ScriptedModel({})
    draft = await evaluated(candidates(None, 7, None, 7), model)
    assert draft.chosen == 1
    assert [candidate.votes for candidate in draft.candidates] == [0, 2, 0, 2]


async def test_unit_tests_choose_between_results() -> None:
    model = ScriptedModel({"unit-tests": TESTS, "choice": '{"passes": [4]}'})
    draft = await evaluated(candidates(7, 7, 7, 8), model)
    assert draft.chosen == 3
    assert draft.tests == ("counts each customer once", "leaves out returns")
    assert settle(draft).passed == 2


async def test_each_test_is_one_request_and_all_go_out_together() -> None:
    model = ScriptedModel({"unit-tests": TESTS, "choice": '{"passes": [1]}'})
    events: list[Event] = []
    await evaluated(candidates(7, 8), model, events=events)
    asked = model.asked("choice")
    assert [(request.seed, request.sibling) for request in asked] == [(0, 0), (1, 1)]
    assert "Test: leaves out returns" in text_of(asked[1])
    assert [event.passed for event in events if isinstance(event, UnitTestJudged)] == [(0,), (0,)]


async def test_one_candidate_stands_for_each_result() -> None:
    model = ScriptedModel({"unit-tests": TESTS, "choice": '{"passes": [3]}'})
    draft = await evaluated(candidates(7, 7, 8, 7), model)
    prompt = text_of(model.asked("unit-tests")[0])
    assert "Candidate 1:" in prompt
    assert "Candidate 3:" in prompt
    assert "Candidate 2:" not in prompt
    assert draft.chosen == 2


async def test_a_tie_goes_to_the_larger_group() -> None:
    for answer in ('{"passes": [1, 2]}', '{"passes": []}'):
        model = ScriptedModel({"unit-tests": TESTS, "choice": answer})
        assert (await evaluated(candidates(7, 8, 8, 9), model)).chosen == 1


async def test_a_tie_of_equal_groups_goes_to_the_earlier() -> None:
    model = ScriptedModel({"unit-tests": TESTS, "choice": '{"passes": [1, 3]}'})
    assert (await evaluated(candidates(7, 7, 8, 8), model)).chosen == 0


async def test_a_late_query_takes_the_largest_group_untested() -> None:
    model = ScriptedModel({})
    draft = await evaluated(candidates(7, 8, 8), model, clock=Clock(left=0))
    assert draft.chosen == 1
    assert skipped(draft) == ["unit tests: it is late"]
    assert model.requests == []


async def test_a_stage_that_fails_when_late_says_so() -> None:
    with pytest.raises(StageTimedOut):
        await evaluated(candidates(7, 8), clock=Clock(left=0), on_timeout="Fail")


async def test_a_workflow_may_ask_for_no_tests() -> None:
    draft = await evaluated(candidates(7, 8, 8), fan_out=0)
    assert draft.chosen == 1
    assert skipped(draft) == ["unit tests: the workflow asks for none"]


async def test_no_more_tests_than_the_workflow_asks_for() -> None:
    many = '{"tests": ["a", "b", "b", "", 7, "c", "d", "e", "f"]}'
    model = ScriptedModel({"unit-tests": many, "choice": '{"passes": [1]}'})
    draft = await evaluated(candidates(7, 8), model, fan_out=3)
    assert draft.tests == ("a", "b", "c")
    assert len(model.asked("choice")) == 3


@pytest.mark.parametrize("text", ["I cannot think of any.", '{"tests": []}', '{"tests": "one"}', ""])
async def test_without_tests_the_largest_group_wins(text: str) -> None:
    draft = await evaluated(candidates(7, 8, 8), ScriptedModel({"unit-tests": text}))
    assert draft.chosen == 1
    assert skipped(draft) == ["unit tests: no unit test was written"]


async def test_an_error_of_the_model_costs_the_tests_and_no_more() -> None:
    model = ScriptedModel({"unit-tests": lambda _: CompletionError("EngineFailed", "it died")})
    assert (await evaluated(candidates(7, 8, 8), model)).chosen == 1


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ('{"passes": ["2"]}', 1),
        ('{"passes": [2, 99, -1, true]}', 1),
        ("[2]", 1),
        ('Only the second: ```json\n{"passes": [2]}\n```', 1),
        ("The second one.", 0),
        ('{"passes": 2}', 0),
        (f'{{"passes": ["{"9" * 5000}", 2]}}', 1),  # more digits than Python turns into a number
        ('{"passes": null}', 0),
    ],
)
async def test_judgements_of_every_shape_are_read_or_left_out(text: str, chosen: int) -> None:
    model = ScriptedModel({"unit-tests": TESTS, "choice": text})
    assert (await evaluated(candidates(7, 8), model)).chosen == chosen


async def test_judgements_that_do_not_come_are_said() -> None:
    def answer(request: CompletionRequest) -> str | CompletionError:
        return CompletionError("EngineFailed", "it died") if request.seed else '{"passes": [2]}'

    draft = await evaluated(candidates(7, 8), ScriptedModel({"unit-tests": TESTS, "choice": answer}))
    assert draft.chosen == 1
    assert skipped(draft) == ["1 of 2 unit tests: no judgement came"]


async def test_judgements_that_cannot_change_the_choice_are_withdrawn() -> None:
    async def answer(request: CompletionRequest) -> str | Completion:
        if (request.seed or 0) < 3:
            return '{"passes": [2]}'
        await asyncio.Event().wait()
        return ""

    model = ScriptedModel({"unit-tests": '{"tests": ["a", "b", "c", "d"]}', "choice": answer})
    draft = await evaluated(candidates(7, 8), model)
    assert draft.chosen == 1
    assert len(model.withdrawn) == 1
    assert draft.skipped == ()


async def test_once_it_is_late_the_judgements_at_hand_decide() -> None:
    clock = Clock(left=10)

    async def answer(request: CompletionRequest) -> str | Completion:
        if request.seed == 0:
            return '{"passes": [2]}'
        await asyncio.Event().wait()
        return ""

    model = ScriptedModel({"unit-tests": TESTS, "choice": answer})
    task = asyncio.create_task(evaluated(candidates(7, 8), model, clock=clock))
    await asyncio.sleep(0.02)
    clock.pass_by(11)
    assert (await task).chosen == 1
    assert len(model.withdrawn) == 1


async def test_what_no_stage_has_run_is_run_here() -> None:
    database = ScriptedDatabase(SCHEMA, lambda sql: a_result((int("8" in sql),)))
    draft = await run_stage(
        "Evaluation",
        a_draft(
            schema=SCHEMA,
            candidates=tuple(a_candidate(i, f"SELECT {n} FROM t") for i, n in enumerate((7, 7, 8))),
        ),
        model=ScriptedModel({"unit-tests": TESTS, "choice": '{"passes": [1]}'}),
        database=database,
    )
    assert database.ran == ["SELECT 7 FROM t", "SELECT 8 FROM t"]
    assert draft.chosen == 0


async def test_nothing_that_runs_is_an_outcome_of_its_own() -> None:
    with pytest.raises(AllCandidatesFailed, match="no such column: x"):
        await evaluated(candidates(None, None))
    with pytest.raises(NoStatement, match="the model said nothing"):
        await evaluated([a_candidate(0, None)])
    failing = ScriptedDatabase(SCHEMA, lambda _: StatementFailed("Failed", "not today"))
    with pytest.raises(AllCandidatesFailed, match="not today"):
        await run_stage(
            "Evaluation",
            a_draft(schema=SCHEMA, candidates=(a_candidate(0),)),
            model=ScriptedModel({}),
            database=failing,
        )


async def test_rows_can_be_kept_out_of_prompts() -> None:
    model = ScriptedModel({"unit-tests": TESTS, "choice": '{"passes": [1]}'})
    await evaluated(candidates(4711, 4712), model, sample_values=False)
    prompt = text_of(model.asked("unit-tests")[0])
    assert "Its result has 1 rows of 1 columns." in prompt
    assert "4711\n" not in prompt.replace("SELECT 4711", "")


async def test_only_the_first_rows_and_cells_of_a_result_are_shown() -> None:
    wide = a_result(*[tuple(range(1000, 1100)) for _ in range(500)], truncated=True)
    entries = [a_candidate(0, result=wide), a_candidate(1, result=a_result(("x" * 10_000,)))]
    model = ScriptedModel({"unit-tests": TESTS, "choice": '{"passes": [1]}'})
    await evaluated(entries, model)
    prompt = text_of(model.asked("unit-tests")[0])
    assert "Its result has 500 or more rows of 100 columns; the first:" in prompt
    assert len(prompt) < 4_000
