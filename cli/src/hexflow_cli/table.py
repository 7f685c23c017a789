"""Tables of an answer: its rows, where its time went, what was considered. Data in, rich renderables out."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from hexflow_router.answer import Answer, CallReport, StageReport, Status

NARROW = 80
"""Columns of a terminal below which tables go without what matters least, so that no figure is cut."""
MOST_ROWS = 50
"""Rows of a result shown to a person; `--json` has all."""
_WIDEST_CELL = 60


def rows_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, most: int = MOST_ROWS) -> Table:
    """Show a result; numbers to the right, NULL apart from an empty text."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(columns):
        numeric = all(_is_number(row[index]) or row[index] is None for row in rows) and bool(rows)
        table.add_column(Text(column), justify="right" if numeric else "left", overflow="fold")
    for row in rows[:most]:
        table.add_row(*(_cell(value) for value in row))
    return table


def sql_block(sql: str) -> RenderableType:
    """Show a statement with its keywords coloured."""
    return Padding(Syntax(sql, "sql", theme="ansi_dark", background_color="default", word_wrap=True), (0, 2))


def seconds(value: float | None) -> str:
    """Write a duration with as many digits as a person needs; a dash where it is unknown."""
    if value is None:
        return "–"
    return f"{value:.0f} s" if value >= 100 else f"{value:.1f} s" if value >= 1 else f"{value:.2f} s"


def tokens(value: int | None) -> str:
    """Write a count of tokens; a dash where it is unknown."""
    if value is None:
        return "–"
    return f"{value / 1000:.1f}k" if value >= 10_000 else str(value)


def instances(calls: Iterable[CallReport]) -> str:
    """Write how many calls each instance served, the busiest first."""
    counts = Counter(call.instance for call in calls if call.instance)
    return ", ".join(f"{name} ×{count}" if count > 1 else name for name, count in counts.most_common())


def all_calls(answer: Answer) -> list[CallReport]:
    """Return the calls of every stage, in order."""
    return [call for stage in answer.stages for call in stage.calls]


def verdict(answer: Answer) -> Text:
    """Sum an answer up in one line: rows, seconds against the deadline, calls, instances, tokens."""
    calls = all_calls(answer)
    took, limit = seconds(answer.seconds), seconds(answer.deadline_seconds)
    if answer.seconds <= answer.deadline_seconds:
        deadline, colour = f"{took} of {limit}", "green"
    else:
        late = seconds(answer.seconds - answer.deadline_seconds)
        deadline, colour = f"{took}, {late} past its deadline of {limit}", "yellow"
    parts = [Text(deadline, style=colour)]
    if answer.status is Status.SUCCEEDED:
        count = len(answer.rows or ())
        more = " (more were cut off)" if answer.truncated else ""
        parts.insert(0, Text(f"{count} {'row' if count == 1 else 'rows'}{more}", style="bold"))
    where = instances(calls)
    count_text = f"{len(calls)} {'call' if len(calls) == 1 else 'calls'}" if calls else "no calls"
    parts.append(Text(f"{count_text} on {where}" if where else count_text))
    parts.append(Text(f"{tokens(answer.tokens.prompt)} + {tokens(answer.tokens.output)} tokens"))
    if answer.skipped:
        parts.append(Text(f"left out: {'; '.join(answer.skipped)}", style="yellow"))
    return Text(" · ").join(parts)


def explanation(answer: Answer, *, width: int) -> RenderableType:
    """Show where every call of an answer ran and when, and the statements considered, in a terminal of that width."""
    parts: list[RenderableType] = [_calls_table(answer.stages, width=width)]
    if answer.candidates:
        parts.append(_candidates_table(answer))
    return Group(*parts)


_CALL_COLUMNS = ("Budget", "Urgency", "Waited", "Took", "In", "Cached", "Out")
_LEAST_WIDTHS = {"Budget": 72, "Waited": 88, "Cached": 88}
"""Columns of a terminal that a figure needs to be shown, so that none of the others is cut."""


def _calls_table(stages: Sequence[StageReport], *, width: int) -> Table:
    shown = [name for name in _CALL_COLUMNS if width >= _LEAST_WIDTHS.get(name, 0)]
    table = _table("Calls")
    table.add_column("Stage and calls", overflow="fold")
    table.add_column("Instance", overflow="fold")
    for name in shown:
        table.add_column(name, justify="right", no_wrap=True)

    def add(name: RenderableType, instance: RenderableType, *figures: str) -> None:
        table.add_row(
            name,
            instance,
            *(figure for column, figure in zip(_CALL_COLUMNS, figures, strict=False) if column in shown),
        )

    for stage in stages:
        add(
            Text(stage.name, style="bold"),
            "" if stage.status == "Done" else Text(stage.status.lower(), style="yellow"),
            seconds(stage.budget_seconds),
            "",
            "",
            seconds(stage.seconds),
        )
        for call in stage.calls:
            add(
                f"  {_call_name(call)}",
                call.instance or Text(call.reason or call.status, style="yellow"),
                seconds(call.budget_seconds),
                "–" if call.urgency is None else f"{call.urgency:+.1f} s",
                seconds(call.queued_seconds),
                seconds(call.seconds),
                tokens(call.prompt_tokens),
                tokens(call.cached_tokens),
                tokens(call.output_tokens),
            )
    return table


def _call_name(call: CallReport) -> str:
    again = f", try {call.attempts}" if call.attempts > 1 else ""
    round_ = f", round {call.round + 1}" if call.round else ""
    return f"{call.task} {call.sibling + 1}{round_}{again}"


def _candidates_table(answer: Answer) -> Table:
    table = _table("Statements")
    table.add_column("")
    table.add_column("Votes", justify="right")
    table.add_column("Corrections", justify="right")
    table.add_column("Statement", overflow="fold")
    for candidate in answer.candidates:
        text = Text(" ".join((candidate.sql or "no statement").split()))
        if candidate.error:
            text.append(f"\n{candidate.error}", style="red")
        table.add_row(
            Text("✓", style="green") if candidate.chosen else "",
            str(candidate.votes),
            str(candidate.rounds),
            text,
        )
    return table


def _table(title: str) -> Table:
    return Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
        title=title,
        title_justify="left",
        title_style="bold",
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: Any) -> Text:
    if value is None:
        return Text("NULL", style="dim italic")
    text = str(value)
    if len(text) > _WIDEST_CELL:
        text = text[: _WIDEST_CELL - 1] + "…"
    return Text(text)
