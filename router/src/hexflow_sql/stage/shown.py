"""Which part of the schema a prompt shows: all of it while it fits, what linking chose when it does not."""

import re
from dataclasses import replace

from hexflow_sql.draft import Draft
from hexflow_sql.schema import Schema, Table, render
from hexflow_sql.stage.protocol import StageSettings

BYTES_PER_TOKEN = 3.5
"""Rough for DDL and English; the router counts more exactly before it dispatches."""

_WORD = re.compile(r"[^\W_]+")


def estimated_tokens(text: str) -> int:
    """Estimate how many tokens a text takes."""
    return int(len(text.encode()) / BYTES_PER_TOKEN) + 1


def fits(schema: Schema, settings: StageSettings) -> bool:
    """Say whether a prompt may show the whole schema."""
    return estimated_tokens(render(schema, samples=settings.sample_values)) <= settings.schema_tokens


def shown_schema(draft: Draft, settings: StageSettings) -> Schema:
    """Choose what a prompt shows. The whole schema is the same for every question, so caches hit."""
    if fits(draft.schema, settings):
        return draft.schema
    return as_fits(draft.schema.pruned(draft.linked) if draft.linked else draft.schema, draft, settings)


def as_fits(schema: Schema, draft: Draft, settings: StageSettings) -> Schema:
    """Keep the tables that share most words with the question, as many as fit, in the schema's order."""
    if fits(schema, settings):
        return schema
    asked = words(f"{draft.question.text} {draft.question.evidence}")
    matched = {match.table for match in draft.matches}

    def score(table: Table) -> float:
        own = words(table.name)
        inner = {word for column in table.columns for word in words(column.name)}
        return 3 * len(asked & own) + len(asked & inner) + (4 if table.name in matched else 0)

    ranked = sorted(schema.tables, key=score, reverse=True)
    kept: list[Table] = []
    tokens = 0
    for table in ranked:
        cost = estimated_tokens(render(replace(schema, tables=(table,)), samples=settings.sample_values))
        if kept and tokens + cost > settings.schema_tokens:
            break
        kept.append(table)
        tokens += cost
    return schema.pruned({table.name: () for table in kept})


def words(text: str) -> set[str]:
    """Split into words as names are made of them (``orderItems``, ``order_items``), without plurals."""
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return {
        word[:-1] if len(word) > 3 and word.endswith("s") else word
        for word in _WORD.findall(split.casefold())
    }
