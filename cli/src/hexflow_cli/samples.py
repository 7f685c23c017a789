"""Where the files are that travel with the command: example resources, answer book, questions, the sample shop.

In the wheel everything lies in the package; in a checkout the example resources lie where the docs name them,
under `examples/laptop/`.
"""

from pathlib import Path

from ruamel.yaml import YAML

import hexflow_cli.sample
from hexflow_api import Resources
from hexflow_api.secret import SQLITE_SCHEME, absolute_dsn
from hexflow_cli.exitcode import CommandError, ExitCode
from hexflow_cli.sample import shop

_PACKAGE = Path(hexflow_cli.sample.__file__).parent
SHOP_FILE = "shop.sqlite"
"""The name by which the sample shop is known; it is built where a workflow names it and it is missing."""
BOOK = _PACKAGE / "book.yaml"
"""The answer book of the emulated models."""


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
    """Copy the example resources to a new folder, with another policy if one is given, and return the folder."""
    folder.mkdir()
    yaml = YAML()
    for path in sorted(laptop_resources().glob("*.yaml")):
        documents = list(yaml.load_all(path))
        for document in documents:
            if policy and document and document.get("kind") == "TextToSQLWorkflow":
                document["spec"].setdefault("scheduling", {})["policy"] = policy
        with (folder / path.name).open("w", encoding="utf-8") as file:
            yaml.dump_all(documents, file)
    return folder


def build_missing_shop(resources: Resources) -> None:
    """Build the sample shop wherever a workflow looks for it and nothing lies; raise CommandError for other gaps."""
    for workflow in resources.workflows:
        for database in workflow.spec.databases:
            secret = resources.secret(database.dsn_secret_ref.name, namespace=workflow.metadata.namespace)
            dsn = secret.data.get(database.dsn_secret_ref.key, "") if secret else ""
            address = absolute_dsn(dsn, folder=secret.folder) if secret else ""
            file = Path(address.removeprefix(SQLITE_SCHEME))
            if not address.startswith(SQLITE_SCHEME) or not file.is_absolute() or file.exists():
                continue
            if file.name != SHOP_FILE or not file.parent.is_dir():
                raise CommandError(
                    f"Database {database.name} of TextToSQLWorkflow {workflow.name}: there is no file {file}. Put it "
                    f"there, or correct the key {database.dsn_secret_ref.key} of the Secret "
                    f"{database.dsn_secret_ref.name}.",
                    code=ExitCode.RESOURCES,
                    reason="DatabaseMissing",
                )
            shop.build_shop(file)
