"""One instance under watch: looked at, judged, and told to the driver when something about it changes."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from hexflow_router.breaker import Breaker, BreakerRule, BreakerState
from hexflow_router.driver import Driver
from hexflow_router.exchange import Headers
from hexflow_router.fleet import PoolSetup
from hexflow_router.telemetry import EngineSample, read_metrics, read_models
from hexflow_router.upstream import Address, UpstreamFailed, within
from hexflow_scheduler import Instance, InstanceState, Profile

_log = logging.getLogger("hexflow.router.watch")

_LARGEST_PAGE = 8 << 20


class Hold(StrEnum):
    """Say why a server that somebody else started is to get no calls."""

    POD_NOT_READY = "PodNotReady"
    """It may yet come, or come back."""
    TERMINATING = "Terminating"
    """It was told to end: what runs may finish."""
    SUSPENDED = "Suspended"
    """Its pool is to have no instance; it ends soon."""

    @property
    def state(self) -> InstanceState:
        """What the kernel is told."""
        return InstanceState.UNREADY if self is Hold.POD_NOT_READY else InstanceState.DRAINING


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRule:
    """Say how an instance is looked at, in real seconds."""

    interval_seconds: float = 1.0
    time_out_seconds: float = 5.0
    gone_after: int = 3
    """Looks that fail in a row before what runs there is given up."""
    stale_seconds: float = 10.0
    """Age at which the engine's metrics are no longer believed."""


class _NotReady(Exception):
    def __init__(self, reason: str, message: str, *, down: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.down = down
        """Whether it does not answer at all."""


class Watch:
    """Follow one server at one address through its incarnations."""

    def __init__(
        self,
        name: str,
        *,
        pool: PoolSetup,
        address: Address,
        hold: Hold | None = None,
        driver: Driver,
        rule: ProbeRule,
        breaker_rule: BreakerRule | None,
        monotonic: Callable[[], float],
    ) -> None:
        """Tell the driver of it at once, as not ready."""
        self.name = name
        self.pool = pool
        self.address = address
        self.hold = hold
        """Why it is to get no calls, however well it answers."""
        self.reason = "NotLookedAtYet"
        """Why it takes no calls; ``Ready`` when it does."""
        self.message = ""
        self.sample: EngineSample | None = None
        self._driver = driver
        self._rule = rule
        self._monotonic = monotonic
        self._breaker = Breaker(breaker_rule)
        self._breaker_rule = breaker_rule
        self._incarnation = 1
        self._down = 0
        self._alive = False
        """Whether this incarnation has ever answered."""
        self._started_at: float | None = None
        self._models: frozenset[str] | None = None
        self._max_context: int | None = None
        self._takes_priority = True
        self._foreign: tuple[int, int] = (0, 0)
        self._told: Instance | None = None
        self._told_load = 0
        self._publish()

    @property
    def instance_id(self) -> str:
        """The identity of the server that runs there now."""
        return self.name if self._incarnation == 1 else f"{self.name}~{self._incarnation}"

    @property
    def breaker(self) -> BreakerState:
        """State of the breaker."""
        return self._breaker.state

    @property
    def ready(self) -> bool:
        """Whether it takes calls."""
        return self._told is not None and self._told.state is InstanceState.READY

    @property
    def why_not(self) -> str:
        """Why it takes no calls, for a person."""
        if self.ready:
            return ""
        if self.hold:
            return f"{self.hold}: the pod is not ready" if self.hold is Hold.POD_NOT_READY else str(self.hold)
        if self.reason == "Ready":
            return "its calls failed one after the other; it is tried again soon"
        return f"{self.reason}: {self.message}" if self.message else self.reason

    def configure(self, pool: PoolSetup, *, hold: Hold | None = None) -> None:
        """Take over a changed pool, and whether it is held back."""
        self.pool, self.hold = pool, hold
        self._publish()

    async def run(self) -> None:
        """Look again and again until cancelled."""
        while True:
            try:
                await self.look()
            except Exception:  # whatever a server answers, it is looked at again
                _log.exception("A look at %s failed by a defect.", self.instance_id)
            await asyncio.sleep(self._rule.interval_seconds)

    async def look(self) -> None:
        """Look once and tell what changed."""
        answered = True
        try:
            await self._probe()
        except _NotReady as problem:
            answered = not problem.down
            self.reason, self.message = problem.reason, problem.message
            self._down = self._down + 1 if problem.down else 0
            if self._down >= self._rule.gone_after and self._alive:
                self._next_incarnation()
        else:
            self._down = 0
            self.reason, self.message = "Ready", ""
        self._alive = self._alive or answered
        self._driver.metrics.count("hexflow_probes_total", self.pool.name, self.reason)
        self._publish()
        self._tell_load()

    def gone(self) -> None:
        """Say that nobody lists it any more."""
        if self._told is not None:
            self._driver.tell(replace(self._told, state=InstanceState.GONE), self.address)
            self._told = None

    # What calls met with

    def answered(self) -> None:
        """Note an answer."""
        if self._breaker.state is not BreakerState.CLOSED:
            self._breaker.succeeded()
            self._publish()
        else:
            self._breaker.succeeded()

    def failed(self, reason: str) -> None:
        """Note a failure; who cannot be reached takes no calls until it is seen again."""
        self._breaker.failed(self._monotonic())
        if reason == "ConnectFailed":
            self.reason, self.message = reason, "A call could not reach it."
        self._publish()

    def refused_priority(self) -> None:
        """Send no ``priority`` to this server any more."""
        self._takes_priority = False
        self._publish()

    # Looking

    async def _probe(self) -> None:
        await self._health()
        status, body = await self._fetch("/v1/models")
        if status in (401, 403):
            raise _NotReady("EngineRefusedKey", "It refuses the router's key; correct apiKeySecretRef.")
        if status != 200:
            raise _NotReady("NotHealthy", f"/v1/models answers {status}.")
        try:
            models = read_models(body)
        except ValueError:
            raise _NotReady(
                "Rubbish", "/v1/models is not what an OpenAI-compatible server answers."
            ) from None
        await self._metrics()
        names = frozenset(model.id for model in models)
        if self.pool.model not in names:
            raise _NotReady(
                "ModelNotListed",
                f"It lists {', '.join(sorted(names)[:5]) or 'no model'}, not {self.pool.model}; correct model.name.",
            )
        self._models = names
        self._max_context = next(model.max_model_len for model in models if model.id == self.pool.model)

    async def _health(self) -> None:
        status, _ = await self._fetch("/health")
        if status >= 500:
            raise _NotReady("NotHealthy", f"/health answers {status}.")

    async def _metrics(self) -> None:
        try:
            status, body = await self._fetch("/metrics")
            sample = read_metrics(body, at=self._monotonic()) if status == 200 else None
        except (ValueError, _NotReady):
            sample = None
        started_at = sample.started_at if sample is not None else None
        if started_at is not None and self._started_at is not None:
            restarted = started_at != self._started_at
        else:
            restarted = self._down > 0 and self._alive
        if restarted:
            self._next_incarnation()
        self._started_at = started_at
        if sample is None:
            return
        self.sample = sample
        load, ours = sample.load, self._driver.in_flight(self.instance_id)
        self._foreign = (self._foreign[1], max(0, load - ours) if load is not None else 0)

    async def _fetch(self, path: str) -> tuple[int, bytes]:
        headers: Headers = [("accept", "*/*")]
        if self.address.api_key is not None:
            headers = [*headers, ("authorization", f"Bearer {self.address.api_key}")]
        try:
            return await within(
                self._rule.time_out_seconds,
                self._read(path, headers),
                reason="FirstByteTimeout",
                doing="it was looked at",
            )
        except UpstreamFailed as problem:
            raise _NotReady(problem.reason, problem.message, down=True) from problem

    async def _read(self, path: str, headers: Headers) -> tuple[int, bytes]:
        response = await self._driver.upstream.send(self.address.url + path, method="GET", headers=headers)
        try:
            pieces: list[bytes] = []
            while piece := await response.read():
                pieces.append(piece)
                if sum(map(len, pieces)) > _LARGEST_PAGE:
                    raise UpstreamFailed("Rubbish", "Its answer has no end.")
            return response.status, b"".join(pieces)
        except BaseException:
            response.close()
            raise

    # Telling

    def _next_incarnation(self) -> None:
        if self._told is not None:
            self._driver.tell(replace(self._told, state=InstanceState.GONE), self.address)
            self._told = None
        self._incarnation += 1
        self._breaker = Breaker(self._breaker_rule)
        self._started_at = None
        self._foreign = (0, 0)
        self._told_load = 0
        self._takes_priority = True
        self._alive = False
        self._down = 0

    def _publish(self) -> None:
        breaker = self._breaker.look(self._monotonic())
        ready = self.reason == "Ready" and breaker is not BreakerState.OPEN
        instance = self.pool.instance(
            self.instance_id,
            state=self.hold.state if self.hold else InstanceState.READY if ready else InstanceState.UNREADY,
            models=self._models,
            max_context=self._max_context,
            takes_priority=self._takes_priority,
            profile=self._profile(trial=breaker is BreakerState.TRIAL),
        )
        if instance != self._told:
            self._told = instance
            self._driver.tell(instance, self.address)

    def _profile(self, *, trial: bool) -> Profile:
        profile = self.pool.profile
        if self.sample is not None and self.sample.kv_tokens:
            profile = replace(profile, kv_tokens=self.sample.kv_tokens)
        # An open breaker is tried with one call at a time.
        return replace(profile, slots=1) if trial else profile

    def stale(self) -> bool:
        """Return whether the engine's own counts are too old to be believed."""
        sample = self.sample
        return (
            sample is None
            or sample.running is None
            or self._monotonic() - sample.at > self._rule.stale_seconds
        )

    def sample_age(self) -> float | None:
        """Return the age of the engine's metrics in real seconds."""
        return None if self.sample is None else self._monotonic() - self.sample.at

    def state(self) -> dict[str, Any]:
        """Return what is known of it as plain data in camelCase, for people."""
        sample = self.sample
        return {
            "instance": self.instance_id,
            "pool": self.pool.name,
            "url": self.address.url,
            "profile": self.pool.profile_name,
            "reason": self.hold or self.reason,
            "message": self.message,
            "breaker": self.breaker,
            "engineRunning": sample.running if sample else None,
            "engineWaiting": sample.waiting if sample else None,
            "kvUsage": sample.kv_usage if sample else None,
            "sampleAgeSeconds": self.sample_age(),
            "sampleStale": self.stale(),
        }

    def _tell_load(self) -> None:
        # The smaller of two readings: a call of ours that ends between its count there and here is nobody else's.
        foreign = 0 if self.stale() else min(self._foreign)
        if foreign != self._told_load:
            self._told_load = foreign
            self._driver.load(self.instance_id, foreign)
