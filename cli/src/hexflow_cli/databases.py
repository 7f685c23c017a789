"""The databases of a laptop's workflows: the sample shop is built where it is missing, others must be there.

A cluster reports an absent database as a condition and waits; somebody at a laptop is better served by being told
before anything starts.
"""

import asyncio
import sqlite3
from pathlib import Path

from hexflow_api import Database, Resources, TextToSQLWorkflow
from hexflow_api.secret import SQLITE_SCHEME, absolute_dsn
from hexflow_cli.exitcode import CommandError, ExitCode
from hexflow_cli.sample.shop import build_shop
from hexflow_sql import DatabaseUnavailable, open_database

SHOP_FILE = "shop.sqlite"
"""The name by which the sample shop is known; it is built where a workflow names it and it is missing."""


async def check_databases(resources: Resources) -> None:
    """Build the sample shop where it is missing, and read every database's schema once. Raises CommandError."""
    for workflow in resources.workflows:
        for database in workflow.spec.databases:
            await _check(workflow, database, resources)


async def _check(workflow: TextToSQLWorkflow, database: Database, resources: Resources) -> None:
    reference = database.dsn_secret_ref
    secret = resources.secret(reference.name, namespace=workflow.metadata.namespace)
    if secret is None or reference.key not in secret.data:
        return  # the resources' own rules have told it, or the secret is elsewhere
    address = absolute_dsn(secret.data[reference.key], folder=secret.folder)
    await asyncio.to_thread(_build_missing_shop, address)
    try:
        opened = open_database(
            name=database.name, dialect=database.dialect, dsn=address, base_dir=secret.folder
        )
        try:
            await opened.schema()
        finally:
            await opened.close()
    except DatabaseUnavailable as error:
        raise CommandError(
            f"TextToSQLWorkflow {workflow.name}: {error} Its address is the key {reference.key} of the Secret "
            f"{reference.name}.",
            code=ExitCode.RESOURCES,
            reason="DatabaseUnavailable",
        ) from error


def _build_missing_shop(address: str) -> None:
    file = Path(address.removeprefix(SQLITE_SCHEME))
    named = address.startswith(SQLITE_SCHEME) and file.name == SHOP_FILE
    if not named or not file.parent.is_dir() or file.exists():
        return
    try:
        build_shop(file)
    except (OSError, sqlite3.Error) as error:
        raise CommandError(
            f"The sample shop cannot be built as {file} ({error}). Let the folder be written, or put the file there "
            "yourself.",
            code=ExitCode.ENVIRONMENT,
            reason="ShopNotBuilt",
        ) from error
