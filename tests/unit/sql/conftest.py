"""A small real database for the stages' tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hexflow_sql import Database
from support.sql import a_database


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Database]:
    """Open a file with four customers and four orders."""
    database = a_database(tmp_path)
    yield database
    await database.close()
