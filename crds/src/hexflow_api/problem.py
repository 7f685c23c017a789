"""What is wrong with a resource, said so that its author can mend it."""

from collections.abc import Iterable
from dataclasses import dataclass

_SHOWN = 25


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
        return ": ".join(part for part in (where, self.object, self.path, self.message) if part)


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
