"""Where the files are that travel with the command: example resources, answer book, questions, the sample shop.

In the wheel everything lies in the package; in a checkout the example resources lie where the docs name them,
under `examples/laptop/`.
"""

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

import hexflow_cli.sample
from hexflow_api.workflow import PAPER_STAGES
from hexflow_cli.exitcode import CommandError, ExitCode
from hexflow_emulator import AnswerBook, BookError

_PACKAGE = Path(hexflow_cli.sample.__file__).parent
BOOK = _PACKAGE / "book.yaml"
"""The answer book of the emulated models."""


def book(given: Path | None) -> Path:
    """Return the answer book to use; one of the user's own is read first, so that a mistake in it is told once."""
    if given is None:
        return BOOK
    try:
        AnswerBook.load(given)
    except BookError as error:
        raise CommandError(
            f"--book: {error}. examples/shop/README.md says how a book is made.",
            code=ExitCode.USAGE,
            reason="InvalidBook",
        ) from error
    return given


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


def copy_laptop_resources(folder: Path, *, policy: str | None = None) -> Path:
    """Copy the example resources to a new folder and return it.

    With a policy, workflows follow that one, and their stages do all their work even when they are late: then a
    comparison of policies compares the same work.
    """
    folder.mkdir()
    yaml = YAML()
    for path in sorted(laptop_resources().glob("*.yaml")):
        documents = list(yaml.load_all(path))
        for document in documents:
            if policy and document and document.get("kind") == "TextToSQLWorkflow":
                _compare_under(document["spec"], policy)
        with (folder / path.name).open("w", encoding="utf-8") as file:
            yaml.dump_all(documents, file)
    return folder


def _compare_under(spec: dict[str, Any], policy: str) -> None:
    spec.setdefault("scheduling", {})["policy"] = policy
    usual = [{"name": stage.name, "kind": stage.kind} for stage in PAPER_STAGES]
    spec["stages"] = [{**stage, "onTimeout": "Continue"} for stage in spec.get("stages") or usual]
