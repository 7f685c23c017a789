"""The command `hexflow`: laptop mode, questions, the demo, and doors to the parts that have their own commands.

It may import everything below it, each subcommand only when it is used (docs/adr/0004), and nothing imports it.
"""

__all__ = ["main"]


def main() -> None:
    """Run the command line; the process ends with one of the exit codes of `exitcode.py`."""
    from hexflow_cli.app import run

    run()
