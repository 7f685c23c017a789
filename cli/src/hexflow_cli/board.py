"""The live picture of a burst: the fleet on top, the questions below, the running ones first.

It shows as many questions as the terminal has lines for. Where stderr is no terminal it is not drawn at all; then
each answer is one line (`line`).
"""

from collections import Counter
from dataclasses import dataclass, field

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from hexflow_cli.report import Outcome
from hexflow_cli.table import all_calls, seconds
from hexflow_cli.watch import QueryWatch
from hexflow_router.answer import Status

_WIDEST_BAR = 24


@dataclass(slots=True)
class _Line:
    tenant: str
    watch: QueryWatch
    outcome: Outcome | None = None


@dataclass(slots=True, kw_only=True)
class BurstBoard:
    """Hold the picture of a burst."""

    policy: str
    total: int
    gpus: dict[str, str]
    """GPU type of each instance, in the order to show."""
    lines: dict[int, _Line] = field(default_factory=dict)

    def ask(self, number: int, *, tenant: str, watch: QueryWatch) -> None:
        """Add a question that was asked just now."""
        self.lines[number] = _Line(tenant, watch)

    def answer(self, outcome: Outcome) -> None:
        """Note what became of a question."""
        self.lines[outcome.number].outcome = outcome

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the burst in the height there is."""
        finished = [line.outcome for line in self.lines.values() if line.outcome]
        met = sum(outcome.met for outcome in finished)
        yield Text.assemble(
            (self.policy, "bold cyan"),
            f"   {len(self.lines)} of {self.total} questions asked · {len(finished)} answered · ",
            (f"{met} in time", "green" if met == len(finished) else "yellow"),
        )
        yield self._fleet()
        room = max(3, (options.height or console.height) - len(self.gpus) - 6)
        yield self._questions(room)

    def _fleet(self) -> Table:
        running: Counter[str] = Counter()
        for line in self.lines.values():
            if line.outcome is None:
                running.update(line.watch.instances)
        grid = Table.grid(padding=(0, 2))
        for name in dict.fromkeys((*self.gpus, *sorted(running))):
            count = running[name]
            bar = "█" * min(count, _WIDEST_BAR)
            grid.add_row(
                Text(name, style="bold"),
                self.gpus.get(name, ""),
                Text(f"{count:>3} calls"),
                Text(bar, style="cyan"),
            )
        return grid

    def _questions(self, room: int) -> Table:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True, show_edge=False)
        table.add_column("#", justify="right", no_wrap=True, width=2)
        table.add_column("Tenant", no_wrap=True, max_width=10, overflow="ellipsis")
        table.add_column("Question", no_wrap=True, overflow="ellipsis", ratio=1)
        table.add_column("Now", no_wrap=True, width=20, overflow="ellipsis")
        table.add_column("Seconds", justify="right", no_wrap=True, width=11)
        running = [(number, line) for number, line in self.lines.items() if line.outcome is None]
        ended = [(number, line) for number, line in reversed(self.lines.items()) if line.outcome is not None]
        for number, line in (*running, *ended)[:room]:
            table.add_row(str(number), line.tenant, Text(line.watch.question), _now(line), _time(line))
        return table


def line(outcome: Outcome) -> Text:
    """Return one line about an answer, for where no board is drawn."""
    state, style = _verdict(outcome)
    calls = len(all_calls(outcome.answer)) if outcome.answer else 0
    return Text.assemble(
        f"{outcome.number:>3}  {outcome.tenant:<10} ",
        (f"{state:<14}", style),
        f" {seconds(outcome.answer.seconds if outcome.answer else None):>7}  {calls:>2} calls  {outcome.question}",
    )


def _now(line: _Line) -> Text:
    if line.outcome is None:
        return Text(line.watch.current or "accepted", style="cyan")
    state, style = _verdict(line.outcome)
    return Text(state, style=style)


def _time(line: _Line) -> Text:
    deadline = line.watch.deadline_seconds
    taken = line.watch.elapsed()
    if line.outcome is not None:
        taken = line.outcome.answer.seconds if line.outcome.answer else taken
    late = deadline is not None and taken > deadline
    limit = "" if deadline is None else f" of {deadline:g} s"
    return Text(f"{taken:.0f}{limit}", style="yellow" if late else "")


def _verdict(outcome: Outcome) -> tuple[str, str]:
    answer = outcome.answer
    if answer is None or answer.status is not Status.SUCCEEDED:
        return f"✗ {(answer.reason if answer else None) or 'no answer'}", "bold red"
    if not outcome.right:
        return "✗ wrong rows", "bold red"
    return ("✓ in time", "green") if outcome.met else ("✓ late", "yellow")
