"""The sample shop's days and clocks, without asking this machine for its own.

No time-zone database is used: machines have different ones, or none.
"""

from datetime import UTC, date, datetime, timedelta
from typing import Final

from hexflow_cli.sample.catalogue import STORES, WINTER_OFFSET_MINUTES

FIRST_DAY: Final = date(2025, 1, 1)
"""The day of the earliest orders."""
LAST_DAY: Final = date(2026, 6, 30)
"""The shop's "today": nothing in the database is later."""

_ZONES: Final = {store[0]: store[4] for store in STORES}


def instant_text(instant: datetime) -> str:
    """Write an instant as the database does: ``2026-06-30T08:15:00Z``."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def utc_offset_minutes(store_id: int, instant: datetime) -> int:
    """Say how far a store's clock is ahead of UTC at an instant, by the European rule for summer time."""
    winter = WINTER_OFFSET_MINUTES[store_id]
    if _ZONES[store_id] == "Asia/Tokyo":
        return winter
    begin, end = (_last_sunday(instant.year, month) for month in (3, 10))
    return winter + 60 if begin <= instant < end else winter


def _last_sunday(year: int, month: int) -> datetime:
    """Return 01:00 UTC on the last Sunday of a month of 31 days, when Europe changes its clocks."""
    last = datetime(year, month, 31, 1, tzinfo=UTC)
    return last - timedelta(days=(last.weekday() + 1) % 7)
