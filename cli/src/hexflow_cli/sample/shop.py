"""Build the sample database: the same shop, row for row, on every machine and every Python.

It knows nothing of questions or models.
"""

import hashlib
import json
import os
import sqlite3
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Final

from hexflow_cli.sample import catalogue
from hexflow_cli.sample.dice import Dice
from hexflow_cli.sample.people import Row, customer_rows
from hexflow_cli.sample.trade import Trade

SEED: Final = 20250101

_GIFT_CARDS: Final = 15


def build_shop(path: Path) -> Path:
    """Write the sample database to ``path``, whole or not at all, in place of what was there.

    The folder must exist. The path is returned.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        _write(draft)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return path


def content_hash(path: Path) -> str:
    """Return the SHA-256 of what a database says: its DDL and rows, not the pages that SQLite laid them on."""
    digest = hashlib.sha256()
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        tables = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name")
        for name, ddl in tables.fetchall():
            digest.update(f"{ddl}\n".encode())
            for row in connection.execute(f'SELECT * FROM "{name}" ORDER BY rowid'):  # noqa: S608 - our own names
                digest.update(f"{json.dumps(row)}\n".encode())
    return digest.hexdigest()


def shop_rows() -> dict[str, list[Row]]:
    """Return every table's rows, tables in the order in which foreign keys allow them to be filled."""
    dice = Dice(SEED)
    customers = customer_rows(dice)
    products = list(enumerate(catalogue.PRODUCTS, 1))
    rows: dict[str, list[Row]] = {
        "countries": list(catalogue.COUNTRIES),
        "stores": list(catalogue.STORES),
        "employees": list(catalogue.EMPLOYEES),
        "customers": customers,
        "categories": list(catalogue.CATEGORIES),
        "suppliers": list(catalogue.SUPPLIERS),
        "products": [(number, *product[:6]) for number, product in products],
        "product_suppliers": [
            (number, supplier, cost, int(place == 0))
            for number, product in products
            for place, (supplier, cost) in enumerate(product[6])
        ],
        "tags": list(catalogue.TAGS),
        "product_tags": [(number, tag) for number, product in products for tag in product[7]],
        "coupons": list(catalogue.COUPONS),
    }
    rows |= Trade(dice=dice, customers=customers).rows()
    rows["stock"] = _stock(dice)
    return rows


def _stock(dice: Dice) -> list[Row]:
    """Count what lies in the open stores: a closed one has no shelves, a gift card needs none."""
    return [
        (store[0], number, 0 if dice.chance(12) else dice.below(25), (2, 3, 5, 8)[dice.below(4)])
        for store in catalogue.STORES
        if store[6] is None
        for number, product in enumerate(catalogue.PRODUCTS, 1)
        if product[5] is None and product[2] != _GIFT_CARDS and dice.chance(85)
    ]


def _write(path: Path) -> None:
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(files(__package__).joinpath("schema.sql").read_text("utf-8"))
        for table, rows in shop_rows().items():
            marks = ", ".join("?" * len(rows[0]))
            connection.executemany(f'INSERT INTO "{table}" VALUES ({marks})', rows)  # noqa: S608 - our own names
        connection.commit()
