"""The reference page of the command line, generated from its surface: `python -m hexflow_cli.reference`.

`docs/reference/cli.md` is this module's output; a test fails when it is stale.
"""

import inspect
import sys
from collections.abc import Iterable
from enum import Enum
from typing import Any

import typer.main

from hexflow_cli.app import app
from hexflow_cli.exitcode import ExitCode

_OPENING = """\
# The command `hexflow`

This page is generated from the code by `python -m hexflow_cli.reference`; a test keeps it fresh.

Results go to stdout; progress, logs and errors go to stderr. With `--json` stdout holds exactly one JSON document, an
error too: `{"error": {"reason": "PortInUse", "message": "…", "exitCode": 5}}`. Only a command line that cannot be read
(an unknown option, a word for a number) is told on stderr alone, with status 2.

`hexflow ask` finds the router by `--url`, then the variable `HEXFLOW_URL`, then the state file of the `hexflow up` that
was started last and still runs, then port 8080 of the loopback. State files lie in the user's state folder, or in the
folder that `HEXFLOW_STATE_DIR` names; they are removed when `hexflow up` ends, however it ends.
"""


def page() -> str:
    """Return the page as Markdown."""
    group: Any = typer.main.get_command(app)
    parts = [_OPENING, *(_command(name, command) for name, command in group.commands.items()), _exit_codes()]
    return "\n".join(parts)


def _command(name: str, command: Any) -> str:
    arguments = [item for item in command.params if item.param_type_name == "argument"]
    options = [item for item in command.params if item.param_type_name == "option"]
    usage = " ".join(
        ["hexflow", name, *(["[OPTIONS]"] if options else ["…"]), *(item.name.upper() for item in arguments)]
    )
    lines = [f"## hexflow {name}", "", f"    {usage}", "", inspect.cleandoc(command.help or ""), ""]
    if arguments:
        rows = [(f"`{item.name.upper()}`", item.help) for item in arguments]
        lines += [*_table(("Argument", "Meaning"), rows), ""]
    if options:
        choices = [(_names(item), _default(item), item.help or "") for item in options]
        lines += [*_table(("Option", "Default", "Meaning"), choices), ""]
    return "\n".join(lines)


def _names(option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in sorted(option.opts, key=len))
    more = " …" if option.multiple else ""
    variable = f"<br>variable `{option.envvar}`" if option.envvar else ""
    return f"{names}{more}{variable}"


def _default(option: Any) -> str:
    if isinstance(option.show_default, str):
        return option.show_default
    if option.required:
        return "required"
    if option.default in (None, False, []):
        return ""
    value = option.default.value if isinstance(option.default, Enum) else option.default
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _exit_codes() -> str:
    meanings = _docstrings_of_members()
    rows = [(str(int(code)), code.name.capitalize(), meanings[code.name]) for code in ExitCode]
    return "\n".join(["## Exit codes", "", *_table(("Code", "Name", "Meaning"), rows), ""])


def _docstrings_of_members() -> dict[str, str]:
    """Return what is written below each member of ExitCode: the one place that explains them."""
    found: dict[str, str] = {}
    name = ""
    for line in map(str.strip, inspect.getsource(ExitCode).splitlines()):
        if " = " in line and line.split(" = ")[0].isupper():
            name = line.split(" = ")[0]
        elif name and line.startswith('"""'):
            found[name] = line.strip('"')
    return found


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    return [line(head), line("---" for _ in head), *(line(row) for row in rows)]


if __name__ == "__main__":
    sys.stdout.write(page())
