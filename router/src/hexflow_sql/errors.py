"""What can go wrong between a question and its rows: few errors, each with a reason and a remedy.

``reason`` is a CamelCase word for programs, ``str(error)`` a sentence for people. No message ever holds
a credential.
"""


class SqlError(Exception):
    """Anything this package raises on purpose."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class DatabaseUnavailable(SqlError):
    """The database cannot be opened or read; the message says what to change."""


class StatementError(SqlError):
    """A statement gave no result."""


class StatementRefused(StatementError):
    """The guard does not let the statement through to the database (``guard.py`` lists the reasons)."""


class StatementFailed(StatementError):
    """The database refused the statement or could not finish it; the message is the database's own."""


class NoAnswer(SqlError):
    """The stages came to an end without rows: a typed outcome, not a defect."""


class NoStatement(NoAnswer):
    """No text of the model held a statement; the message quotes the beginning of one."""

    def __init__(self, message: str) -> None:
        super().__init__("NoStatement", message)


class Unanswerable(NoAnswer):
    """The model says that no statement over this schema answers the question."""

    def __init__(self, message: str) -> None:
        super().__init__("Unanswerable", message)


class AllCandidatesFailed(NoAnswer):
    """Every candidate still fails after its last round; the message quotes the last error."""

    def __init__(self, message: str) -> None:
        super().__init__("AllCandidatesFailed", message)


class StageTimedOut(NoAnswer):
    """The deadline passed in a stage that is set to fail then."""

    def __init__(self, message: str) -> None:
        super().__init__("StageTimedOut", message)
