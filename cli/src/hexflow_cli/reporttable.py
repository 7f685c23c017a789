"""Reports on a terminal: the sentences, facts and tables of a page, without its charts."""

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from hexflow_simulator.report import Report, Table


def show_report(report: Report, console: Console) -> None:
    """Print everything of a report that is text, the answer last: that is where people look."""
    for word, meaning in report.facts:
        console.print(Text.assemble((f"{word}: ", "dim"), meaning))
    for table in report.tables:
        console.print()
        console.print(rich_table(table))
    for note in report.notes:
        console.print(Text(f"· {note}", style="dim"))
    if report.summary:
        console.print()
    for paragraph in report.summary:
        console.print(Text(paragraph, style="bold"))


def rich_table(table: Table) -> RichTable:
    """Return a table for a terminal, its best rows marked."""
    made = RichTable(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
        title=table.title,
        title_justify="left",
        title_style="bold",
        caption=table.note or None,
        caption_justify="left",
    )
    for column in table.columns:
        made.add_column(
            Text(column.name),
            justify="right" if column.numbers else "left",
            no_wrap=not column.numbers,
            overflow="fold",
        )
    for number, row in enumerate(table.rows):
        best = number in table.best
        first, *others = row
        mark = ("▶ " if best else "  ") if table.best else ""
        cells = [Text(f"{mark}{first}"), *(Text(cell) for cell in others)]
        made.add_row(*cells, style="bold green" if best else "dim" if number in table.faint else "")
    return made
