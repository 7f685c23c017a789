"""The command `hexflow`: laptop mode, questions, the demo, and doors to the parts that have their own commands.

It may import everything below it, each subcommand only when it is used (docs/adr/0004), and nothing imports it.
"""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; the process ends with one of the exit codes of `exitcode.py`."""
    try:
        from hexflow_cli.app import run

        run()
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if not package or package.startswith("hexflow"):
            raise
        from hexflow_cli.exitcode import ExitCode

        sys.stderr.write(
            f"Error: this command needs the package {package}, which is not installed. "
            "Install all that the command line uses with: pip install 'hexflow[cli]'\n"
        )
        sys.exit(ExitCode.ENVIRONMENT)
