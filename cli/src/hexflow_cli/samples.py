"""Where the files are that travel with the command: example resources, answer book, questions, the sample shop.

In the wheel everything lies in the package; in a checkout the example resources lie where the docs name them,
under `examples/laptop/`.
"""

import shutil
from pathlib import Path

import hexflow_cli.sample
from hexflow_cli.exitcode import CommandError, ExitCode

_PACKAGE = Path(hexflow_cli.sample.__file__).parent
BOOK = _PACKAGE / "book.yaml"
"""The answer book of the emulated models."""
QUESTIONS = _PACKAGE / "questions.yaml"
"""The questions that the book answers, with their checked answers."""


def laptop_resources() -> Path:
    """Return the folder of the example resources of laptop mode."""
    for folder in (_PACKAGE / "laptop", Path(__file__).parents[3] / "examples" / "laptop"):
        if folder.is_dir():
            return folder
    raise CommandError(
        "The example resources are missing from this installation. Install hexflow again, or name your own with -f.",
        code=ExitCode.ENVIRONMENT,
        reason="SampleMissing",
    )


def copy_laptop_resources(folder: Path) -> Path:
    """Copy the example resources to a new folder, where they may be changed, and return it."""
    shutil.copytree(laptop_resources(), folder)
    return folder
