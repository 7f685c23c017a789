"""How the command `hexflow` ends: its exit codes and the one error that carries them.

This module must not import anything heavy: every command needs it, and `hexflow --help` should be quick.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """Say to a shell how a command ended; `docs/reference/cli.md` repeats this table."""

    DONE = 0
    """It did what was asked. A late answer is an answer: it says that it is late."""
    FAILED = 1
    """It ran, and the result is bad: a question without an answer, a demo whose rows differ."""
    USAGE = 2
    """The command line or the request is wrong: an unknown option, workflow or database, a bad number."""
    RESOURCES = 3
    """The resources are wrong: YAML, fields, references; `hexflow validate` shows all problems at once."""
    UNREACHABLE = 4
    """No router, no engine or no database could be reached."""
    ENVIRONMENT = 5
    """This machine does not allow it: a port in use, a process that does not start, a folder that cannot be written."""
    INTERRUPTED = 130
    """Ctrl-C; everything that was started has been stopped."""
    TERMINATED = 143
    """SIGTERM or SIGHUP; everything that was started has been stopped."""


class CommandError(Exception):
    """A command cannot go on; the text is one paragraph that says what to do instead."""

    def __init__(self, message: str, *, code: ExitCode = ExitCode.FAILED, reason: str = "Failed") -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        """A CamelCase word for programs, printed by `--json`."""
