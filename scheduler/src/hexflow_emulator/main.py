"""The emulator's command: read the arguments, serve, say in one sentence what went wrong."""

import sys
from collections.abc import Sequence

from hexflow_emulator.arguments import parse
from hexflow_emulator.errors import EmulatorError
from hexflow_emulator.server import serve


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status: 0, 130 after an interrupt, 2 where it could not start."""
    try:
        options = parse(sys.argv[1:] if arguments is None else arguments)
        serve(options)
    except KeyboardInterrupt:
        return 130
    except EmulatorError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0
