"""How a subcommand runs and ends: with one paragraph for whatever goes wrong, and an exit code."""

import os
import sys
from collections.abc import Callable, Coroutine
from errno import ENOSPC
from typing import Any

import typer

from hexflow_cli.console import print_error, stderr
from hexflow_cli.exitcode import CommandError, ExitCode


def run_command(command: Callable[[], Coroutine[Any, Any, int]], *, as_json: bool) -> None:
    """Run what ``command`` returns so that a signal ends it in order, and leave with its exit code."""
    from hexflow_cli.interruption import run as run_interruptibly

    run_here(lambda: run_interruptibly(command()), as_json=as_json)


def run_here(command: Callable[[], int], *, as_json: bool) -> None:
    """Run a command that reckons and waits for nobody, and leave with its exit code; ctrl-C interrupts it where it is."""
    from hexflow_api import ResourceError

    try:
        code = command()
    except CommandError as error:
        print_error(error, as_json=as_json)
        code = error.code
    except ResourceError as error:
        wrong = CommandError(str(error), code=ExitCode.RESOURCES, reason="ResourcesInvalid")
        print_error(wrong, as_json=as_json)
        code = wrong.code
    except BrokenPipeError:  # the reader of our output has gone; there is nobody to tell
        sys.stderr.close()
        code = ExitCode.DONE
    except OSError as error:
        if error.errno != ENOSPC or error.filename is not None:
            raise
        # what is still in the buffer would fail once more at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        full = f"The output cannot be written ({error.strerror})."
        print_error(CommandError(full, code=ExitCode.ENVIRONMENT, reason="NotWritten"))
        code = ExitCode.ENVIRONMENT
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    if code == ExitCode.INTERRUPTED:
        stderr.print("Stopped.")
    raise typer.Exit(int(code))
