"""Schema linking: which tables and columns a question is about, in at most two requests.

Values that the question mentions are looked up in the database's own texts, without a model.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hexflow_sql.completion import Completion, CompletionError, CompletionRequest, LanguageModel, PromptBlock
from hexflow_sql.database.protocol import Database
from hexflow_sql.draft import Draft
from hexflow_sql.extract import read_json
from hexflow_sql.prompt import linking
from hexflow_sql.schema import Schema, render_names
from hexflow_sql.stage.events import Observer, PartSkipped, TablesLinked
from hexflow_sql.stage.protocol import Sleep, StageSettings, TimeLeft
from hexflow_sql.stage.shown import as_fits, estimated_tokens, fits
from hexflow_sql.stage.waiting import collect, fail_if_late

MAX_TOKENS = 800
"""Room for about sixty columns and a few sentences; a second request gets twice that."""

_FORMAT: Mapping[str, Any] = {
    "type": "json_schema",
    "json_schema": {
        "name": "schema_linking",
        "schema": {
            "type": "object",
            "properties": {
                "reasoning": {"type": "string"},
                "tables": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "table": {"type": "string"},
                            "columns": {"type": "array", "items": {"type": "string"}},
                        },
                        "required": ["table", "columns"],
                    },
                },
            },
            "required": ["tables"],
        },
    },
}

Linked = Mapping[str, tuple[str, ...]]


class SchemaLinking:
    """Narrow the schema to what the question is about (see ``Stage``)."""

    kind = "SchemaLinking"

    def __init__(self, settings: StageSettings) -> None:
        self._settings = settings

    @property
    def name(self) -> str:
        """Its name in the workflow."""
        return self._settings.name

    async def run(
        self,
        draft: Draft,
        *,
        model: LanguageModel,
        database: Database,
        time_left: TimeLeft,
        observe: Observer,
        sleep: Sleep | None = None,
    ) -> Draft:
        """Link (see ``Stage.run``). Where linking fails the draft goes on with the whole schema."""
        settings = self._settings
        fail_if_late(settings, time_left)
        if settings.sample_values:
            index = await database.values()
            draft = replace(
                draft, matches=index.mentioned(f"{draft.question.text} {draft.question.evidence}")
            )
        if time_left() <= 0:
            return self._without(draft, "it is late", observe)
        whole = fits(draft.schema, settings)
        schema = draft.schema if whole else self._listable(draft)
        linked: Linked | None = None
        for attempt in range(2):
            blocks = linking(draft, schema=schema, samples=settings.sample_values, names_only=not whole)
            completion = await self._ask(
                blocks, attempt=attempt, model=model, time_left=time_left, sleep=sleep or asyncio.sleep
            )
            if completion is None:
                break
            found = read_linked(completion, draft.schema)
            if found:
                linked = found
                if whole or attempt == 1:
                    break
                # The names alone chose the tables; their DDL chooses the columns.
                whole = True
                schema = as_fits(draft.schema.pruned(dict.fromkeys(found, ())), draft, settings)
        if linked is None:
            return self._without(draft, "no request named a table of the schema", observe)
        draft = replace(draft, linked=linked)
        observe(TablesLinked(stage=self.name, tables=tuple(linked), values=len(draft.matches)))
        return draft

    async def _ask(
        self,
        blocks: tuple[PromptBlock, ...],
        *,
        attempt: int,
        model: LanguageModel,
        time_left: TimeLeft,
        sleep: Sleep,
    ) -> Completion | None:
        settings = self._settings
        request = CompletionRequest(
            task="schema-linking",
            blocks=blocks,
            max_tokens=(settings.max_tokens or MAX_TOKENS) * (1 + attempt),
            temperature=settings.temperature or 0.0,
            seed=attempt,
            sampling=settings.sampling,
            response_format=_FORMAT,
            round=attempt,
        )
        (ended,) = await collect(
            model.release([request]),
            time_left=time_left,
            sleep=sleep,
            enough=lambda _: True,
            settings=settings,
        )
        if isinstance(ended, CompletionError):
            raise ended
        return ended

    def _listable(self, draft: Draft) -> Schema:
        """Keep what a list of names has room for; all of it in all but the largest schemas."""
        if estimated_tokens(render_names(draft.schema)) <= self._settings.schema_tokens:
            return draft.schema
        return as_fits(draft.schema, draft, self._settings)

    def _without(self, draft: Draft, why: str, observe: Observer) -> Draft:
        observe(PartSkipped(stage=self.name, what="linking", why=why))
        return draft.skip(self.name, "linking", why)


def read_linked(completion: Completion, schema: Schema) -> Linked | None:
    """Read tables and columns that exist, spelled as the schema spells them; None where there are none."""
    if not completion.texts:
        return None
    data = read_json(completion.texts[0])
    listed = data.get("tables") if isinstance(data, Mapping) else data
    if isinstance(listed, Mapping):
        listed = [{"table": table, "columns": columns} for table, columns in listed.items()]
    linked: dict[str, tuple[str, ...]] = {}
    for entry in listed if isinstance(listed, list) else ():
        name = entry.get("table") or entry.get("name") if isinstance(entry, Mapping) else entry
        table = schema.table(name) if isinstance(name, str) else None
        if table is None:
            continue
        named = entry.get("columns") if isinstance(entry, Mapping) else None
        columns = (
            table.column(column)
            for column in (named if isinstance(named, list) else ())
            if isinstance(column, str)
        )
        linked[table.name] = tuple(dict.fromkeys(column.name for column in columns if column is not None))
    return linked or None
