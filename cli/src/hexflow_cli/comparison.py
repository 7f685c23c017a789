"""The tables that the demo ends with: every answer, the policies side by side, where the time went."""

import math
from collections.abc import Callable, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hexflow_cli.report import Latency, Outcome, Report
from hexflow_cli.table import all_calls, instances, tokens


def answers_table(report: Report) -> Table:
    """Show each question with its statement, rows, time and instances."""
    table = _table(f"Answers under {report.policy}")
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("Question and statement", ratio=3, overflow="ellipsis")
    table.add_column("Rows", justify="right", no_wrap=True)
    table.add_column("Seconds", justify="right", no_wrap=True)
    table.add_column("In time", no_wrap=True)
    table.add_column("Calls", justify="right", no_wrap=True)
    table.add_column("Instances", ratio=1, overflow="fold")
    for outcome in report.outcomes:
        table.add_row(*_answer_cells(outcome))
    return table


def policies_table(reports: Sequence[Report]) -> Table:
    """Show the figures of each policy on the same burst, the gain in the last column."""
    table = _table("The same questions, the same GPUs, two policies")
    table.add_column("Emulated seconds", no_wrap=True)
    for report in reports:
        table.add_column(report.policy, justify="right", no_wrap=True)
    if len(reports) == 2:
        table.add_column("Gain", justify="right", no_wrap=True)
    _row(table, reports, "Half were answered within (P50)", lambda r: r.overall.p50_seconds, _plain)
    _row(table, reports, "95 % were answered within (P95)", lambda r: r.overall.p95_seconds, _plain)
    _row(table, reports, "The last was answered after", lambda r: r.makespan_seconds, _plain)
    table.add_section()
    _shares(table, reports, "Answered in time", lambda r: r.overall)
    for tenant in reports[0].by_tenant:
        _shares(table, reports, f"  of tenant {tenant}", lambda r, tenant=tenant: r.by_tenant[tenant])  # type: ignore[misc]
    return table


def stages_table(reports: Sequence[Report]) -> Table:
    """Show where a question's time went, stage by stage, on its longest chain of calls."""
    table = _table("Where a question's time went (mean seconds on the longest chain of calls)")
    table.add_column("Stage", no_wrap=True)
    table.add_column("Calls", justify="right")
    for report in reports:
        table.add_column(Text(f"{report.policy}\nwaited"), justify="right", no_wrap=True)
        table.add_column("\nserved", justify="right", no_wrap=True)
        table.add_column("\nSQL, rest", justify="right", no_wrap=True)
    for index, stage in enumerate(reports[0].stages):
        cells: list[str] = []
        for report in reports:
            other = next((item for item in report.stages if item.stage == stage.stage), None)
            cells += (
                [
                    f"{other.mean_waited_seconds:.1f}",
                    f"{other.mean_served_seconds:.1f}",
                    f"{other.mean_other_seconds:.1f}",
                ]
                if other
                else ["–", "–", "–"]
            )
        table.add_row(stage.stage, str(stage.calls), *cells, end_section=index == len(reports[0].stages) - 1)
    return table


def instances_table(report: Report) -> Table:
    """Show what each instance did."""
    table = _table(f"What each GPU did under {report.policy}")
    table.add_column("Instance", no_wrap=True)
    table.add_column("GPU", no_wrap=True)
    for name in ("Calls", "Questions", "Prompt tokens", "of them cached", "Output tokens", "Seconds a call"):
        table.add_column(name, justify="right")
    for item in report.instances:
        cached = item.cached_tokens / item.prompt_tokens if item.prompt_tokens else 0.0
        table.add_row(
            item.instance,
            item.gpu_type,
            str(item.calls),
            str(item.questions),
            tokens(item.prompt_tokens),
            f"{cached:.0%}",
            tokens(item.output_tokens),
            f"{item.served_seconds / item.calls:.1f}" if item.calls else "–",
        )
    return table


def conclusion(reports: Sequence[Report]) -> RenderableType:
    """Say in a sentence or two what the tables say."""
    first, total = reports[0], len(reports[0].outcomes)
    lines = [Text(f"{total - len(first.wrong)} of {total} answers equal the checked rows.", style="bold")]
    if len(reports) == 2:
        second = reports[1]
        lines.append(
            Text(
                f"{first.policy} answered {first.overall.met} of {total} in time, {second.policy} {second.overall.met}; "
                f"its P95 is {_gain(second.overall.p95_seconds, first.overall.p95_seconds)}."
            )
        )
    return Group(*lines)


def wrong_table(report: Report) -> Table:
    """Show the questions whose rows differ from the checked answer."""
    table = _table(f"Rows that differ from the checked answer under {report.policy}")
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("Question", overflow="fold")
    table.add_column("What came", overflow="fold")
    for outcome in report.wrong:
        answer = outcome.answer
        what = (
            outcome.failure
            or (answer.message if answer else "")
            or (answer.sql if answer else "")
            or "nothing"
        )
        table.add_row(str(outcome.number), outcome.question, Text(what, style="red"))
    return table


def _answer_cells(outcome: Outcome) -> tuple[RenderableType, ...]:
    answer = outcome.answer
    statement = " ".join((answer.sql or "").split()) if answer else ""
    what = Text(outcome.question, style="bold")
    what.append(f"\n{statement or outcome.failure}", style="not bold dim")
    count = str(len(answer.rows)) if answer and answer.rows is not None else "–"
    mark = ("✓", "green") if outcome.right else ("✗", "bold red")
    calls = all_calls(answer) if answer else []
    return (
        str(outcome.number),
        what,
        Text.assemble(f"{count} ", mark),
        _plain(outcome.seconds),
        Text("yes", style="green")
        if outcome.met
        else Text("late" if outcome.answer else "no", style="yellow"),
        str(len(calls)),
        instances(calls),
    )


def _row(
    table: Table,
    reports: Sequence[Report],
    title: str,
    figure: Callable[[Report], float],
    write: Callable[[float], str],
) -> None:
    values = [figure(report) for report in reports]
    gain = [_gain(values[1], values[0])] if len(values) == 2 else []
    table.add_row(title, *(write(value) for value in values), *gain)


def _shares(table: Table, reports: Sequence[Report], title: str, figure: Callable[[Report], Latency]) -> None:
    values = [figure(report) for report in reports]
    cells = [f"{value.met} of {value.questions} ({value.attainment:.0%})" for value in values]
    gain = [f"{(values[0].met - values[1].met):+d}"] if len(values) == 2 else []
    table.add_row(title, *cells, *gain)


def _gain(before: float, after: float) -> str:
    if not (math.isfinite(before) and math.isfinite(after)) or after <= 0:
        return "–"
    return f"{before / after:.2f}× shorter" if before >= after else f"{after / before:.2f}× longer"


def _plain(value: float) -> str:
    return f"{value:.1f}" if math.isfinite(value) else "–"


def _table(title: str) -> Table:
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left", title_style="bold")
