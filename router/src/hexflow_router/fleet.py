"""A pool as the router sees it: which model it serves, how fast one instance is, where its instances are.

Made from the resources whenever they change; knows no HTTP.
"""

import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from hexflow_api import (
    Endpoint,
    GPUPool,
    Reason,
    ResourceError,
    Resources,
    SecretKeyRef,
    SecretMissing,
    builtin_profile,
    estimated_profile,
    profile_of,
    read_secret,
)
from hexflow_api.label import POOL
from hexflow_api.meta import LabelSelector
from hexflow_api.report import ReportedProblem
from hexflow_router.upstream import Address
from hexflow_scheduler import Instance, InstanceState, Profile

ENGINE_PORT = 8000
"""Port of a pod whose pool names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSource:
    """Say which pods of the namespace are the pool's, and where each listens."""

    labels: str = POOL
    """A selector in Kubernetes' notation; by default that of all pods that the operator makes."""
    port: int = ENGINE_PORT


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
    pods: PodSource = PodSource()
    """Where its instances are found in a cluster."""
    parallel: int = 1
    """GPUs over which one copy of the model is spread."""
    profile_given: bool = False
    """Whether the pool says its profile itself."""

    def on(self, gpu_type: str | None) -> "PoolSetup":
        """Return the pool with the speed of another GPU: during a change of ``gpuType`` pods of both kinds run."""
        if gpu_type in (None, self.gpu_type):
            return self
        assert gpu_type is not None  # noqa: S101
        wanted = (gpu_type, self.model, self.parallel)
        found = None if self.profile_given else builtin_profile(*wanted) or estimated_profile(*wanted)
        if found is None:
            return replace(self, gpu_type=gpu_type)
        profile = replace(Profile(**found.coefficients()), slots=self.profile.slots)
        return replace(self, gpu_type=gpu_type, profile=profile, profile_name=found.name)

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
    reported: tuple[ReportedProblem, ...] = ()
    """Those of them that the operator cannot see for itself."""


def fleet_of(resources: Resources, secrets_dir: Path) -> Fleet:
    """Return the fleet that resources make. A pool or an endpoint that cannot be used is a problem, not an error."""
    setups: list[PoolSetup] = []
    trust: dict[str, ssl.SSLContext] = {}
    problems: list[str] = []
    reported: list[ReportedProblem] = []
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
                endpoints=()
                if spec.suspend
                else tuple(_endpoints(pool, secrets_dir, trust, problems, reported)),
                suspended=spec.suspend,
                pods=_pods(pool),
                parallel=spec.effective_tensor_parallel_size,
                profile_given=spec.profile is not None,
            )
        )
    return Fleet(pools=tuple(setups), trust=trust, problems=tuple(problems), reported=tuple(reported))


def _pods(pool: GPUPool) -> PodSource:
    port = (pool.spec.engine.port if pool.spec.engine else None) or ENGINE_PORT
    return (
        PodSource(labels=selector_text(pool.spec.selector), port=port)
        if pool.spec.selector
        else PodSource(port=port)
    )


def selector_text(selector: LabelSelector) -> str:
    """Return a selector as the API server takes it in a query."""
    signs = {"In": "in", "NotIn": "notin"}
    parts = [f"{key}={value}" for key, value in selector.match_labels.items()]
    for asked in selector.match_expressions:
        if asked.operator in signs:
            parts.append(f"{asked.key} {signs[asked.operator]} ({','.join(asked.values)})")
        else:
            parts.append(asked.key if asked.operator == "Exists" else f"!{asked.key}")
    return ",".join(parts)


def missing_secret(kind: str, name: str, *, ref: SecretKeyRef, of: str) -> ReportedProblem:
    """Return what is told of a resource whose secret is not there, for its status."""
    message = (
        f"Secret {ref.name} has no key {ref.key} for {of}: make it; the router sees it within a minute or two"
    )
    return ReportedProblem(kind=kind, name=name, reason=Reason.SECRET_NOT_FOUND.value, message=message)


def _endpoints(
    pool: GPUPool,
    secrets_dir: Path,
    trust: dict[str, ssl.SSLContext],
    problems: list[str],
    reported: list[ReportedProblem],
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
            reported += _missing(pool, endpoint, secrets_dir)
            continue
        except ssl.SSLError:
            problems.append(
                f"GPUPool {pool.name}, endpoint {url}: caSecretRef holds no certificate in PEM form; put one there."
            )
            continue
        yield Address(url=url, api_key=key)


def _missing(pool: GPUPool, endpoint: Endpoint, secrets_dir: Path) -> Iterable[ReportedProblem]:
    for ref in (endpoint.api_key_secret_ref, endpoint.ca_secret_ref):
        try:
            _secret(secrets_dir, ref)
        except SecretMissing:
            assert ref is not None  # noqa: S101 - none is never missing
            yield missing_secret("GPUPool", pool.name, ref=ref, of=f"endpoint {endpoint.url}")


def _secret(secrets_dir: Path, ref: SecretKeyRef | None) -> str | None:
    return None if ref is None else read_secret(secrets_dir, ref).strip()
