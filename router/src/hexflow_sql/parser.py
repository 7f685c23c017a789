"""From a text to a syntax tree and back: bounded, one statement at a time, with functions as they are written.

sqlglot knows the functions of thirty dialects and writes each in the words of another, by what it thinks
comes near: ``TO_CHAR(d, 'YYYY')`` becomes ``CAST(d AS TEXT)``. A database must rather say that it has no
such function, so that the statement is corrected. What may run is ``guard.py``'s business.
"""

import logging
from typing import ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.generators.sqlite import SQLiteGenerator
from sqlglot.parsers.sqlite import SQLiteParser
from sqlglot.tokenizer_core import Token

from hexflow_sql.errors import StatementRefused

logging.getLogger("sqlglot").setLevel(logging.ERROR)  # its warnings quote statements; refusals say more

MAX_CHARACTERS = 20_000
"""Longest statement that is parsed; parsing costs 5 to 50 microseconds a character."""

MAX_DEPTH = 80
"""Deepest nesting of brackets that is parsed: the parser and the databases recurse."""

_OPENING = frozenset({sqlglot.TokenType.L_PAREN, sqlglot.TokenType.L_BRACKET, sqlglot.TokenType.CASE})
_CLOSING = frozenset({sqlglot.TokenType.R_PAREN, sqlglot.TokenType.R_BRACKET, sqlglot.TokenType.END})


class UnaryPlus(exp.Unary):
    """Hold ``+ a``, which sqlglot drops: in SQLite it takes a column's type and collation away."""


class _AsWritten(SQLiteParser):
    """Take every function by its name alone; CAST has a syntax of its own."""

    FUNCTIONS: ClassVar = {}
    FUNCTION_PARSERS: ClassVar = {"CAST": SQLiteParser.FUNCTION_PARSERS["CAST"]}
    UNARY_PARSERS: ClassVar = {
        **SQLiteParser.UNARY_PARSERS,
        sqlglot.TokenType.PLUS: lambda self: self.expression(UnaryPlus(this=self._parse_unary())),
    }


class _Writer(SQLiteGenerator):
    TRANSFORMS: ClassVar = {
        **SQLiteGenerator.TRANSFORMS,
        UnaryPlus: lambda self, plus: f"+{self.sql(plus, 'this')}",
    }


_PARSERS = {"sqlite": _AsWritten}
"""Parsers of our own, for the dialects that have a driver."""

_WRITERS = {"sqlite": _Writer}


def parse(sql: str, *, dialect: str) -> exp.Expr:
    """Parse one statement. Raises StatementRefused: Empty, TooLong, TooDeep, Syntax or Multiple."""
    if not sql.strip():
        raise StatementRefused("Empty", "There is no statement.")
    if len(sql) > MAX_CHARACTERS:
        raise StatementRefused(
            "TooLong", f"The statement has {len(sql)} characters; {MAX_CHARACTERS} is the limit."
        )
    if "\x00" in sql or any("\ud800" <= character <= "\udfff" for character in sql):
        raise StatementRefused("Syntax", "The statement holds a character that no database reads.")
    try:
        known = sqlglot.Dialect.get_or_raise(dialect)
        tokens = known.tokenize(sql)
        _check_depth(tokens)
        parser = _PARSERS.get(dialect, known.parser_class)
        trees = parser(dialect=known, error_level=ErrorLevel.RAISE).parse(tokens, sql)
    except Exception as error:
        raise unreadable(error) from None
    statements = [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]
    if not statements:
        raise StatementRefused("Empty", "There is no statement.")
    if len(statements) > 1:
        raise StatementRefused("Multiple", f"There are {len(statements)} statements; send one.")
    return statements[0]


def write(tree: exp.Expr, *, dialect: str) -> str:
    """Write a tree as a statement, without comments. May raise anything (see ``unreadable``)."""
    known = sqlglot.Dialect.get_or_raise(dialect)
    return _WRITERS.get(dialect, known.generator_class)(dialect=known, comments=False).generate(
        tree, copy=False
    )


def parse_query(sql: str, *, dialect: str) -> exp.Query | exp.Values | None:
    """Parse a text that may be one query; None if it is anything else."""
    try:
        tree = parse(sql, dialect=dialect)
    except StatementRefused:
        return None
    return tree if isinstance(tree, exp.Query | exp.Values) else None


def unreadable(error: Exception) -> StatementRefused:
    """Say why the parser could not read or write a statement; it raises anything, such as TypeError."""
    if isinstance(error, StatementRefused):
        return error
    if isinstance(error, RecursionError):
        return StatementRefused("TooDeep", "The statement nests too deeply; write it flatter.")
    if isinstance(error, SqlglotError):
        return StatementRefused("Syntax", _first_line(error))
    return StatementRefused("Syntax", "The statement cannot be read; write it in another way.")


def _check_depth(tokens: list[Token]) -> None:
    depth = 0
    for token in tokens:
        if token.token_type in _OPENING:
            depth += 1
            if depth > MAX_DEPTH:
                raise StatementRefused("TooDeep", f"The statement nests deeper than {MAX_DEPTH} brackets.")
        elif token.token_type in _CLOSING:
            depth -= 1


def _first_line(error: SqlglotError) -> str:
    errors = getattr(error, "errors", None)
    if errors:
        first = errors[0]
        near = first.get("highlight") or ""
        return (
            f"{first.get('description', 'syntax error')} near {near!r}"
            if near
            else str(first.get("description"))
        )
    return str(error).splitlines()[0] if str(error) else "syntax error"
