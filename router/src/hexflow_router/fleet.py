"""A pool as the router sees it: which model it serves, how fast one instance is, which addresses are fixed.

Made from the resources whenever they change; knows no HTTP.
"""

import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from hexflow_api import (
    GPUPool,
    ResourceError,
    Resources,
    SecretKeyRef,
    SecretMissing,
    profile_of,
    read_secret,
)
from hexflow_router.upstream import Address
from hexflow_scheduler import Instance, InstanceState, Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSetup:
    """Hold what every instance of a pool has in common."""

    name: str
    gpu_type: str
    model: str
    profile: Profile
    profile_name: str = "inline"
    max_context: int | None = None
    prefix_caching: bool = True
    takes_priority: bool = True
    endpoints: tuple[Address, ...] = ()
    """Servers that run already."""
    suspended: bool = False

    def instance(
        self,
        instance_id: str,
        *,
        state: InstanceState,
        models: frozenset[str] | None = None,
        max_context: int | None = None,
        takes_priority: bool = True,
        profile: Profile | None = None,
    ) -> Instance:
        """Return an instance of the pool; what is not given is the pool's."""
        contexts = [context for context in (self.max_context, max_context) if context]
        return Instance(
            instance_id=instance_id,
            pool=self.name,
            gpu_type=self.gpu_type,
            models=models or frozenset({self.model}),
            profile=profile or self.profile,
            state=state,
            max_context=min(contexts) if contexts else None,
            prefix_caching=self.prefix_caching,
            takes_priority=self.takes_priority and takes_priority,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Hold the pools, the TLS contexts of their endpoints by origin, and what could not be used."""

    pools: tuple[PoolSetup, ...] = ()
    trust: dict[str, ssl.SSLContext] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def fleet_of(resources: Resources, secrets_dir: Path) -> Fleet:
    """Return the fleet that resources make. A pool or an endpoint that cannot be used is a problem, not an error."""
    setups: list[PoolSetup] = []
    trust: dict[str, ssl.SSLContext] = {}
    problems: list[str] = []
    for pool in resources.pools:
        spec = pool.spec
        try:
            profile = profile_of(pool, resources)
        except ResourceError as problem:
            problems.append(str(problem))
            continue
        setups.append(
            PoolSetup(
                name=pool.name,
                gpu_type=spec.gpu_type,
                model=spec.model.name,
                profile=Profile(**profile.coefficients()),
                profile_name=profile.name,
                max_context=spec.max_model_len,
                prefix_caching=spec.prefix_caching,
                takes_priority=spec.priority_scheduling,
                endpoints=() if spec.suspend else tuple(_endpoints(pool, secrets_dir, trust, problems)),
                suspended=spec.suspend,
            )
        )
    return Fleet(pools=tuple(setups), trust=trust, problems=tuple(problems))


def _endpoints(
    pool: GPUPool, secrets_dir: Path, trust: dict[str, ssl.SSLContext], problems: list[str]
) -> Iterable[Address]:
    for endpoint in pool.spec.endpoints or ():
        url = endpoint.url
        try:
            key = _secret(secrets_dir, endpoint.api_key_secret_ref)
            authority = _secret(secrets_dir, endpoint.ca_secret_ref)
            if authority is not None:
                scheme, _, rest = url.partition("://")
                trust[f"{scheme}://{rest.partition('/')[0]}"] = ssl.create_default_context(cadata=authority)
        except SecretMissing as problem:
            problems.append(f"GPUPool {pool.name}, endpoint {url}: {problem}")
            continue
        except ssl.SSLError:
            problems.append(
                f"GPUPool {pool.name}, endpoint {url}: caSecretRef holds no certificate in PEM form; put one there."
            )
            continue
        yield Address(url=url, api_key=key)


def _secret(secrets_dir: Path, ref: SecretKeyRef | None) -> str | None:
    return None if ref is None else read_secret(secrets_dir, ref).strip()
