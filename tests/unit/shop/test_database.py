"""The sample database is the same everywhere, and as awkward as a real one."""

import re
import sqlite3
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pytest

from hexflow_cli.sample import build_shop, content_hash
from hexflow_cli.sample.almanac import FIRST_DAY, LAST_DAY, utc_offset_minutes
from hexflow_cli.sample.catalogue import STORES
from hexflow_cli.sample.dice import Dice
from hexflow_cli.sample.shop import shop_rows
from support.shop import Shop, cents, local_day

CONTENT = "e7b72d084e29b21d04ef7108145068c9cb7cf782b25f977658ceca426415582f"
"""What the database says. A change of this line changes checked answers, too."""


def test_the_content_is_the_one_whose_answers_were_checked(path: Path) -> None:
    assert content_hash(path) == CONTENT


def test_two_builds_are_equal_byte_for_byte(path: Path, tmp_path: Path) -> None:
    assert build_shop(tmp_path / "again.sqlite").read_bytes() == path.read_bytes()


def test_dice_fall_the_same_way_on_every_python() -> None:
    dice = Dice(1)

    assert [dice.below(1000) for _ in range(5)] == [134, 847, 763, 255, 495]


def test_a_build_replaces_what_was_there_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "shop.sqlite"
    path.write_text("no database")

    build_shop(path)

    assert content_hash(path) == CONTENT
    assert [entry.name for entry in tmp_path.iterdir()] == ["shop.sqlite"]


def test_a_build_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "shop.sqlite"
    path.write_text("dear to somebody")
    monkeypatch.setattr("hexflow_cli.sample.shop.shop_rows", lambda: {"no such table": [(1,)]})

    with pytest.raises(sqlite3.OperationalError):
        build_shop(path)

    assert path.read_text() == "dear to somebody"
    assert [entry.name for entry in tmp_path.iterdir()] == ["shop.sqlite"]


def test_every_foreign_key_points_somewhere(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_there_are_more_than_twelve_tables_and_each_has_rows(shop: Shop) -> None:
    assert len(shop.tables) >= 12
    assert all(shop.tables.values())
    assert {name: len(rows) for name, rows in shop.tables.items()} == {
        name: len(rows) for name, rows in shop_rows().items()
    }


def test_names_hold_blanks_and_reserved_words(shop: Shop) -> None:
    columns = {column for rows in shop.tables.values() for column in rows[0]}

    assert {"order", "order items"} <= shop.tables.keys()
    assert {"from", "to", "loyalty tier", "percent off", "on hand", "reorder level"} <= columns


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("customers", "email"),
        ("customers", "newsletter"),
        ("customers", "loyalty tier"),
        ("coupons", "to"),
        ("employees", "manager_id"),
        ("order", "customer_id"),
        ("products", "weight_grams"),
        ("returns", "reason"),
        ("shipments", "delivered_at"),
        ("stores", "closed_on"),
        ("suppliers", "lead time days"),
    ],
)
def test_some_values_are_missing(shop: Shop, table: str, column: str) -> None:
    values = [row[column] for row in shop[table]]

    assert None in values
    assert any(value is not None for value in values)


def test_texts_hold_quotes_percent_signs_and_letters_beyond_ascii(shop: Shop) -> None:
    texts = [
        value
        for rows in shop.tables.values()
        for row in rows
        for value in row.values()
        if isinstance(value, str)
    ]

    for mark in ("'", '"', "%", "ß", "ê", "東京"):
        assert any(mark in text for text in texts), mark


def test_people_share_names_and_type_an_address_in_two_ways(shop: Shop) -> None:
    names = Counter((c["first_name"], c["last_name"]) for c in shop["customers"])
    exact = Counter(c["email"] for c in shop["customers"] if c["email"])
    folded = Counter(c["email"].lower() for c in shop["customers"] if c["email"])

    assert max(names.values()) > 1
    assert max(exact.values()) == 1
    assert max(folded.values()) == 2


def test_an_order_that_was_not_cancelled_is_paid_or_will_be(shop: Shop) -> None:
    due: Counter[int] = Counter()
    for order, line in shop.sold():
        due[order["order_id"]] += cents(line)
    paid: Counter[int] = Counter()
    for payment in shop["payments"]:
        assert (payment["paid_at"] is not None) == (payment["state"] == "captured")
        if payment["state"] != "failed":
            paid[payment["order_id"]] += payment["amount_cents"]

    assert paid == due


def test_money_is_whole_cents_and_nobody_gets_back_more_than_they_sent(shop: Shop) -> None:
    lines = {(line["order_id"], line["line"]): line for line in shop["order items"]}

    for item in shop["returns"]:
        line = lines[item["order_id"], item["line"]]
        assert 0 < item["quantity"] <= line["quantity"]
        assert item["refund_cents"] * line["quantity"] == cents(line) * item["quantity"]


def test_every_instant_has_one_form_and_lies_in_the_shop_s_time(shop: Shop) -> None:
    form = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
    instants = [
        row[column]
        for table, column in (
            ("order", "placed_at"),
            ("payments", "paid_at"),
            ("shipments", "shipped_at"),
            ("shipments", "delivered_at"),
        )
        for row in shop[table]
        if row[column] is not None
    ]

    assert all(form.fullmatch(instant) for instant in instants)
    assert FIRST_DAY.isoformat() <= min(instants)
    assert max(instants) < (LAST_DAY + timedelta(days=1)).isoformat()


def test_some_orders_have_another_day_on_the_store_s_clock_than_in_utc(shop: Shop) -> None:
    assert sum(local_day(order) != order["placed_at"][:10] for order in shop["order"]) > 50


def test_offsets_are_those_of_the_time_zone_database() -> None:
    try:
        zones = {store[0]: ZoneInfo(store[4]) for store in STORES}
    except ZoneInfoNotFoundError:
        pytest.skip("this machine has no time-zone database to compare with")

    for hours in range(0, 24 * 546, 7):
        instant = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(hours=hours)
        for store, zone in zones.items():
            offset = instant.astimezone(zone).utcoffset()
            assert offset == timedelta(minutes=utc_offset_minutes(store, instant)), (store, instant)
