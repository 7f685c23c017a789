"""`hexflow validate`: read resources as the API server, the operator and the router would, and show everything that is wrong."""

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from hexflow_api import ResourceError, laptop_warnings, load_resources
from hexflow_cli.console import print_json, say, stdout
from hexflow_cli.exitcode import ExitCode


def validate(paths: Sequence[Path], *, secrets_elsewhere: bool, as_json: bool) -> int:
    """Check the resources under the paths and return the exit code; the path ``-`` is stdin.

    Resources whose Secrets are elsewhere are meant for a cluster: then nothing is said of what a laptop leaves out.
    """
    try:
        resources = load_resources(paths, secrets_elsewhere=secrets_elsewhere, stdin=sys.stdin.buffer)
    except ResourceError as error:
        if as_json:
            print_json(
                {
                    "valid": False,
                    "problems": [
                        {
                            "file": str(problem.file),
                            "line": problem.line,
                            "object": problem.object,
                            "path": problem.path,
                            "message": problem.message,
                        }
                        for problem in error.problems
                    ],
                }
            )
        else:
            say(Text(str(error)))
        return ExitCode.RESOURCES
    warnings = [] if secrets_elsewhere else laptop_warnings(resources)
    objects = [
        *(f"GPUPool/{pool.metadata.name}" for pool in resources.pools),
        *(f"TextToSQLWorkflow/{workflow.metadata.name}" for workflow in resources.workflows),
    ]
    if as_json:
        print_json({"valid": True, "objects": objects, "warnings": warnings})
        return ExitCode.DONE
    for name in objects:
        stdout.print(Text.assemble(("✓ ", "green"), name))
    for warning in warnings:
        say(Text.assemble(("! ", "yellow"), warning))
    return ExitCode.DONE
