"""Queries of other people's agents: when the first call of each was seen.

An agent names its query in every call; the query's arrival is that of its first call. Bounded: the query that
was heard of longest ago is forgotten first.
"""

from collections import OrderedDict

from hexflow_router.auth import Tenant


class KnownQueries:
    """Remember the arrival of each query, apart for each tenant."""

    def __init__(self, most: int = 20_000) -> None:
        """Remember at most so many."""
        self._most = most
        self._arrivals: OrderedDict[tuple[str, str, str], float] = OrderedDict()

    def arrival(self, tenant: Tenant, query_id: str, now: float) -> float:
        """Return when the query was first heard of; that is now where it is new."""
        key = (tenant.workflow, tenant.name, query_id)
        arrival = self._arrivals.setdefault(key, now)
        self._arrivals.move_to_end(key)
        if len(self._arrivals) > self._most:
            self._arrivals.popitem(last=False)
        return arrival
