"""Options that several subcommands have."""

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Write JSON to stdout, for a program to read.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes.", show_default="one for each core")]
