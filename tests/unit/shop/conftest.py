"""One sample database for all tests that only read it."""

from pathlib import Path

import pytest

from hexflow_cli.sample import build_shop
from support.shop import Shop


@pytest.fixture(scope="session")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_shop(tmp_path_factory.mktemp("shop") / "shop.sqlite")


@pytest.fixture(scope="session")
def shop(path: Path) -> Shop:
    return Shop(path)
