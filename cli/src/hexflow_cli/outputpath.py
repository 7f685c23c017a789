"""Whether a result can be written where it is wanted, asked before the work that makes it."""

import os
from pathlib import Path

from hexflow_cli.exitcode import CommandError, ExitCode


def refuse_unwritable_file(path: Path | None) -> None:
    """Raise CommandError unless a file can be written to ``path``, or None is wanted."""
    if path is None:
        return
    _refuse_unwritable_parent(path)
    if path.is_dir():
        raise CommandError(f"{path} is a folder; name a file in it.", code=ExitCode.USAGE, reason="IsFolder")


def refuse_unwritable_folder(path: Path | None) -> None:
    """Raise CommandError unless files can be written into the folder ``path``, made if need be, or None is wanted."""
    if path is None:
        return
    if not path.exists():
        _refuse_unwritable_parent(path)
    elif not path.is_dir():
        raise CommandError(f"{path} is a file; name a folder.", code=ExitCode.USAGE, reason="NotAFolder")
    elif not os.access(path, os.W_OK | os.X_OK):
        raise _no_rights(path)


def _refuse_unwritable_parent(path: Path) -> None:
    if not path.parent.is_dir():
        raise CommandError(
            f"There is no folder {path.parent} to write {path.name} into; make it, or name another.",
            code=ExitCode.USAGE,
            reason="NoFolder",
        )
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise _no_rights(path.parent)


def _no_rights(folder: Path) -> CommandError:
    return CommandError(
        f"You have no right to write into the folder {folder}; name another.",
        code=ExitCode.ENVIRONMENT,
        reason="NotWritable",
    )
