"""What is wrong with a workload or with a file that should hold one, and what to do about it."""

from dataclasses import dataclass


class InvalidWorkload(ValueError):
    """A workload cannot be as it was described; the message says what to give instead."""


@dataclass(frozen=True, slots=True)
class Where:
    """Point into a file."""

    file: str
    line: int | None = None
    """Counted from one; None for the file as a whole."""

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


class InvalidTrace(ValueError):
    """A file does not hold what it should; nothing of it was taken."""

    def __init__(self, where: Where, what: str, remedy: str) -> None:
        self.where = where
        self.what = what
        self.remedy = remedy
        super().__init__(f"{where}: {what}; {remedy}")

    def __reduce__(self) -> tuple[type["InvalidTrace"], tuple[Where, str, str]]:
        """Let it travel from a worker to whoever waits for its result."""
        return InvalidTrace, (self.where, self.what, self.remedy)
