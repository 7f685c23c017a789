"""The tables that the demo ends with: every answer, the policies side by side, where the time went."""

import math
from collections import Counter
from collections.abc import Callable, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hexflow_cli.report import Latency, Outcome, Report
from hexflow_cli.table import NARROW, all_calls
from hexflow_router.answer import CallReport


def answers_table(report: Report, *, width: int) -> Table:
    """Show each question with its statement, rows, time and instances, in a terminal of that width."""
    wide = width >= NARROW
    table = _table(f"Answers under {report.policy}, in emulated seconds", expand=True)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("Question and statement", ratio=1, no_wrap=True, overflow="ellipsis")
    table.add_column("Rows", justify="right", no_wrap=True)
    table.add_column("Seconds", justify="right", no_wrap=True)
    table.add_column("In time", no_wrap=True)
    if wide:
        table.add_column("Calls", justify="right", no_wrap=True)
        table.add_column("Instances", width=15)
    for outcome in report.outcomes:
        table.add_row(*_answer_cells(outcome)[: len(table.columns)])
    return table


def policies_table(reports: Sequence[Report]) -> Table:
    """Show the figures of each policy on the same burst, the gain in the last column."""
    two = len(reports) == 2
    table = _table("The same questions, the same GPUs, two policies" if two else "How long answers took")
    table.add_column("In emulated seconds", overflow="fold")
    for report in reports:
        table.add_column(report.policy, justify="right", no_wrap=True)
    if two:
        table.add_column("Gain", justify="right", no_wrap=True)
    _row(table, reports, "Half answered within (P50)", lambda r: r.overall.p50_seconds, _plain)
    _row(table, reports, "95 % answered within (P95)", lambda r: r.overall.p95_seconds, _plain)
    _row(table, reports, "Last answered after", lambda r: r.makespan_seconds, _plain)
    table.add_section()
    _shares(table, reports, "Answered in time (attainment)", lambda r: r.overall)
    for tenant in reports[0].by_tenant:
        _shares(table, reports, f"  of tenant {tenant}", lambda r, tenant=tenant: r.by_tenant[tenant])  # type: ignore[misc]
    return table


def stages_table(reports: Sequence[Report]) -> Table:
    """Show where a question's time went, stage by stage: by the clock, so parallel calls count once."""
    table = _table("Where a question's time went (mean emulated seconds)")
    table.caption = (
        f"Under {reports[0].policy}, of these seconds: waited for a GPU, then at the engine, on the longest chain of "
        "calls; SQL is the sum of statements that run side by side."
    )
    table.caption_justify = "left"
    table.add_column("Stage", overflow="fold")
    table.add_column("Calls", justify="right", no_wrap=True)
    for report in reports:
        table.add_column(report.policy, justify="right", overflow="fold")
    for name in ("waited", "engine", "SQL"):
        table.add_column(name, justify="right", no_wrap=True, style="dim")
    stages = [{stage.stage: stage for stage in report.stages} for report in reports]
    for name, first in stages[0].items():
        others = [found.get(name) for found in stages]
        table.add_row(
            name,
            str(first.calls),
            *(f"{stage.mean_seconds:.1f}" if stage else "–" for stage in others),
            f"{first.mean_waited_seconds:.2f}",
            f"{first.mean_served_seconds:.1f}",
            f"{first.mean_statement_seconds:.2f}",
        )
    table.add_section()
    totals = (sum(stage.mean_seconds for stage in found.values()) for found in stages)
    table.add_row("together", "", *(Text(f"{total:.1f}", style="bold") for total in totals), "", "", "")
    return table


def instances_table(reports: Sequence[Report], *, width: int) -> Table:
    """Show what each GPU did under each policy, in seconds a call, in a terminal of that width."""
    wide = width >= NARROW
    table = _table("What each GPU did (emulated seconds a call)")
    table.caption = (
        "Waited: at the router and in the engine's own queue. Cached: prompt tokens that needed no prefill."
    )
    table.caption_justify = "left"
    table.add_column("Instance", overflow="fold")
    if wide:
        table.add_column("GPU", no_wrap=True)
    for name in ("Calls", "Share", "Waited", "Prefill", "Decode", "Cached"):
        table.add_column(name, justify="right", no_wrap=True)
    for report in reports:
        table.add_row(Text(report.policy, style="bold"))
        total = sum(item.calls for item in report.instances) or 1
        for item in report.instances:
            calls = item.calls or 1
            waited = item.waited_seconds + item.engine.queued_seconds
            table.add_row(
                f"  {item.instance}",
                *([item.gpu_type] if wide else []),
                str(item.calls),
                f"{item.calls / total:.0%}",
                f"{waited / calls:.2f}",
                f"{item.engine.prefill_seconds / calls:.2f}",
                f"{item.engine.decode_seconds / calls:.2f}",
                f"{item.cached_tokens / item.prompt_tokens:.0%}" if item.prompt_tokens else "–",
            )
    return table


def conclusion(reports: Sequence[Report], *, time_scale: float) -> RenderableType:
    """Say in a few sentences what the tables say, and what of it is real."""
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
    lines.append(
        Text(
            f"Statements and rows are real. Seconds are emulated: the GPUs' time was kept {time_scale:g} times faster, "
            f"so a second of real work (SQL, HTTP, the scheduler) counts as {time_scale:g}. "
            "Other runs differ by a few seconds: real work never takes the same time twice.",
            style="dim",
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
        _places(calls),
    )


def _places(calls: Sequence[CallReport]) -> str:
    """Return the calls by instance in the space of a column, to be broken between two: `a100×5 l40s×2`."""
    counts = Counter(call.instance for call in calls if call.instance)
    return " ".join(f"{name.removesuffix('-0')}×{count}" for name, count in counts.most_common())


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


def _table(title: str, *, expand: bool = False) -> Table:
    return Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
        title=title,
        title_justify="left",
        title_style="bold",
        expand=expand,
    )
