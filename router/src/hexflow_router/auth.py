"""Who asks, and how much they may ask: tenants by API key, rate and in-flight limits.

Keys are kept as hashes only, so that neither a log nor a dump of this process's configuration holds one.
A workflow without tenants is open; a tenant without a key is whoever comes without one. This module reads no files; time is passed in.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from hexflow_router.errors import ApiError


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """Describe a tenant of a workflow; an anonymous one has no name and no limits."""

    name: str = ""
    workflow: str = ""
    slo_class: str | None = None
    queries_per_minute: float | None = None
    max_in_flight: int | None = None
    weight: float = 1.0
    """Its share against that of other tenants, where the queue rule looks at shares."""
    keyed: bool = False
    """Whether it must show an API key."""


class AuthError(ApiError):
    """The caller may not do this: 401 without a known key, 403 where the key is another workflow's."""


class LimitError(ApiError):
    """The tenant asks more than it may (429)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doorkeeper:
    """Know the tenants of one configuration."""

    tenants: Mapping[str, Sequence[Tenant]] = field(default_factory=dict)
    """Tenants of each workflow."""
    keys: Mapping[str, Sequence[Tenant]] = field(default_factory=dict)
    """Tenants of each key, by ``fingerprint``: one key may serve tenants of several workflows."""

    def admit(self, *, authorization: str | None, workflow: str | None = None) -> Tenant:
        """Return the tenant that a caller is. Raises AuthError.

        ``authorization`` is the header's value; ``workflow`` the one it asks for, None for a plain call to
        a model.
        """
        key = _bearer(authorization)
        known = self.keys.get(fingerprint(key), ()) if key else ()
        for tenant in known:
            if workflow in (None, tenant.workflow):
                return tenant
        if self._takes_strangers(workflow, with_key=key is not None):
            return self._stranger(workflow or "")
        if known:
            raise AuthError(
                f"This API key belongs to no tenant of the workflow {workflow!r}.",
                status=403,
                code="forbidden_workflow",
            )
        if key is None:
            raise AuthError(
                "An API key is needed: send `Authorization: Bearer KEY`.", status=401, code="api_key_missing"
            )
        raise AuthError(
            "This API key is unknown: ask whoever keeps the workflow's tenants.",
            status=401,
            code="invalid_api_key",
        )

    def _takes_strangers(self, workflow: str | None, *, with_key: bool) -> bool:
        asked = self.tenants.values() if workflow is None else (self.tenants.get(workflow, ()),)
        for tenants in asked:
            if with_key and any(tenant.keyed for tenant in tenants):
                return False  # a wrong key is a mistake to be told, not a stranger
            if tenants and all(tenant.keyed for tenant in tenants):
                return False
        return True

    def _stranger(self, workflow: str) -> Tenant:
        keyless = (tenant for tenant in self.tenants.get(workflow, ()) if not tenant.keyed)
        return next(keyless, Tenant(workflow=workflow))


def fingerprint(key: str) -> str:
    """Return the hash that an API key is kept and looked up by."""
    return hashlib.sha256(key.encode()).hexdigest()


def _bearer(authorization: str | None) -> str | None:
    scheme, _, key = (authorization or "").partition(" ")
    return key.strip() or None if scheme.lower() == "bearer" else None


@dataclass(slots=True)
class Limits:
    """Count what each tenant asks; the counts outlive a configuration. For one event loop."""

    _allowance: dict[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    """Queries that a tenant may still start, and when that was so."""
    _in_flight: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))

    def in_flight(self, tenant: Tenant) -> int:
        """Return how many queries of a tenant run."""
        return self._in_flight.get((tenant.workflow, tenant.name), 0)

    @contextmanager
    def running(self, tenant: Tenant, now: float) -> Iterator[None]:
        """Count a query of the tenant for as long as the block lasts. Raises LimitError, and counts nothing."""
        self.enter(tenant, now)
        try:
            yield
        finally:
            self.leave(tenant)

    def enter(self, tenant: Tenant, now: float) -> None:
        """Count a query that starts; whoever calls this calls ``leave`` once. Raises LimitError."""
        key = (tenant.workflow, tenant.name)
        running = self._in_flight.get(key, 0)
        if tenant.max_in_flight is not None and running >= tenant.max_in_flight:
            raise LimitError(
                f"{running} queries of the tenant {tenant.name!r} run, and it may have {tenant.max_in_flight}:"
                " wait for one to end.",
                status=429,
                code="too_many_in_flight",
                retry_after=1.0,
            )
        if tenant.queries_per_minute:
            self._take(key, tenant, tenant.queries_per_minute, now)
        self._in_flight[key] = running + 1

    def leave(self, tenant: Tenant) -> None:
        """Count a query that ended."""
        key = (tenant.workflow, tenant.name)
        left = self._in_flight.get(key, 0) - 1
        if left > 0:
            self._in_flight[key] = left
        else:
            self._in_flight.pop(key, None)

    def _take(self, key: tuple[str, str], tenant: Tenant, rate: float, now: float) -> None:
        most = max(1.0, rate)
        left, since = self._allowance.get(key, (most, now))
        left = min(most, left + max(0.0, now - since) * rate / 60)
        if left < 1:
            self._allowance[key] = (left, now)
            wait = (1 - left) * 60 / rate
            raise LimitError(
                f"The tenant {tenant.name!r} may start {rate:g} queries a minute:"
                f" try again in {wait:.0f} seconds.",
                status=429,
                code="rate_limited",
                retry_after=wait,
            )
        self._allowance[key] = (left - 1, now)
