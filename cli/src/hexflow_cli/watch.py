"""A query while it runs, as its events tell it: stages, calls on their instances, statements tried.

Events go in with `take`; rich asks for the picture whenever it draws. Unknown events and fields are no concern of
this module, so that an older command can watch a newer router.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

_MARKS = {"Done": ("✓", "green"), "Skipped": ("↷", "yellow"), "Failed": ("✗", "red"), "Pending": ("·", "dim")}


@dataclass(slots=True)
class _Stage:
    status: str = "Running"
    seconds: float | None = None
    running: dict[str, str] = field(default_factory=dict)
    """Calls under way and their instances."""
    finished: list[str] = field(default_factory=list)
    """Instances of the calls that are done."""
    statements: int = 0
    failed_statements: int = 0


@dataclass(slots=True, kw_only=True)
class QueryWatch:
    """Hold the picture of one query."""

    question: str
    elapsed: Callable[[], float]
    """Seconds since the question was asked."""
    deadline_seconds: float | None = None
    query_id: str = ""
    stages: dict[str, _Stage] = field(default_factory=dict)
    _spinner: Spinner = field(default_factory=lambda: Spinner("dots", style="cyan"))

    def take(self, name: str, data: Mapping[str, Any]) -> None:
        """Take one event of the query."""
        match name:
            case "query.accepted":
                self.query_id = str(data.get("id", ""))
                self.deadline_seconds = data.get("deadlineSeconds", self.deadline_seconds)
            case "stage.started":
                self._stage(data).status = "Running"
            case "stage.finished":
                stage = self._stage(data)
                stage.status = str(data.get("status", "Done"))
                stage.seconds = data.get("seconds")
                stage.running.clear()
            case "call.placed":
                self._stage(data).running[str(data.get("id"))] = str(data.get("instance") or "?")
            case "call.finished":
                stage = self._stage(data)
                instance = stage.running.pop(str(data.get("id")), None)
                if instance and data.get("status") == "Done":
                    stage.finished.append(instance)
            case "statement.tried":
                stage = self._stage(data)
                stage.statements += 1
                stage.failed_statements += bool(data.get("error"))

    @property
    def current(self) -> str:
        """Return the stage that is under way, or the last one."""
        running = [name for name, stage in self.stages.items() if stage.status == "Running"]
        return running[0] if running else next(reversed(self.stages), "")

    @property
    def instances(self) -> Counter[str]:
        """Return the calls under way by instance."""
        return Counter(instance for stage in self.stages.values() for instance in stage.running.values())

    def __rich__(self) -> RenderableType:
        """Draw the query."""
        grid = Table.grid(padding=(0, 1))
        for name, stage in self.stages.items():
            mark: RenderableType = self._spinner
            if stage.status in _MARKS:
                sign, colour = _MARKS[stage.status]
                mark = Text(sign, style=colour)
            grid.add_row(mark, Text(name), Text(_calls(stage)), Text(_seconds(stage), style="dim"))
        left = "" if self.deadline_seconds is None else f" of {self.deadline_seconds:g} s"
        return Group(Text(f"{self.elapsed():.1f} s{left}", style="bold"), grid)

    def _stage(self, data: Mapping[str, Any]) -> _Stage:
        return self.stages.setdefault(str(data.get("stage") or self.current or "?"), _Stage())


def _calls(stage: _Stage) -> str:
    done = len(stage.finished)
    parts = []
    if stage.running:
        where = ", ".join(
            f"{name} ×{n}" if n > 1 else name for name, n in Counter(stage.running.values()).items()
        )
        parts.append(f"{done} of {done + len(stage.running)} calls done, on {where}")
    elif done:
        where = ", ".join(f"{name} ×{n}" if n > 1 else name for name, n in Counter(stage.finished).items())
        parts.append(f"{done} {'call' if done == 1 else 'calls'} on {where}")
    if stage.statements:
        bad = f", {stage.failed_statements} failed" if stage.failed_statements else ""
        parts.append(
            f"{stage.statements} {'statement' if stage.statements == 1 else 'statements'} tried{bad}"
        )
    return "; ".join(parts)


def _seconds(stage: _Stage) -> str:
    return "" if stage.seconds is None else f"{stage.seconds:.1f} s"
