"""`hexflow ask`: one question to a router, its stages while they run, its rows at the end."""

import json
import math
import os
import sys
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass
from time import monotonic
from typing import Any

from pydantic import ValidationError
from rich.live import Live
from rich.text import Text

from hexflow_cli import table
from hexflow_cli.client import RouterClient
from hexflow_cli.console import print_error, print_json, stderr, stdout
from hexflow_cli.exitcode import CommandError, ExitCode
from hexflow_cli.statefile import StateFile
from hexflow_cli.target import choose_workflow, find_target
from hexflow_cli.watch import QueryWatch
from hexflow_router.answer import Answer, Status

_MOST_STDIN_BYTES = 1024 * 1024
_OUT_OF_REACH = frozenset({"ConnectFailed", "DatabaseUnavailable", "NoInstance", "NoInstanceInTime"})
"""Reasons for which another wording of the question would not help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskOptions:
    """Hold what the command line said."""

    question: str
    database: str | None
    deadline_seconds: float | None
    evidence: str | None
    workflow: str | None
    tenant: str | None
    api_key: str | None
    url: str | None
    show_sql: bool
    explain: bool
    as_json: bool


async def ask(options: AskOptions) -> int:
    """Ask, show, and return the exit code."""
    body = _body(options)
    state = StateFile.read()
    target = find_target(
        url=options.url,
        workflow=options.workflow,
        tenant=options.tenant,
        api_key=options.api_key,
        state=state,
    )
    here = state if state is not None and state.url.rstrip("/") == target.url else None
    scale = here.time_scale if here else 1.0
    async with RouterClient(target.url, api_key=target.api_key) as client:
        known = target.workflows
        if known is None and not options.workflow:
            known = await client.workflows()
        workflow = choose_workflow(options.workflow, known or ())
        started = monotonic()
        watch = QueryWatch(
            question=options.question,
            elapsed=lambda: (monotonic() - started) * scale,
            deadline_seconds=options.deadline_seconds,
        )
        answer = await _follow(client, workflow, body, watch, quiet=options.as_json)
    return _show(answer, options)


def _body(options: AskOptions) -> dict[str, Any]:
    question = _from_stdin() if options.question == "-" else _utf8(os.fsencode(options.question))
    if not question.strip():
        raise CommandError("The question is empty. Write one.", code=ExitCode.USAGE, reason="EmptyQuestion")
    deadline = options.deadline_seconds
    if deadline is not None and not (math.isfinite(deadline) and deadline > 0):
        raise CommandError(
            f"--deadline {deadline:g} cannot be met: write the seconds from now, such as --deadline 30.",
            code=ExitCode.USAGE,
            reason="InvalidDeadline",
        )
    body = {
        "question": question,
        "database": options.database,
        "deadlineSeconds": deadline,
        "evidence": options.evidence,
    }
    return {key: value for key, value in body.items() if value is not None}


def _from_stdin() -> str:
    data = sys.stdin.buffer.read(_MOST_STDIN_BYTES + 1)
    if len(data) > _MOST_STDIN_BYTES:
        raise CommandError(
            "The question on stdin is longer than 1 MB. Ask something shorter.",
            code=ExitCode.USAGE,
            reason="QuestionTooLong",
        )
    return _utf8(data).strip()


def _utf8(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CommandError(
            f"The question is no UTF-8 text (byte {error.start}). Convert it, for example with iconv.",
            code=ExitCode.USAGE,
            reason="InvalidUtf8",
        ) from error


async def _follow(
    client: RouterClient, workflow: str, body: Mapping[str, Any], watch: QueryWatch, *, quiet: bool
) -> Answer:
    live = Live(watch, console=stderr, refresh_per_second=8, transient=True)
    if not quiet and stderr.is_terminal:
        live.start()
    try:
        async with aclosing(client.ask(workflow, body)) as events:
            async for event in events:
                try:
                    data = json.loads(event.data)
                    if event.name == "query.finished":
                        return Answer.model_validate(data, extra="ignore")
                except (ValueError, ValidationError) as error:
                    raise CommandError(
                        f"The router at {client.url} sent an event that this version does not understand "
                        f"({event.name}). Use the `hexflow` of the router's version.",
                        code=ExitCode.UNREACHABLE,
                        reason="Rubbish",
                    ) from error
                watch.take(event.name, data)
    finally:
        live.stop()
    raise AssertionError("a stream ends with its answer or an error")  # pragma: no cover


def _show(answer: Answer, options: AskOptions) -> int:
    succeeded = answer.status is Status.SUCCEEDED
    if options.as_json:
        print_json(answer.data())
        return _code(answer)
    if options.show_sql and answer.sql:
        stderr.print(table.sql_block(answer.sql))
    if succeeded and answer.columns is not None:
        rows = answer.rows or ()
        stdout.print(table.rows_table(answer.columns, rows))
        if len(rows) > table.MOST_ROWS:
            stderr.print(
                Text(f"… and {len(rows) - table.MOST_ROWS} more rows; --json shows all.", style="dim")
            )
    if options.explain:
        stderr.print(table.explanation(answer, width=stderr.width))
    stderr.print(table.verdict(answer))
    if succeeded:
        return ExitCode.DONE
    message = answer.message or f"The question ended {answer.status.value}."
    print_error(CommandError(message, reason=answer.reason or answer.status.value))
    return _code(answer)


def _code(answer: Answer) -> ExitCode:
    if answer.status is Status.SUCCEEDED:
        return ExitCode.DONE
    return ExitCode.UNREACHABLE if answer.reason in _OUT_OF_REACH else ExitCode.FAILED
