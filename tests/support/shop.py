"""Answers to the sample's questions worked out in plain Python, without SQL, over the rows of the database.

They share nothing with the statements that they check: no date function of a database, no join, no NULL logic.
"""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

Record = Mapping[str, Any]
Answer = list[tuple[Any, ...]]


class Shop:
    """Hold the sample database's rows as dictionaries, and what an accountant would look up in them."""

    def __init__(self, path: Path) -> None:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            names = [
                row["name"]
                for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            ]
            self.tables = {
                name: [dict(row) for row in connection.execute(f'SELECT * FROM "{name}"')] for name in names
            }

    def __getitem__(self, table: str) -> list[dict[str, Any]]:
        return self.tables[table]

    def by(self, table: str, key: str) -> dict[Any, dict[str, Any]]:
        """Index a table by its key."""
        return {row[key]: row for row in self[table]}

    def sold(self) -> Iterable[tuple[Record, Record]]:
        """Yield each line of an order that was not cancelled, with its order."""
        orders = self.by("order", "order_id")
        for line in self["order items"]:
            order = orders[line["order_id"]]
            if order["status"] != "cancelled":
                yield order, line


def local_day(order: Record) -> str:
    """Return the day on the store's clock when an order was placed."""
    placed = datetime.strptime(order["placed_at"], "%Y-%m-%dT%H:%M:%S%z")
    return (placed + timedelta(minutes=order["utc_offset_minutes"])).date().isoformat()


def cents(line: Record) -> int:
    """Return what a line costs; never a fraction of a cent in this shop."""
    whole, rest = divmod(line["quantity"] * line["unit_price_cents"] * (100 - line["discount_percent"]), 100)
    assert rest == 0
    return int(whole)


def _one_decimal(part: float, whole: float) -> float:
    return round(100 * part / whole, 1)


def customers_in_berlin(shop: Shop) -> Answer:
    return [(len([c for c in shop["customers"] if c["city"] == "Berlin"]),)]


def customers_in_tokyo(shop: Shop) -> Answer:
    return [(Counter(c["city"] for c in shop["customers"])["東京"],)]


def closed_stores(shop: Shop) -> Answer:
    return [(s["name"], s["closed_on"]) for s in shop["stores"] if s["closed_on"]]


def never_ordered(shop: Shop) -> Answer:
    everybody = {c["customer_id"] for c in shop["customers"]}
    return [(len(everybody - {o["customer_id"] for o in shop["order"]}),)]


def guest_orders(shop: Shop) -> Answer:
    return list(Counter(o["channel"] for o in shop["order"] if o["customer_id"] is None).items())


def apostrophes(shop: Shop) -> Answer:
    return list(Counter(c["last_name"] for c in shop["customers"] if "'" in c["last_name"]).items())


def best_sellers(shop: Shop) -> Answer:
    names = shop.by("products", "product_id")
    units: Counter[int] = Counter()
    for order, line in shop.sold():
        if local_day(order).startswith("2025-"):
            units[line["product_id"]] += line["quantity"]
    first = units.most_common(4)
    assert len({count for _, count in first}) == 4, "a tie would leave the answer open"
    return [(names[product]["name"], count) for product, count in first[:3]]


def top_rated(shop: Shop) -> Answer:
    names = shop.by("products", "product_id")
    ratings = defaultdict(list)
    for review in shop["reviews"]:
        ratings[review["product_id"]].append(review["rating"])
    return [
        (names[product]["name"], round(sum(given) / len(given), 2))
        for product, given in ratings.items()
        if len(given) >= 10 and sum(given) * 100 >= 475 * len(given)
    ]


def tokyo_week(shop: Shop) -> Answer:
    tokyo = {s["store_id"] for s in shop["stores"] if s["city"] == "東京"}
    days = Counter(local_day(o) for o in shop["order"] if o["store_id"] in tokyo)
    week = [f"2025-12-0{day}" for day in range(1, 8)]
    return [(day, days[day]) for day in week if days[day]]


def captured_by_method(shop: Shop) -> Answer:
    money: Counter[str] = Counter()
    for payment in shop["payments"]:
        if payment["state"] == "captured" and payment["paid_at"][:7] in {
            f"2026-0{month}" for month in range(1, 7)
        }:
            money[payment["method"]] += payment["amount_cents"]
    return [(method, amount / 100) for method, amount in money.items()]


def direct_reports(shop: Shop) -> Answer:
    people = shop.by("employees", "employee_id")
    reports = Counter(e["manager_id"] for e in people.values() if e["left_on"] is None)
    return [(people[manager]["name"], count) for manager, count in reports.items() if manager is not None]


def return_rate(shop: Shop) -> Answer:
    returned = {r["order_id"] for r in shop["returns"]}
    delivered = [o for o in shop["order"] if o["status"] == "delivered"]
    whole = Counter(o["channel"] for o in delivered)
    part = Counter(o["channel"] for o in delivered if o["order_id"] in returned)
    return [(channel, _one_decimal(part[channel], whole[channel])) for channel in whole]


def broad_suppliers(shop: Shop) -> Answer:
    category = {p["product_id"]: p["category_id"] for p in shop["products"]}
    covered = defaultdict(set)
    for link in shop["product_suppliers"]:
        covered[link["supplier_id"]].add(category[link["product_id"]])
    names = shop.by("suppliers", "supplier_id")
    return [(names[s]["name"], len(found)) for s, found in covered.items() if len(found) >= 3]


def never_sold(shop: Shop) -> Answer:
    sold = {line["product_id"] for line in shop["order items"]}
    return [(p["name"],) for p in shop["products"] if p["product_id"] not in sold]


def hamburg_reorder(shop: Shop) -> Answer:
    names = shop.by("products", "product_id")
    (hamburg,) = (s["store_id"] for s in shop["stores"] if s["city"] == "Hamburg")
    missing = [
        (names[s["product_id"]]["name"], s["reorder level"] - s["on hand"])
        for s in shop["stock"]
        if s["store_id"] == hamburg
    ]
    return [row for row in missing if row[1] > 0]


def carrier_hours(shop: Shop) -> Answer:
    seconds = defaultdict(list)
    for parcel in shop["shipments"]:
        if parcel["delivered_at"] is not None:
            shipped, delivered = (
                datetime.strptime(parcel[key], "%Y-%m-%dT%H:%M:%S%z")
                for key in ("shipped_at", "delivered_at")
            )
            seconds[parcel["carrier"]].append((delivered - shipped).total_seconds())
    return [(carrier, round(sum(taken) / len(taken) / 3600, 1)) for carrier, taken in seconds.items()]


def shared_emails(shop: Shop) -> Answer:
    counts = Counter(c["email"].lower() for c in shop["customers"] if c["email"] is not None)
    return [(address,) for address, count in counts.items() if count > 1]


def stale_coupons(shop: Shop) -> Answer:
    coupons = shop.by("coupons", "code")
    stale: Counter[str] = Counter()
    for order in shop["order"]:
        if order["coupon_code"] is not None:
            coupon = coupons[order["coupon_code"]]
            if not coupon["from"] <= local_day(order) <= (coupon["to"] or "9"):
                stale[order["coupon_code"]] += 1
    return list(stale.items())


def monthly_revenue(shop: Shop) -> Answer:
    months: Counter[str] = Counter()
    for order, line in shop.sold():
        months[local_day(order)[:7]] += cents(line)
    return [(month, months[month] / 100) for month in sorted(months) if "2025-07" <= month <= "2025-12"]


def best_customer(shop: Shop) -> Answer:
    spent: Counter[int] = Counter()
    for order, line in shop.sold():
        if order["customer_id"] is not None:
            spent[order["customer_id"]] += cents(line)
    (first, most), (_, second) = spent.most_common(2)
    assert most > second, "a tie would leave the answer open"
    customer = shop.by("customers", "customer_id")[first]
    return [(customer["first_name"], customer["last_name"], most / 100)]


def return_reasons(shop: Shop) -> Answer:
    units: Counter[str] = Counter()
    for item in shop["returns"]:
        units[item["reason"] or "not given"] += item["quantity"]
    return list(units.items())


def waterproof_and_recycled(shop: Shop) -> Answer:
    tags = {t["tag_id"]: t["name"] for t in shop["tags"]}
    carried = defaultdict(set)
    for link in shop["product_tags"]:
        carried[link["product_id"]].add(tags[link["tag_id"]])
    return [(p["name"],) for p in shop["products"] if carried[p["product_id"]] >= {"waterproof", "recycled"}]


def loyalty_tiers(shop: Shop) -> Answer:
    return list(Counter(c["loyalty tier"] or "none" for c in shop["customers"]).items())


def percent_names(shop: Shop) -> Answer:
    return [(p["name"],) for p in shop["products"] if "%" in p["name"]]


def best_margins(shop: Shop) -> Answer:
    cost = {link["product_id"]: link["cost_cents"] for link in shop["product_suppliers"] if link["preferred"]}
    margins = sorted(
        (
            (_one_decimal(p["price_cents"] - cost[p["product_id"]], p["price_cents"]), p["name"])
            for p in shop["products"]
            if p["product_id"] in cost and p["discontinued_on"] is None
        ),
        reverse=True,
    )
    assert len({margin for margin, _ in margins[:6]}) == 6, "a tie would leave the answer open"
    return [(name, margin) for margin, name in margins[:5]]


def short_stays(shop: Shop) -> Answer:
    stays = []
    for person in shop["employees"]:
        if person["left_on"] is not None:
            hired = date.fromisoformat(person["hired_on"])
            if date.fromisoformat(person["left_on"]) < hired.replace(year=hired.year + 1):
                stays.append((person["name"],))
    return stays


def clothing_tree(shop: Shop) -> Answer:
    categories = shop.by("categories", "category_id")

    def is_clothing(number: int | None) -> bool:
        if number is None:
            return False
        return categories[number]["name"] == "Clothing" or is_clothing(categories[number]["parent_id"])

    return [(sum(is_clothing(p["category_id"]) for p in shop["products"]),)]


def store_growth(shop: Shop) -> Answer:
    earlier: Counter[int] = Counter()
    later: Counter[int] = Counter()
    for order, line in shop.sold():
        day = local_day(order)
        if day[:4] in ("2025", "2026") and day[5:7] <= "06":
            (earlier if day[:4] == "2025" else later)[order["store_id"]] += cents(line)
    return [
        (s["name"], _one_decimal(later[s["store_id"]] - earlier[s["store_id"]], earlier[s["store_id"]]))
        for s in shop["stores"]
        if s["closed_on"] is None
    ]


def tents_and_bags(shop: Shop) -> Answer:
    categories = {c["category_id"]: c["name"] for c in shop["categories"]}
    category = {p["product_id"]: categories[p["category_id"]] for p in shop["products"]}
    buyers = defaultdict(set)
    for order, line in shop.sold():
        buyers[category[line["product_id"]]].add(order["customer_id"])
    return [(len(buyers["Tents"] & buyers["Sleeping Bags"] - {None}),)]


def order_value(shop: Shop) -> Answer:
    values: dict[str, Counter[int]] = defaultdict(Counter)
    for order, line in shop.sold():
        values[order["channel"]][order["order_id"]] += cents(line)
    return [(channel, round(sum(of.values()) / len(of) / 100, 2)) for channel, of in values.items()]


ANSWERS: dict[str, Callable[[Shop], Answer]] = {
    answer.__name__.replace("_", "-"): answer
    for answer in (
        customers_in_berlin,
        customers_in_tokyo,
        closed_stores,
        never_ordered,
        guest_orders,
        apostrophes,
        best_sellers,
        top_rated,
        tokyo_week,
        captured_by_method,
        direct_reports,
        return_rate,
        broad_suppliers,
        never_sold,
        hamburg_reorder,
        carrier_hours,
        shared_emails,
        stale_coupons,
        monthly_revenue,
        best_customer,
        return_reasons,
        waterproof_and_recycled,
        loyalty_tiers,
        percent_names,
        best_margins,
        short_stays,
        clothing_tree,
        store_growth,
        tents_and_bags,
        order_value,
    )
}
"""By the question's id."""
