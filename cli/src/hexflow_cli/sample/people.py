"""The sample shop's customers: names with accents and apostrophes, twins by e-mail, gaps where nobody asked."""

import unicodedata
from datetime import date, timedelta
from typing import Final

from hexflow_cli.sample.almanac import LAST_DAY
from hexflow_cli.sample.catalogue import CITIES, FIRST_NAMES, LAST_NAMES
from hexflow_cli.sample.dice import Dice

CUSTOMERS: Final = 420

Row = tuple[str | int | None, ...]

_COUNTRIES: Final = ("DE",) * 9 + ("FR",) * 4 + ("PT",) * 2 + ("IE",) * 2 + ("JP",) * 2 + ("AT", "NL")
_EARLIEST_DAYS_AGO: Final = 760


def customer_rows(dice: Dice) -> list[Row]:
    """Return the rows of ``customers``, those who joined first first."""
    days_ago = sorted((dice.below(_EARLIEST_DAYS_AGO) for _ in range(CUSTOMERS)), reverse=True)
    rows: list[Row] = []
    for number, days in enumerate(days_ago, 1):
        name = (dice.pick(FIRST_NAMES), dice.pick(LAST_NAMES))
        email = _email(dice, name)
        if dice.chance(8):
            email = None
        elif number > 60 and dice.chance(3):
            known = dice.pick([row for row in rows if row[3] is not None])
            name, email = (str(known[1]), str(known[2])), str(known[3]).upper()
        country = dice.pick(_COUNTRIES)
        rows.append(
            (
                number,
                *name,
                email,
                CITIES[country][dice.low(len(CITIES[country]))],
                country,
                (date(1948, 1, 1) + timedelta(days=dice.below(21_500))).isoformat()
                if dice.chance(70)
                else None,
                (LAST_DAY - timedelta(days=days)).isoformat(),
                None if dice.chance(25) else int(dice.chance(45)),
                ("bronze", "silver", "gold")[dice.low(3)] if dice.chance(60) else None,
            )
        )
    return rows


def _email(dice: Dice, name: tuple[str, str]) -> str | None:
    mailbox = ".".join(_plain(part) for part in name)
    address = f"{mailbox}{dice.below(90) + 10}@example.{dice.pick(('com', 'org', 'net'))}"
    return address.title() if dice.chance(10) else address


def _plain(text: str) -> str:
    """Spell a name as people do in an e-mail address."""
    letters = unicodedata.normalize("NFKD", text.replace("ß", "ss")).lower()
    return "".join(letter for letter in letters if letter.isascii() and letter.isalnum())
