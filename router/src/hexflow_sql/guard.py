"""The parser layer of safety: one statement, a query, over known tables, with harmless functions.

What passes is written anew from the tree, so that a database never sees text that this parser read
differently (comments that a database executes, for one). The other two layers are with the database; this
one knows no database. ``docs/explanation/sql-safety.md`` tells the whole.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from hexflow_sql.denied import TABLE_FUNCTIONS, denied
from hexflow_sql.errors import StatementRefused
from hexflow_sql.parser import parse, unreadable, write
from hexflow_sql.schema import Schema

MAX_SOURCES = 4_096
"""Most tables a statement may read once every WITH name is replaced by what it stands for."""

_FUNCTION_MODULES = frozenset(
    f"sqlglot.expressions.{name}"
    for name in ("aggregate", "array", "functions", "json", "math", "string", "temporal")
)
"""Where the parser keeps functions and operators; their names still go through the lists of ``denied.py``."""

_ALLOWED_NODES = frozenset(
    {
        # values, names and operators
        "Add", "Alias", "All", "And", "Anonymous", "AnonymousAggFunc", "Any", "AtTimeZone", "Between", "BitwiseAnd",
        "BitwiseLeftShift", "BitwiseNot", "BitwiseOr", "BitwiseRightShift", "BitwiseXor", "Boolean", "Bracket",
        "Column", "DPipe", "DataType", "DataTypeParam", "Distinct", "Div", "Dot", "EQ", "Escape", "Filter", "GT",
        "GTE", "Glob", "HexString", "ILike", "Identifier", "IgnoreNulls", "In", "IntDiv", "Interval",
        "IntervalSpan", "Is", "LT", "LTE", "Like", "Literal", "Match", "Mod", "Mul", "NEQ", "National", "Neg",
        "Not", "Null", "NullSafeEQ", "NullSafeNEQ", "Or", "Ordered", "Paren", "Pow", "RawString", "RegexpLike",
        "RespectNulls", "SimilarTo", "Slice", "Star", "Sub", "Tuple", "TypeOf", "Typeof", "Var", "WithinGroup",
        "Xor", "Kwarg", "Collation", "ApproxDistinct", "Overlaps", "UnicodeString", "UnaryPlus",
        # the parts of a query
        "CTE", "Cube", "Except", "Fetch", "From", "Group", "GroupingSets", "Having", "Intersect", "Join", "Lateral",
        "Limit", "Offset", "Order", "Qualify", "Rollup", "Select", "Subquery", "Table", "TableAlias", "Union",
        "Values", "Where", "Window", "WindowSpec", "With", "JSON", "JSONPath", "JSONPathFilter", "JSONPathKey",
        "JSONPathRecursive", "JSONPathRoot", "JSONPathSlice", "JSONPathSubscript", "JSONPathUnion",
        "JSONPathWildcard", "JSONPathSelector", "JSONPathScript", "JSONKeyValue", "FormatJson", "OnCondition",
    }
)  # fmt: skip
"""Every other node of the parser is refused: an unknown construct is not a harmless one."""

_FORBIDDEN: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.DML, "it writes"),
    (exp.DDL, "it changes the schema"),
    (exp.Into, "INTO writes a table"),
    (exp.Lock, "FOR UPDATE locks rows"),
    (exp.Attach, "ATTACH opens a file"),
    (exp.Detach, "DETACH closes a database"),
    (exp.Pragma, "PRAGMA changes settings"),
    (exp.Set, "SET changes settings"),
    (exp.Command, "the parser does not know it"),
    (exp.Placeholder, "it has a parameter and nobody to fill it"),
    (exp.Parameter, "it has a parameter and nobody to fill it"),
    (exp.SessionParameter, "it reads the server's variables"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SafeStatement:
    """Hold a statement that passed the parser layer, written anew from its tree."""

    text: str
    dialect: str
    ordered: bool
    """Whether the statement itself orders its rows."""


def check(sql: str, *, dialect: str, schema: Schema | None) -> SafeStatement:
    """Let one harmless query through and return it written anew; refuse everything else.

    Without a schema any table is known. Raises StatementRefused, whose reasons are Empty, TooLong, TooDeep,
    Syntax, Multiple, NotAQuery, Forbidden, Function, UnknownTable, NoSuchColumn and TooWide.
    """
    tree = parse(sql, dialect=dialect)
    try:
        _check_tree(tree, dialect, schema)
        if dialect == "sqlite":
            _free_join_order(tree)
        text = write(tree, dialect=dialect)
        again = parse(text, dialect=dialect)
        _check_tree(again, dialect, schema)
    except Exception as error:
        raise unreadable(error) from None
    return SafeStatement(text=text, dialect=dialect, ordered=again.args.get("order") is not None)


def _check_tree(tree: exp.Expr, dialect: str, schema: Schema | None) -> None:
    nodes = list(tree.walk())
    for node in nodes:
        why = _why_not(type(node))
        if why is not None:
            raise StatementRefused("Forbidden", f"Only a single SELECT is allowed: {why}.")
        if isinstance(node, exp.Func):
            _check_function(node, dialect)
        elif isinstance(node, exp.Select):
            if not node.expressions:
                raise StatementRefused("Syntax", "A SELECT names nothing to select.")
            if node.args.get("kind") or node.args.get("hint"):
                raise StatementRefused("Forbidden", "Hints and kinds of SELECT are not allowed.")
        elif isinstance(node, exp.In) and node.args.get("field") is not None:
            raise StatementRefused("Forbidden", "IN takes a list in brackets, or a SELECT in brackets.")
        elif isinstance(node, exp.Identifier) and not node.quoted and node.name.startswith("$"):
            raise StatementRefused("Forbidden", "It has a parameter and nobody to fill it.")
    if not isinstance(tree.unnest(), exp.Query | exp.Values):
        raise StatementRefused("NotAQuery", "The statement is not a query; only a single SELECT is allowed.")
    for node in nodes:
        if isinstance(node, exp.Table):
            _check_table(node, dialect, schema)
    _check_width(tree, [node for node in nodes if isinstance(node, exp.CTE)])
    if schema is not None and dialect == "sqlite":
        _check_quoted_names(nodes, schema)


_REASONS: dict[type[object], str | None] = {}
"""Answers of ``_why_not``, one for each class of the parser."""


def _why_not(kind: type[object]) -> str | None:
    """Say why a kind of node has no place in a harmless query; None if it has."""
    if kind not in _REASONS:
        _REASONS[kind] = next((why for forbidden, why in _FORBIDDEN if issubclass(kind, forbidden)), None)
        known = kind.__name__ in _ALLOWED_NODES or kind.__module__ in _FUNCTION_MODULES
        if _REASONS[kind] is None and not known:
            _REASONS[kind] = f"{kind.__name__} is not part of one"
    return _REASONS[kind]


def _free_join_order(tree: exp.Expr) -> None:
    """Write a comma between tables as JOIN: the parser reads it as CROSS JOIN, which binds SQLite's planner."""
    for join in tree.find_all(exp.Join):
        if join.kind == "CROSS":
            join.set("kind", None)


def _check_function(node: exp.Func, dialect: str) -> None:
    names = {node.name} if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc) else set(node.sql_names())
    names.add(str(node.meta.get("name", "")))
    for name in names:
        if denied(name, dialect):
            raise StatementRefused("Function", f"The function {name.lower()} is not allowed.")


def _check_table(table: exp.Table, dialect: str, schema: Schema | None) -> None:
    if isinstance(table.this, exp.Func):
        name = table.this.name if isinstance(table.this, exp.Anonymous) else table.this.sql_name()
        if name.casefold() not in TABLE_FUNCTIONS.get(dialect, frozenset()):
            raise StatementRefused("Function", f"The table function {name.lower()} is not allowed.")
        return
    if not isinstance(table.this, exp.Identifier):
        raise StatementRefused("Forbidden", "A table must be named plainly.")
    if not table.db and not table.catalog and _is_with_name(table, dialect):
        return
    if table.catalog or (table.db and (dialect != "sqlite" or table.db.casefold() != "main")):
        raise StatementRefused("UnknownTable", f"no such table: {table.sql(dialect=dialect)}")
    if schema is not None and schema.table(table.name) is None:
        raise StatementRefused("UnknownTable", f"no such table: {table.name}")


def _is_with_name(table: exp.Table, dialect: str) -> bool:
    """Say whether a name in FROM means a WITH name that is visible there.

    Outside SQLite a plain WITH shows a name only to later ones and to its query, so that
    ``WITH secret AS (SELECT * FROM secret)`` reads the real table.
    """
    name = table.name.casefold()
    inside: exp.Expr | None = table
    own: list[exp.Expr] = []
    while inside is not None:
        own.append(inside)
        with_ = inside.args.get("with_")
        if isinstance(with_, exp.With):
            ctes = with_.expressions
            at = next((place for place, cte in enumerate(ctes) if any(cte is seen for seen in own)), None)
            visible = ctes if at is None or with_.recursive or dialect == "sqlite" else ctes[:at]
            if any(cte.alias.casefold() == name for cte in visible):
                return True
        inside = inside.parent
    return False


def _check_width(tree: exp.Expr, ctes: list[exp.CTE]) -> None:
    """Count the tables read when every WITH name is replaced by its body: doubling names is a bomb."""
    reads = [(cte.alias.casefold(), _sources(cte.this)) for cte in ctes]
    weights = {name: 1 for name, _ in reads}
    for _ in range(len(ctes) + 1):
        before = dict(weights)
        for name, sources in reads:
            total = sum(weights.get(source, 1) for source in sources if source != name)
            weights[name] = max(weights[name], total)
            if total > MAX_SOURCES:
                raise StatementRefused(
                    "TooWide", f"The statement reads more than {MAX_SOURCES} tables in the end."
                )
        if weights == before:
            break
    if sum(weights.get(source, 1) for source in _sources(tree)) > MAX_SOURCES:
        raise StatementRefused("TooWide", f"The statement reads more than {MAX_SOURCES} tables in the end.")


def _sources(tree: exp.Expr) -> list[str]:
    return [table.name.casefold() for table in tree.find_all(exp.Table)]


def _check_quoted_names(nodes: list[exp.Expr], schema: Schema) -> None:
    """Refuse a double-quoted name that is no column: SQLite would take it for a text and answer nonsense."""
    quoted = [
        node.this
        for node in nodes
        if isinstance(node, exp.Column)
        and isinstance(node.this, exp.Identifier)
        and node.this.quoted
        and not node.table
    ]
    if not quoted:
        return
    known: set[str] = {"rowid", "oid", "_rowid_"}
    known.update(column.name.casefold() for table in schema.tables for column in table.columns)
    known.update(alias.casefold() for alias in _aliases(nodes))
    for name in quoted:
        if name.name.casefold() not in known:
            raise StatementRefused(
                "NoSuchColumn", f"no such column: \"{name.name}\" (a text takes single quotes: '…')"
            )


def _aliases(nodes: list[exp.Expr]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, exp.Alias):
            yield node.alias
        elif isinstance(node, exp.TableAlias):
            yield node.name
            yield from (column.name for column in node.args.get("columns") or ())
        elif isinstance(node, exp.Table) and isinstance(node.this, exp.Func):
            yield from ("key", "value", "type", "atom", "id", "parent", "fullkey", "path")
