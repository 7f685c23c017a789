"""The texts a statement compares columns with, and which of them are not in the database."""

from sqlglot import exp

from hexflow_sql.parser import parse_query
from hexflow_sql.schema import Schema
from hexflow_sql.values import MAX_VALUE_CHARACTERS, ValueIndex, ValueMatch


def missing_texts(sql: str, *, schema: Schema, index: ValueIndex) -> tuple[ValueMatch, ...]:
    """List the texts of ``column = 'text'`` and ``column IN ('text', …)`` that the column does not hold.

    Only columns whose texts are all indexed count; where that is not known, nothing is missing.
    """
    tree = parse_query(sql, dialect=schema.dialect)
    if tree is None:
        return ()
    sources = {table.alias_or_name.casefold(): table.name for table in tree.find_all(exp.Table)}
    missing: dict[ValueMatch, None] = {}
    for column, text in _comparisons(tree):
        names = (
            [sources[column.table.casefold()]]
            if column.table.casefold() in sources
            else list(sources.values())
        )
        tables = [table for name in names if (table := schema.table(name)) and table.column(column.name)]
        if len(tables) != 1 or len(text) > MAX_VALUE_CHARACTERS:
            continue
        found = tables[0].column(column.name)
        if (
            found is not None
            and index.covers(tables[0].name, found.name)
            and not index.contains(tables[0].name, found.name, text)
        ):
            missing[ValueMatch(tables[0].name, found.name, text)] = None
    return tuple(missing)


def _comparisons(tree: exp.Expr) -> list[tuple[exp.Column, str]]:
    found: list[tuple[exp.Column, str]] = []
    for equal in tree.find_all(exp.EQ):
        for column, text in ((equal.left, equal.right), (equal.right, equal.left)):
            if isinstance(column, exp.Column) and isinstance(text, exp.Literal) and text.is_string:
                found.append((column, text.name))
    for among in tree.find_all(exp.In):
        if isinstance(among.this, exp.Column):
            found.extend(
                (among.this, text.name)
                for text in among.expressions
                if isinstance(text, exp.Literal) and text.is_string
            )
    return found
