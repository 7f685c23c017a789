"""Schema linking."""

import json

import pytest

from hexflow_sql import CompletionError, Database, Draft, Event, StageTimedOut, TablesLinked
from support.language_model import ScriptedModel, a_completion, text_of
from support.sql import a_draft, a_schema, a_table
from support.stages import Clock, run_stage, skipped

LINKED = '{"reasoning": "…", "tables": [{"table": "Customers", "columns": ["CITY", "nonsense"]}]}'
MANY = a_schema(*(a_table(f"table_{i}", "id", f"amount_{i}", "note") for i in range(900)))


async def a_shop_draft(shop: Database, text: str = "How many customers live in berlin?") -> Draft:
    return a_draft(text, schema=await shop.schema())


async def test_tables_and_columns_are_linked_as_the_schema_spells_them(shop: Database) -> None:
    events: list[Event] = []
    draft = await run_stage(
        "SchemaLinking",
        await a_shop_draft(shop),
        model=ScriptedModel({"schema-linking": LINKED}),
        database=shop,
        events=events,
    )
    assert draft.linked == {"customers": ("city",)}
    assert events == [TablesLinked(stage="schemalinking", tables=("customers",), values=1)]


async def test_values_are_looked_up_without_the_model(shop: Database) -> None:
    model = ScriptedModel({"schema-linking": LINKED})
    draft = await run_stage("SchemaLinking", await a_shop_draft(shop), model=model, database=shop)
    assert [match.value for match in draft.matches] == ["Berlin"]
    assert '"customers"."city" has \'Berlin\'' in text_of(model.requests[0])


async def test_values_can_be_switched_off(shop: Database) -> None:
    model = ScriptedModel({"schema-linking": LINKED})
    draft = await run_stage(
        "SchemaLinking", await a_shop_draft(shop), model=model, database=shop, sample_values=False
    )
    assert draft.matches == ()
    assert "Berlin" not in text_of(model.requests[0])
    assert "O''Neil" not in text_of(model.requests[0])


async def test_the_answer_is_asked_for_as_strict_json(shop: Database) -> None:
    model = ScriptedModel({"schema-linking": LINKED})
    await run_stage("SchemaLinking", await a_shop_draft(shop), model=model, database=shop)
    (request,) = model.requests
    assert request.response_format is not None
    assert request.response_format["type"] == "json_schema"


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"tables": [{"table": "customers", "columns": ["city"]}]}\n```',
        '{"tables": {"customers": ["city"]}}',
        'I think {"tables": [{"name": "customers", "columns": ["city"]}]} will do.',
        "<think>hm</think>" + LINKED,
    ],
)
async def test_other_shapes_of_json_are_understood(text: str, shop: Database) -> None:
    model = ScriptedModel({"schema-linking": text})
    draft = await run_stage("SchemaLinking", await a_shop_draft(shop), model=model, database=shop)
    assert draft.linked == {"customers": ("city",)}


async def test_names_alone_keep_whole_tables(shop: Database) -> None:
    model = ScriptedModel({"schema-linking": '{"tables": ["orders"]}'})
    draft = await run_stage("SchemaLinking", await a_shop_draft(shop), model=model, database=shop)
    assert draft.linked == {"orders": ()}


async def test_a_truncated_answer_is_asked_for_once_more_with_more_room(shop: Database) -> None:
    cut = a_completion('{"tables": [{"table": "customers", "col', finish_reason="length")
    model = ScriptedModel({"schema-linking": lambda request: LINKED if request.round else cut})
    draft = await run_stage("SchemaLinking", await a_shop_draft(shop), model=model, database=shop)
    assert draft.linked == {"customers": ("city",)}
    assert [request.max_tokens for request in model.requests] == [800, 1600]


async def test_two_requests_are_the_most(shop: Database) -> None:
    model = ScriptedModel({"schema-linking": "I do not know."})
    draft = await run_stage("SchemaLinking", await a_shop_draft(shop), model=model, database=shop)
    assert len(model.requests) == 2
    assert draft.linked is None
    assert skipped(draft) == ["linking: no request named a table of the schema"]


async def test_tables_that_do_not_exist_are_dropped(shop: Database) -> None:
    model = ScriptedModel({"schema-linking": '{"tables": [{"table": "secret", "columns": []}, 7, null]}'})
    draft = await run_stage("SchemaLinking", await a_shop_draft(shop), model=model, database=shop)
    assert draft.linked is None


@pytest.mark.parametrize("columns", ["7", '"city"', "null", "true", '{"city": 1}'])
async def test_columns_that_are_no_list_keep_the_whole_table(columns: str, shop: Database) -> None:
    text = f'{{"tables": [{{"table": "customers", "columns": {columns}}}]}}'
    model = ScriptedModel({"schema-linking": text})
    draft = await run_stage("SchemaLinking", await a_shop_draft(shop), model=model, database=shop)
    assert draft.linked == {"customers": ()}


async def test_a_model_that_names_every_table_gets_as_many_as_fit(shop: Database) -> None:
    everything = json.dumps({"tables": [table.name for table in MANY.tables]})
    model = ScriptedModel({"schema-linking": everything})
    await run_stage(
        "SchemaLinking",
        a_draft("What is amount 7 of table 7?", schema=MANY),
        model=model,
        database=shop,
        schema_tokens=20_000,
    )
    second = text_of(model.requests[1])
    assert 'CREATE TABLE "table_7"' in second
    assert len(second) < 80_000


async def test_a_schema_of_900_tables_is_narrowed_in_two_steps(shop: Database) -> None:
    names = '{"tables": ["table_7", "table_8"]}'
    columns = '{"tables": [{"table": "table_7", "columns": ["amount_7"]}]}'
    model = ScriptedModel({"schema-linking": lambda request: columns if request.round else names})
    draft = await run_stage(
        "SchemaLinking",
        a_draft("What is amount 7 in table 7?", schema=MANY),
        model=model,
        database=shop,
        schema_tokens=20_000,
    )
    first, second = (text_of(request) for request in model.requests)
    assert 'table_899" ("id"' in first
    assert "CREATE TABLE" not in first
    assert second.count("CREATE TABLE") == 2
    assert draft.linked == {"table_7": ("amount_7",)}


async def test_a_list_of_names_that_is_too_long_keeps_the_nearest_tables(shop: Database) -> None:
    model = ScriptedModel({"schema-linking": '{"tables": ["table_7"]}'})
    await run_stage(
        "SchemaLinking",
        a_draft("What is amount 7 of table 7?", schema=MANY),
        model=model,
        database=shop,
        schema_tokens=500,
    )
    assert '"table_7"' in text_of(model.requests[0])
    assert len(text_of(model.requests[0])) < 5_000


async def test_a_late_query_is_not_linked(shop: Database) -> None:
    model = ScriptedModel({})
    draft = await run_stage(
        "SchemaLinking", await a_shop_draft(shop), model=model, database=shop, clock=Clock(left=-1)
    )
    assert model.requests == []
    assert skipped(draft) == ["linking: it is late"]


async def test_a_stage_that_fails_when_late_says_so(shop: Database) -> None:
    with pytest.raises(StageTimedOut, match="schemalinking"):
        await run_stage(
            "SchemaLinking",
            await a_shop_draft(shop),
            model=ScriptedModel({}),
            database=shop,
            clock=Clock(left=0),
            on_timeout="Fail",
        )


async def test_an_error_of_the_model_is_passed_on(shop: Database) -> None:
    model = ScriptedModel({"schema-linking": lambda _: CompletionError("NoInstance", "no instance is there")})
    with pytest.raises(CompletionError, match="no instance"):
        await run_stage("SchemaLinking", await a_shop_draft(shop), model=model, database=shop)
