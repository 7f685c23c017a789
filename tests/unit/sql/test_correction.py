"""Self-correction: bounded by rounds, by time and by no progress."""

import asyncio

import pytest

from hexflow_sql import (
    AllCandidatesFailed,
    Candidate,
    Completion,
    CompletionError,
    CompletionRequest,
    Database,
    DatabaseUnavailable,
    Draft,
    Event,
    Limits,
    Result,
    StageTimedOut,
    StatementFailed,
    StatementTried,
    Unanswerable,
)
from hexflow_sql.values import ValueIndex, ValueMatch
from support.language_model import ScriptedModel, a_completion, fenced, text_of
from support.sql import a_candidate, a_draft, a_result, a_schema, a_table
from support.stages import Clock, ScriptedDatabase, run_stage, skipped

GOOD = "SELECT count(*) FROM customers WHERE city = 'Berlin'"
BAD = "SELECT count(custmer) FROM customers"
WORSE = "SELECT count(*) FROM custmers"


async def drafted(shop: Database, *statements: str | None) -> Draft:
    candidates = tuple(a_candidate(index, sql) for index, sql in enumerate(statements))
    return a_draft(schema=await shop.schema(), candidates=candidates)


async def corrected(
    shop: Database, *statements: str | None, model: ScriptedModel | None = None, **more: object
) -> tuple[Candidate, ...]:
    draft = await run_stage(
        "SelfCorrection",
        await drafted(shop, *statements),
        model=model or ScriptedModel({}),
        database=shop,
        **more,  # type: ignore[arg-type]
    )
    return draft.candidates


async def test_a_statement_that_runs_needs_no_model(shop: Database) -> None:
    model = ScriptedModel({})
    (candidate,) = await corrected(shop, GOOD, model=model)
    assert candidate.result is not None
    assert candidate.result.rows == ((2,),)
    assert model.requests == []


async def test_a_failed_statement_is_repaired_with_the_words_of_the_database(shop: Database) -> None:
    model = ScriptedModel({"correction": fenced(GOOD)})
    (candidate,) = await corrected(shop, BAD, model=model)
    assert candidate.usable
    assert candidate.rounds == 1
    assert candidate.error is None
    prompt = text_of(model.requests[0])
    assert "Error: no such column: custmer" in prompt
    assert f"Statement:\n```sql\n{BAD}\n```" in prompt


async def test_a_refused_statement_is_repaired_too(shop: Database) -> None:
    model = ScriptedModel({"correction": fenced(GOOD)})
    (candidate,) = await corrected(shop, "DELETE FROM customers", model=model)
    assert candidate.usable
    assert "Error: Only a single SELECT is allowed: it writes." in text_of(model.requests[0])


async def test_seeds_and_rounds_tell_the_requests_apart(shop: Database) -> None:
    answers = iter([fenced(WORSE), fenced(GOOD)])
    model = ScriptedModel({"correction": lambda _: next(answers)})
    (_, candidate) = await corrected(shop, GOOD, BAD, model=model)
    assert candidate.rounds == 2
    assert [(request.seed, request.round, request.sibling) for request in model.requests] == [
        (101, 0, 1),
        (201, 1, 1),
    ]
    assert BAD in text_of(model.requests[1])


async def test_rounds_are_bounded(shop: Database) -> None:
    count = iter(range(100))
    model = ScriptedModel({"correction": lambda _: fenced(f"SELECT x{next(count)} FROM customers")})
    with pytest.raises(AllCandidatesFailed, match="no such column: x1"):
        await corrected(shop, BAD, model=model, max_rounds=2)
    assert len(model.requests) == 2


async def test_the_same_statement_again_ends_it(shop: Database) -> None:
    model = ScriptedModel({"correction": fenced(f"{BAD.replace(' FROM', chr(10) + 'FROM')};")})
    with pytest.raises(AllCandidatesFailed):
        await corrected(shop, BAD, model=model)
    assert len(model.requests) == 1


async def test_what_was_tried_before_is_shown_as_it_was_written(shop: Database) -> None:
    bad = "SELECT custmer -- the id\nFROM customers"
    model = ScriptedModel({"correction": [fenced(WORSE), fenced(GOOD)]})
    await corrected(shop, bad, model=model)
    assert bad in text_of(model.requests[1])


async def test_going_back_and_forth_between_two_statements_ends_it(shop: Database) -> None:
    model = ScriptedModel({"correction": [fenced(WORSE), fenced(BAD)]})
    with pytest.raises(AllCandidatesFailed):
        await corrected(shop, BAD, model=model, max_rounds=9)
    assert len(model.requests) == 2


async def test_the_same_error_again_ends_it(shop: Database) -> None:
    count = iter(range(100))
    model = ScriptedModel({"correction": lambda _: fenced(f"SELECT custmer, {next(count)} FROM customers")})
    with pytest.raises(AllCandidatesFailed):
        await corrected(shop, BAD, model=model, max_rounds=9)
    assert len(model.requests) == 1


async def test_a_repair_without_a_statement_ends_it(shop: Database) -> None:
    model = ScriptedModel({"correction": "I do not know what is wrong."})
    with pytest.raises(AllCandidatesFailed, match="custmer"):
        await corrected(shop, BAD, model=model)
    assert len(model.requests) == 1


async def test_a_repair_that_refuses_counts_as_a_refusal(shop: Database) -> None:
    model = ScriptedModel({"correction": "<unanswerable>The database may only be read.</unanswerable>"})
    with pytest.raises(Unanswerable, match="may only be read"):
        await corrected(shop, "DELETE FROM customers", model=model)


async def test_no_rounds_means_no_request(shop: Database) -> None:
    model = ScriptedModel({"correction": fenced(GOOD)})
    with pytest.raises(AllCandidatesFailed):
        await corrected(shop, BAD, model=model, max_rounds=0)
    assert model.requests == []


async def test_an_error_of_the_model_ends_one_chain_only(shop: Database) -> None:
    model = ScriptedModel({"correction": lambda _: CompletionError("EngineFailed", "it died")})
    good, bad = await corrected(shop, GOOD, BAD, model=model)
    assert good.usable
    assert bad.error == "no such column: custmer; no correction: it died"


async def test_identical_statements_run_once(shop: Database) -> None:
    database = ScriptedDatabase(await shop.schema(), lambda _: a_result((2,)))
    events: list[Event] = []
    draft = await run_stage(
        "SelfCorrection",
        await drafted(shop, GOOD, GOOD + ";", GOOD),
        model=ScriptedModel({}),
        database=database,
        events=events,
    )
    assert database.ran == [GOOD]
    assert all(candidate.usable for candidate in draft.candidates)
    tried = [event for event in events if isinstance(event, StatementTried)]
    assert sorted(event.reused for event in tried) == [False, True, True]


async def test_identical_failures_fail_once(shop: Database) -> None:
    database = ScriptedDatabase(await shop.schema(), lambda _: StatementFailed("Failed", "no"))
    with pytest.raises(AllCandidatesFailed):
        await run_stage(
            "SelfCorrection",
            await drafted(shop, GOOD, GOOD),
            model=ScriptedModel({}),
            database=database,
            max_rounds=0,
        )
    assert database.ran == [GOOD]


async def test_chains_do_not_wait_for_each_other(shop: Database) -> None:
    slow = asyncio.Event()

    async def answer(request: CompletionRequest) -> str:
        if request.sibling == 0:
            await slow.wait()
        return fenced(GOOD if request.sibling == 0 or request.round else WORSE)

    model = ScriptedModel({"correction": answer})
    task = asyncio.create_task(corrected(shop, BAD, BAD, model=model))
    for _ in range(200):
        await asyncio.sleep(0.01)
        if any(request.sibling == 1 and request.round == 1 for request in model.requests):
            break
    assert not task.done()
    slow.set()
    assert [candidate.rounds for candidate in await task] == [1, 2]


async def test_candidates_without_a_statement_stay_as_they_are(shop: Database) -> None:
    good, none = await corrected(shop, GOOD, None)
    assert good.usable
    assert none.sql is None


class TestEmptyResults:
    """An empty result is no error: one retry at most, and only for a text that is not there."""

    async def test_an_empty_result_is_kept_where_all_texts_exist(self, shop: Database) -> None:
        model = ScriptedModel({})
        (candidate,) = await corrected(
            shop, "SELECT id FROM customers WHERE city = 'Paris' AND name = 'Bo'", model=model
        )
        assert candidate.result is not None
        assert candidate.result.rows == ()
        assert model.requests == []

    async def test_a_text_that_does_not_exist_is_asked_about_once(self, shop: Database) -> None:
        model = ScriptedModel({"correction": fenced(GOOD)})
        (candidate,) = await corrected(shop, "SELECT id FROM customers WHERE city = 'berlin'", model=model)
        assert candidate.result is not None
        assert candidate.result.rows == ((2,),)
        assert "gives no rows; customers.city has no 'berlin'" in text_of(model.requests[0])

    async def test_an_empty_repair_is_not_asked_about_again(self, shop: Database) -> None:
        model = ScriptedModel({"correction": fenced("SELECT id FROM customers WHERE city = 'BERLIN'")})
        (candidate,) = await corrected(shop, "SELECT id FROM customers WHERE city = 'berlin'", model=model)
        assert candidate.usable
        assert len(model.requests) == 1

    async def test_a_repair_that_fails_leaves_the_empty_result(self, shop: Database) -> None:
        model = ScriptedModel({"correction": fenced(BAD)})
        before = "SELECT id FROM customers WHERE city = 'berlin'"
        (candidate,) = await corrected(shop, before, model=model)
        assert candidate.usable
        assert candidate.sql == before
        assert candidate.rounds == 1

    async def test_a_repair_without_a_statement_leaves_the_empty_result(self, shop: Database) -> None:
        model = ScriptedModel({"correction": "It is right as it is."})
        (candidate,) = await corrected(shop, "SELECT id FROM customers WHERE city = 'x'", model=model)
        assert candidate.usable


class TestLateness:
    """Time left bounds statements and corrections."""

    async def test_a_late_chain_tries_once_where_nothing_works(self, shop: Database) -> None:
        answers = iter([fenced(WORSE), fenced(GOOD)])
        model = ScriptedModel({"correction": lambda _: next(answers)})
        with pytest.raises(AllCandidatesFailed):
            await corrected(shop, BAD, model=model, clock=Clock(left=-1))
        assert len(model.requests) == 1

    async def test_a_late_query_ends_other_chains_once_one_has_rows(self, shop: Database) -> None:
        clock = Clock(left=5)

        async def answer(_: CompletionRequest) -> Completion:
            await asyncio.Event().wait()
            raise AssertionError

        model = ScriptedModel({"correction": answer})
        draft = await drafted(shop, GOOD, BAD)
        task = asyncio.create_task(
            run_stage("SelfCorrection", draft, model=model, database=shop, clock=clock)
        )
        for _ in range(200):
            await asyncio.sleep(0.01)
            if model.requests:
                break
        clock.pass_by(6)
        done = await task
        assert done.candidates[0].usable
        assert len(model.withdrawn) == 1
        assert skipped(done) == ["corrections of 1 of 2 candidates: it is late"]

    async def test_a_statement_gets_no_more_than_the_time_left(self, shop: Database) -> None:
        database = ScriptedDatabase(await shop.schema(), lambda _: a_result((1,)))
        for left in (3.0, -7.0, 1000.0):
            await run_stage(
                "SelfCorrection",
                await drafted(shop, GOOD),
                model=ScriptedModel({}),
                database=database,
                clock=Clock(left=left),
                limits=Limits(seconds=10),
            )
        assert [limits.seconds for limits in database.limits] == [3.0, 0.5, 10]

    async def test_a_stage_that_fails_when_late_says_so(self, shop: Database) -> None:
        with pytest.raises(StageTimedOut):
            await corrected(shop, GOOD, clock=Clock(left=0), on_timeout="Fail")


async def test_cancelling_stops_statements_and_withdraws_requests(shop: Database) -> None:
    async def never(sql: str) -> Result:
        await asyncio.Event().wait()
        return a_result((sql,))

    database = ScriptedDatabase(
        await shop.schema(), lambda sql: never(sql) if sql == GOOD else StatementFailed("Failed", "no")
    )

    async def answer(_: CompletionRequest) -> Completion:
        await asyncio.Event().wait()
        return a_completion("")

    model = ScriptedModel({"correction": answer})
    draft = await drafted(shop, GOOD, BAD)
    task = asyncio.create_task(run_stage("SelfCorrection", draft, model=model, database=database))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert database.stopped == [GOOD]
    assert len(model.withdrawn) == 1


async def test_a_database_that_is_gone_ends_the_stage(shop: Database) -> None:
    database = ScriptedDatabase(await shop.schema(), lambda _: DatabaseUnavailable("NotFound", "gone"))
    with pytest.raises(DatabaseUnavailable, match="gone"):
        await run_stage(
            "SelfCorrection", await drafted(shop, GOOD, BAD), model=ScriptedModel({}), database=database
        )


async def test_texts_are_looked_up_in_the_index_of_the_database() -> None:
    schema = a_schema(a_table("t", "a"))
    index = ValueIndex.build([ValueMatch("t", "a", "x")], covered=[("t", "a")])
    database = ScriptedDatabase(schema, lambda _: a_result(), index=index)
    model = ScriptedModel({"correction": fenced("SELECT a FROM t")})
    await run_stage(
        "SelfCorrection",
        a_draft(schema=schema, candidates=(a_candidate(0, "SELECT a FROM t WHERE a = 'y'"),)),
        model=model,
        database=database,
    )
    assert database.ran == ["SELECT a FROM t WHERE a = 'y'", "SELECT a FROM t"]


async def test_a_correction_that_was_dropped_ends_its_chain_and_is_noted(shop: Database) -> None:
    dropped = CompletionError("Dropped", "its query is late")
    model = ScriptedModel({"correction": lambda _: dropped})
    draft = await run_stage("SelfCorrection", await drafted(shop, GOOD, BAD), model=model, database=shop)
    assert [candidate.usable for candidate in draft.candidates] == [True, False]
    assert draft.candidates[1].error == "no such column: custmer"
    assert skipped(draft) == ["corrections of 1 of 2 candidates: it is late"]
    assert len(model.requests) == 1


@pytest.mark.parametrize(("statements", "optional"), [((GOOD, BAD), True), ((BAD,), False)])
async def test_a_correction_is_optional_once_another_candidate_has_rows(
    statements: tuple[str, ...], optional: bool
) -> None:
    async def run(sql: str) -> Result:
        if sql == BAD:
            await asyncio.sleep(0.05)
            raise StatementFailed("NoSuchColumn", "no such column: custmer")
        return a_result((2,))

    schema = a_schema(a_table("customers", "city"))
    draft = a_draft(
        schema=schema, candidates=tuple(a_candidate(index, sql) for index, sql in enumerate(statements))
    )
    model = ScriptedModel({"correction": fenced(GOOD)})
    await run_stage("SelfCorrection", draft, model=model, database=ScriptedDatabase(schema, run))
    assert [request.optional for request in model.requests] == [optional]
