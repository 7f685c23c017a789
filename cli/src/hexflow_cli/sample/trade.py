"""The sample shop's trade: orders with their lines, payments, shipments, returns and reviews."""

from bisect import bisect_left
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from hexflow_cli.sample.almanac import FIRST_DAY, LAST_DAY, instant_text, utc_offset_minutes
from hexflow_cli.sample.catalogue import (
    CARRIERS,
    COUPONS,
    NEVER_SOLD,
    OPINIONS,
    PRODUCTS,
    RETURN_REASONS,
    STORES,
)
from hexflow_cli.sample.dice import Dice
from hexflow_cli.sample.people import Row

ORDERS: Final = 2400

_DAYS: Final = (LAST_DAY - FIRST_DAY).days + 1
_END: Final = datetime(2026, 6, 30, 14, tzinfo=UTC)
"""An instant of the last day that is the same day in every store: what is later has not happened yet."""
_STORE_WEIGHTS: Final = (1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 5, 6, 6)
_OFFERED: Final = tuple(number for number, product in enumerate(PRODUCTS, 1) if product[0] not in NEVER_SOLD)
_FAVOURITES: Final = tuple(number for place, number in enumerate(_OFFERED) if place % 3 == 0)
_GIFT_CARDS: Final = 15
_PAID_BY: Final = {
    "store": ("card", "card", "card", "cash", "cash"),
    "web": ("card", "card", "paypal", "paypal", "invoice"),
    "phone": ("invoice", "invoice", "card"),
}
_CARRIER: Final = {1: 0, 2: 0, 3: 1, 4: 0, 5: 2, 6: 3}
"""The carrier that a store mostly uses."""
_COUPONS: Final = tuple(
    (code, percent, first, last or LAST_DAY.isoformat()) for code, percent, first, last in COUPONS
)


def _joined_on(customer: Row) -> str:
    return str(customer[7])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    number: int
    customer: int | None
    store: int
    channel: str
    placed: datetime
    coupon: str | None
    discount: int

    @property
    def offset(self) -> int:
        return utc_offset_minutes(self.store, self.placed)

    @property
    def local_day(self) -> str:
        return (self.placed + timedelta(minutes=self.offset)).date().isoformat()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    number: int
    product: int
    quantity: int
    unit_cents: int
    discount: int

    @property
    def net_cents(self) -> int:
        # Prices are multiples of ten cents and discounts of ten per cent: nothing is rounded.
        return self.quantity * self.unit_cents * (100 - self.discount) // 100


@dataclass(slots=True, kw_only=True)
class Trade:
    """Roll the dice for eighteen months of trade with the given customers, sorted by the day they joined."""

    dice: Dice
    customers: list[Row]
    orders: list[Row] = field(default_factory=list)
    items: list[Row] = field(default_factory=list)
    payments: list[Row] = field(default_factory=list)
    shipments: list[Row] = field(default_factory=list)
    returns: list[Row] = field(default_factory=list)
    reviews: list[Row] = field(default_factory=list)

    def rows(self) -> dict[str, list[Row]]:
        """Return the rows of the six tables, parents before children."""
        openings = sorted((self._opening() for _ in range(ORDERS)), key=lambda opening: opening[0])
        for number, (placed, store, channel) in enumerate(openings, 1):
            self._trade(self._order(number, placed, store, channel))
        return {
            "order": self.orders,
            "order items": self.items,
            "payments": self.payments,
            "shipments": self.shipments,
            "returns": self.returns,
            "reviews": self.reviews,
        }

    def _opening(self) -> tuple[datetime, int, str]:
        """Draw when, where and how an order came in; trade grows, and peaks before Christmas."""
        dice = self.dice
        while True:
            day = FIRST_DAY + timedelta(
                days=_DAYS - 1 - dice.low(_DAYS) if dice.chance(30) else dice.below(_DAYS)
            )
            if day.month not in (11, 12) and dice.chance(35):
                continue
            store = dice.pick(_STORE_WEIGHTS)
            channel = dice.pick(("store", "store", "web", "web", "web", "phone"))
            closed = STORES[store - 1][6]
            if closed is not None and day.isoformat() > closed:
                continue
            hour = dice.below(24) if channel == "web" else 9 + dice.below(10)
            local = datetime(day.year, day.month, day.day, hour, dice.below(60), dice.below(60), tzinfo=UTC)
            winter = utc_offset_minutes(store, datetime(day.year, 1, 1, tzinfo=UTC))
            placed = local - timedelta(minutes=winter)
            if placed.date() >= FIRST_DAY and placed < _END:
                return placed, store, channel

    def _order(self, number: int, placed: datetime, store: int, channel: str) -> _Order:
        dice = self.dice
        customer: int | None = None
        if not dice.chance(18):
            known = bisect_left(self.customers, placed.date().isoformat(), key=_joined_on)
            # Every seventh customer has a card and never bought anything.
            drawn = known - dice.low(known)
            customer = drawn if drawn % 7 else None
        coupon, discount = None, 0
        if dice.chance(14):
            day = (placed + timedelta(minutes=utc_offset_minutes(store, placed))).date().isoformat()
            valid = [c for c in _COUPONS if c[2] <= day <= c[3]]
            # Now and then a cashier lets an outdated coupon pass.
            coupon, discount, *_ = dice.pick(_COUPONS if dice.chance(12) else valid)
        return _Order(
            number=number,
            customer=customer,
            store=store,
            channel=channel,
            placed=placed,
            coupon=coupon,
            discount=discount,
        )

    def _trade(self, order: _Order) -> None:
        lines = self._lines(order)
        status = "delivered"
        if order.channel != "store":
            status = "cancelled" if self.dice.chance(6) else self._ship(order)
        self.orders.append(
            (
                order.number,
                order.customer,
                order.store,
                order.channel,
                instant_text(order.placed),
                order.offset,
                status,
                order.coupon,
            )
        )
        for line in lines:
            self.items.append(
                (order.number, line.number, line.product, line.quantity, line.unit_cents, line.discount)
            )
        self._pay(order, sum(line.net_cents for line in lines), cancelled=status == "cancelled")
        if status == "delivered":
            self._send_back(order, lines)
            self._review(order, lines)

    def _lines(self, order: _Order) -> list[_Line]:
        dice = self.dice
        wanted: list[int] = []
        for _ in range(1 + dice.low(6)):
            product = dice.pick(_FAVOURITES if dice.chance(35) else _OFFERED)
            gone = PRODUCTS[product - 1][5]
            if product not in wanted and (gone is None or order.local_day <= gone):
                wanted.append(product)
        lines = []
        for number, product in enumerate(wanted or [_OFFERED[0]], 1):
            category, price = PRODUCTS[product - 1][2], PRODUCTS[product - 1][3]
            gift_card = category == _GIFT_CARDS
            if order.local_day < "2026" and not gift_card:
                price = price * 95 // 1000 * 10  # prices rose at the new year
            lines.append(
                _Line(
                    number=number,
                    product=product,
                    quantity=1 + dice.low(4),
                    unit_cents=price,
                    discount=0 if gift_card else order.discount,
                )
            )
        return lines

    def _pay(self, order: _Order, total: int, *, cancelled: bool) -> None:
        dice = self.dice
        method = dice.pick(_PAID_BY[order.channel])
        paid = order.placed + timedelta(minutes=dice.below(20), seconds=dice.below(60))
        if method == "invoice":
            paid += timedelta(days=2 + dice.below(28))
        if cancelled:
            if dice.chance(70):
                self._payment(order, method, total, None, "failed")
            return
        if dice.chance(5):
            self._payment(order, method, total, None, "failed")
        if dice.chance(8) and total > 5000:
            part = 2500 * (1 + dice.below(2))
            self._payment(order, "gift card", part, order.placed, "captured")
            total -= part
        if paid < _END:
            self._payment(order, method, total, paid, "captured")
        else:
            self._payment(order, method, total, None, "pending")

    def _payment(self, order: _Order, method: str, cents: int, paid: datetime | None, state: str) -> None:
        number = len(self.payments) + 1
        when = None if paid is None else instant_text(paid)
        self.payments.append((number, order.number, method, cents, state, when))

    def _ship(self, order: _Order) -> str:
        """Send the parcels that had time to leave; return the status that the order has by now."""
        dice = self.dice
        shipped = order.placed + timedelta(minutes=240 + dice.below(4000))
        if shipped >= _END:
            return "open"
        status = "delivered"
        for _ in range(2 if dice.chance(8) else 1):
            carrier = CARRIERS[_CARRIER[order.store] if dice.chance(80) else dice.below(len(CARRIERS))]
            slowness = 1 + CARRIERS.index(carrier)
            arrived = shipped + timedelta(minutes=900 + dice.below(2400 + 900 * slowness))
            lost = dice.chance(2)
            delivered = None if lost or arrived >= _END else instant_text(arrived)
            if delivered is None:
                status = "shipped"
            number = len(self.shipments) + 1
            self.shipments.append((number, order.number, carrier, instant_text(shipped), delivered))
        return status

    def _send_back(self, order: _Order, lines: list[_Line]) -> None:
        dice = self.dice
        for line in lines:
            if not dice.chance({"store": 4, "web": 11, "phone": 8}[order.channel]):
                continue
            quantity = 1 + dice.below(line.quantity)
            day = order.placed.date() + timedelta(days=9 + dice.below(24))
            reason = RETURN_REASONS[dice.low(len(RETURN_REASONS))] if dice.chance(85) else None
            if day <= LAST_DAY:
                refund = line.net_cents // line.quantity * quantity
                number = len(self.returns) + 1
                self.returns.append(
                    (number, order.number, line.number, quantity, reason, day.isoformat(), refund)
                )

    def _review(self, order: _Order, lines: list[_Line]) -> None:
        dice = self.dice
        if order.customer is None:
            return
        for line in lines:
            day = order.placed.date() + timedelta(days=10 + dice.below(40))
            if not dice.chance(18) or day > LAST_DAY:
                continue
            # Some goods are better than others.
            rating = 5 - dice.low(3 if line.product % 3 else 5)
            title, body = dice.pick(OPINIONS[rating])
            number = len(self.reviews) + 1
            self.reviews.append((number, line.product, order.customer, rating, title, body, day.isoformat()))
