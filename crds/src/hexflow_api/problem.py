"""What is wrong with a resource, said so that its author can mend it."""

from collections.abc import Iterable
from dataclasses import dataclass

_SHOWN = 25
_LONGEST = 800


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Say what is wrong, where, and what to write instead."""

    message: str
    """What is wrong and its remedy."""
    file: str = ""
    line: int | None = None
    """Line in ``file``, counted from one."""
    object: str = ""
    """Kind and name, such as ``GPUPool a100``."""
    path: str = ""
    """Field in the resource's own words, such as ``spec.stages[1].after[0]``."""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.file and self.line else self.file
        return ": ".join(_printable(part) for part in (where, self.object, self.path, self.message) if part)


def _printable(text: str) -> str:
    """Return ``text`` in one line, short enough to read, with what would move a terminal's cursor written out."""
    shown = "".join(each if each.isprintable() else repr(each)[1:-1] for each in text[:_LONGEST])
    return shown if len(text) <= _LONGEST else f"{shown}…"


class ResourceError(ValueError):
    """Resources cannot be used; ``problems`` holds everything that is wrong, not just the first thing."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = list(problems)
        super().__init__(self._text())

    def _text(self) -> str:
        if len(self.problems) == 1:
            return str(self.problems[0])
        lines = [f"{len(self.problems)} problems:", *(f"  {problem}" for problem in self.problems[:_SHOWN])]
        if len(self.problems) > _SHOWN:
            lines.append(f"  … and {len(self.problems) - _SHOWN} more")
        return "\n".join(lines)
