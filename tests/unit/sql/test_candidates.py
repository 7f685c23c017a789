"""Candidate generation."""

import asyncio
from datetime import UTC, datetime

import pytest

from hexflow_sql import (
    CandidateExtracted,
    Completion,
    CompletionError,
    CompletionRequest,
    Database,
    Event,
    NoStatement,
    Question,
    StageTimedOut,
    Unanswerable,
)
from support.language_model import ScriptedModel, a_completion, fenced, text_of
from support.sql import a_draft, a_schema, a_table
from support.stages import Clock, run_stage, skipped

FOUR = [fenced(f"SELECT {i} FROM t") for i in range(4)]


async def test_four_candidates_are_asked_for_at_once(shop: Database) -> None:
    model = ScriptedModel({"candidate": FOUR})
    draft = await run_stage("CandidateGeneration", a_draft(), model=model, database=shop)
    assert [candidate.sql for candidate in draft.candidates] == [f"SELECT {i} FROM t" for i in range(4)]
    assert [request.sibling for request in model.requests] == [0, 1, 2, 3]
    assert [request.seed for request in model.requests] == [0, 1, 2, 3]
    assert [request.temperature for request in model.requests] == [0.0, 0.7, 0.7, 0.7]


async def test_all_prompts_are_the_same_so_that_engines_share_them(shop: Database) -> None:
    model = ScriptedModel({"candidate": FOUR})
    await run_stage("CandidateGeneration", a_draft(), model=model, database=shop)
    assert len({request.blocks for request in model.requests}) == 1


async def test_several_samples_of_one_request_are_several_candidates(shop: Database) -> None:
    model = ScriptedModel({"candidate": lambda _: a_completion(*FOUR)})
    draft = await run_stage(
        "CandidateGeneration", a_draft(), model=model, database=shop, fan_out=1, samples=4
    )
    assert [candidate.index for candidate in draft.candidates] == [0, 1, 2, 3]
    assert model.requests[0].samples == 4


async def test_an_engine_that_sends_more_samples_than_asked_for_gets_no_more_candidates(
    shop: Database,
) -> None:
    many = a_completion(*["```sql\nSELECT 1\n```"] * 50)
    model = ScriptedModel({"candidate": lambda _: many})
    draft = await run_stage("CandidateGeneration", a_draft(), model=model, database=shop, fan_out=2)
    assert len(draft.candidates) == 2


async def test_settings_reach_the_request(shop: Database) -> None:
    model = ScriptedModel({"candidate": FOUR})
    await run_stage(
        "CandidateGeneration",
        a_draft(),
        model=model,
        database=shop,
        fan_out=2,
        max_tokens=77,
        temperature=0.3,
        sampling={"top_p": 0.5},
    )
    assert [request.max_tokens for request in model.requests] == [77, 77]
    assert model.requests[0].temperature == 0.3
    assert model.requests[1].sampling == {"top_p": 0.5}


async def test_a_text_without_a_statement_is_a_candidate_without_one(shop: Database) -> None:
    events: list[Event] = []
    model = ScriptedModel({"candidate": [FOUR[0], "I cannot."]})
    draft = await run_stage(
        "CandidateGeneration", a_draft(), model=model, database=shop, fan_out=2, events=events
    )
    assert draft.candidates[1].sql is None
    assert draft.candidates[1].error == "the text holds no SQL statement"
    assert isinstance(events[1], CandidateExtracted)


async def test_no_statement_at_all_quotes_the_model(shop: Database) -> None:
    honest = "This emulated model knows only the questions of its answer book. " + "x" * 500
    with pytest.raises(NoStatement, match="knows only the questions of its answer book") as caught:
        await run_stage(
            "CandidateGeneration", a_draft(), model=ScriptedModel({"candidate": honest}), database=shop
        )
    assert len(str(caught.value)) < 400


async def test_a_refusal_of_most_is_unanswerable(shop: Database) -> None:
    no = "<unanswerable>There is no weather here.</unanswerable>"
    model = ScriptedModel({"candidate": [no, no, no, FOUR[0]]})
    with pytest.raises(Unanswerable, match="no weather"):
        await run_stage("CandidateGeneration", a_draft(), model=model, database=shop)


async def test_a_refusal_of_one_is_outvoted(shop: Database) -> None:
    no = "<unanswerable>There is no weather here.</unanswerable>"
    model = ScriptedModel({"candidate": [no, FOUR[1], FOUR[2], FOUR[3]]})
    draft = await run_stage("CandidateGeneration", a_draft(), model=model, database=shop)
    assert len(draft.candidates) == 4


async def test_a_failed_request_costs_one_candidate(shop: Database) -> None:
    def answer(request: CompletionRequest) -> str | CompletionError:
        return CompletionError("EngineFailed", "it died") if request.seed == 1 else FOUR[0]

    draft = await run_stage(
        "CandidateGeneration", a_draft(), model=ScriptedModel({"candidate": answer}), database=shop
    )
    assert [candidate.reason for candidate in draft.candidates] == [None, "EngineFailed", None, None]


async def test_all_requests_failing_is_their_error(shop: Database) -> None:
    model = ScriptedModel({"candidate": lambda _: CompletionError("NoInstance", "none is there")})
    with pytest.raises(CompletionError, match="none is there"):
        await run_stage("CandidateGeneration", a_draft(), model=model, database=shop)


async def test_a_late_query_asks_for_one(shop: Database) -> None:
    model = ScriptedModel({"candidate": FOUR})
    draft = await run_stage(
        "CandidateGeneration", a_draft(), model=model, database=shop, clock=Clock(left=-5)
    )
    assert len(model.requests) == 1
    assert skipped(draft) == ["3 of 4 candidates: it is late"]


async def test_once_it_is_late_one_candidate_is_enough(shop: Database) -> None:
    clock = Clock(left=10)
    never: asyncio.Event = asyncio.Event()

    async def answer(request: CompletionRequest) -> str:
        if request.seed == 2:
            return FOUR[2]
        await never.wait()
        return ""

    model = ScriptedModel({"candidate": answer})
    task = asyncio.create_task(
        run_stage("CandidateGeneration", a_draft(), model=model, database=shop, clock=clock)
    )
    await asyncio.sleep(0.01)
    assert not task.done()
    clock.pass_by(11)
    draft = await task
    assert [candidate.sql for candidate in draft.candidates] == ["SELECT 2 FROM t"]
    assert len(model.withdrawn) == 3
    assert skipped(draft) == ["3 of 4 candidates: it is late"]


async def test_late_without_any_candidate_waits_for_the_first(shop: Database) -> None:
    clock = Clock(left=10)
    go = asyncio.Event()

    async def answer(request: CompletionRequest) -> str:
        await go.wait()
        return FOUR[0] if request.seed == 0 else await asyncio.Event().wait() and ""

    model = ScriptedModel({"candidate": answer})
    task = asyncio.create_task(
        run_stage("CandidateGeneration", a_draft(), model=model, database=shop, clock=clock)
    )
    await asyncio.sleep(0.01)
    clock.pass_by(11)
    await asyncio.sleep(0.01)
    assert not task.done()
    go.set()
    assert len((await task).candidates) == 1


async def test_a_stage_that_fails_when_late_withdraws_what_runs(shop: Database) -> None:
    clock = Clock(left=10)

    async def answer(_: CompletionRequest) -> Completion:
        await asyncio.Event().wait()
        raise AssertionError

    model = ScriptedModel({"candidate": answer})
    task = asyncio.create_task(
        run_stage(
            "CandidateGeneration", a_draft(), model=model, database=shop, clock=clock, on_timeout="Fail"
        )
    )
    await asyncio.sleep(0.01)
    clock.pass_by(11)
    with pytest.raises(StageTimedOut):
        await task
    assert len(model.withdrawn) == 4


async def test_cancelling_withdraws_every_request(shop: Database) -> None:
    async def answer(_: CompletionRequest) -> Completion:
        await asyncio.Event().wait()
        raise AssertionError

    model = ScriptedModel({"candidate": answer})
    task = asyncio.create_task(run_stage("CandidateGeneration", a_draft(), model=model, database=shop))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(model.withdrawn) == 4


async def test_the_question_comes_last_and_the_schema_first(shop: Database) -> None:
    model = ScriptedModel({"candidate": FOUR})
    question = Question(
        text="How many\n live in  Berlin?",
        evidence="city is a name",
        reference_time=datetime(2024, 5, 1, 13, 59, tzinfo=UTC),
    )
    draft = a_draft(schema=a_schema(a_table("t", "a")), linked={"t": ("a",)})
    await run_stage(
        "CandidateGeneration",
        type(draft)(question=question, schema=draft.schema, linked=draft.linked),
        model=model,
        database=shop,
    )
    lines = text_of(model.requests[0]).splitlines()
    assert lines[0] == "Task: candidate"
    assert lines[-1] == "Question: How many live in Berlin?"
    text = "\n".join(lines)
    assert (
        text.index("CREATE TABLE")
        < text.index("Today is Wednesday, 2024-05-01 (UTC).")
        < text.index("Probably")
    )
    assert text.index("Probably") < text.index("Hint: city is a name") < text.index("Question:")
    assert "13:59" not in text


async def test_a_schema_that_is_too_large_is_pruned_to_what_was_linked(shop: Database) -> None:
    model = ScriptedModel({"candidate": FOUR})
    schema = a_schema(*(a_table(f"table_{i}", "id", "note") for i in range(900)))
    draft = a_draft(schema=schema, linked={"table_3": ("note",)})
    await run_stage("CandidateGeneration", draft, model=model, database=shop)
    assert text_of(model.requests[0]).count("CREATE TABLE") == 1


async def test_links_to_more_than_fits_keep_the_nearest_tables(shop: Database) -> None:
    linked = dict.fromkeys((f"table_{i}" for i in range(900)), ())
    draft = a_draft(
        "What is amount 7 of table 7?",
        schema=a_schema(*(a_table(f"table_{i}", "id", f"amount_{i}") for i in range(900))),
        linked=linked,
    )
    model = ScriptedModel({"candidate": fenced("SELECT 1")})
    await run_stage("CandidateGeneration", draft, model=model, database=shop, fan_out=1, schema_tokens=500)
    schema = text_of(model.requests[0]).partition("Probably needed")[0]
    assert 'CREATE TABLE "table_7"' in schema
    assert schema.count("CREATE TABLE") < 50


async def test_a_large_schema_without_links_keeps_the_nearest_tables(shop: Database) -> None:
    model = ScriptedModel({"candidate": FOUR})
    schema = a_schema(
        *(a_table(f"table_{i}", "id", "note") for i in range(900)), a_table("customers", "berlin")
    )
    await run_stage(
        "CandidateGeneration", a_draft(schema=schema), model=model, database=shop, schema_tokens=300
    )
    assert '"customers"' in text_of(model.requests[0])


async def test_a_candidate_that_was_dropped_is_left_out_and_noted(shop: Database) -> None:
    dropped = CompletionError("Dropped", "its query is late")
    model = ScriptedModel({"candidate": lambda request: dropped if request.sibling else FOUR[0]})
    draft = await run_stage("CandidateGeneration", a_draft(), model=model, database=shop, fan_out=2)
    assert [candidate.sql for candidate in draft.candidates] == ["SELECT 0 FROM t"]
    assert skipped(draft) == ["1 of 2 candidates: it is late"]


@pytest.mark.parametrize(("fan_out", "optional"), [(1, [False]), (2, [True, True])])
async def test_a_stage_can_do_without_one_candidate_of_several(
    shop: Database, fan_out: int, optional: list[bool]
) -> None:
    model = ScriptedModel({"candidate": FOUR})
    await run_stage("CandidateGeneration", a_draft(), model=model, database=shop, fan_out=fan_out)
    assert [request.optional for request in model.requests] == optional
