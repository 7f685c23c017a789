"""Where the command writes: people read stderr and tables, programs read JSON on stdout.

Answers and tables go to stdout; progress, notes, logs and errors go to stderr, so that a pipe carries only the
result. Every text from outside is printed as it is, never read as rich's markup.
"""

import json
import os
import sys
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from hexflow_cli.exitcode import CommandError

_PIPED_WIDTH = 120
"""Columns of a table that goes into a file or a pipe, unless COLUMNS says otherwise."""


def _width(stream: TextIO) -> int | None:
    return None if stream.isatty() or os.environ.get("COLUMNS") else _PIPED_WIDTH


stdout = Console(highlight=False, markup=False, emoji=False, width=_width(sys.stdout))
stderr = Console(stderr=True, highlight=False, markup=False, emoji=False, width=_width(sys.stderr))


def print_json(value: Any) -> None:
    """Write one JSON document to stdout, as it is, without colours or wrapping."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")
    sys.stdout.flush()


def print_error(error: CommandError, *, as_json: bool = False) -> None:
    """Write an error for a person to stderr, or as JSON to stdout where the caller asked for JSON."""
    if as_json:
        print_json({"error": {"reason": error.reason, "message": str(error), "exitCode": int(error.code)}})
        return
    say(Text.assemble(("Error: ", "bold red"), str(error)))


def say(text: Text) -> None:
    """Write sentences to stderr: wrapped between words for a person, line by line as they are into a file or pipe."""
    stderr.print(text, soft_wrap=not stderr.is_terminal)
