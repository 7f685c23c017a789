"""What an event log tells besides its queries: the fleet, how fast it really was, what its router has learned.

The log is replayed by the kernel, which learns on the way what the router learned: for each instance how many
times as long as its profile says prefilling and decoding take. One call says little, so what counts is the
mean of what was believed after each call, the first ones left out.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import exp, log
from pathlib import Path

from hexflow_scheduler import (
    End,
    Estimates,
    Instance,
    InstanceState,
    InvalidRecord,
    Kernel,
    Parameters,
    Policy,
    Profile,
    Send,
)
from hexflow_scheduler.eventlog import START, apply, decode, kernel_of
from hexflow_simulator.complaint import InvalidTrace, Where
from hexflow_simulator.fleet import SimulatedInstance
from hexflow_simulator.lines import text_lines
from hexflow_simulator.request import EngineOptions, EngineOrder
from hexflow_simulator.tuning import SpeedFit

SETTLING_CALLS = 20
"""Calls after which an instance's learned speed is near the truth whatever it began with."""
FEWEST_CALLS = 2 * SETTLING_CALLS
"""Calls of an instance below which its profile is left as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Hold what a log tells."""

    fleet: tuple[SimulatedInstance, ...]
    """The instances that took calls when the log ended, as the router knew them, and as fast as they really were."""
    speeds: tuple[SpeedFit, ...]
    """Of the fleet, in its order."""
    estimates: Estimates
    """All that the router had learned by the end."""
    policy: Policy
    parameters: Mapping[str, Parameters]
    """In force at the end, of single workflows."""
    ended: float
    """Instant of the last record, seconds since the epoch."""


class _Pace:
    """Sum what was believed of an instance's speed."""

    def __init__(self) -> None:
        self.calls = 0
        self._prefill = self._decode = 0.0

    def note(self, prefill: float, decode: float) -> None:
        self.calls += 1
        if self.calls > SETTLING_CALLS:
            self._prefill += log(prefill)
            self._decode += log(decode)

    def fit(self, instance: Instance) -> SpeedFit:
        counted = self.calls - SETTLING_CALLS
        enough = self.calls >= FEWEST_CALLS
        return SpeedFit(
            instance_id=instance.instance_id,
            pool=instance.pool,
            gpu_type=instance.gpu_type,
            calls=self.calls,
            prefill=exp(self._prefill / counted) if enough else 1.0,
            decode=exp(self._decode / counted) if enough else 1.0,
        )


def read_observed(path: Path) -> Observed:
    """Replay an event log; raises InvalidTrace where this program's kernel cannot follow it."""
    kernel: Kernel | None = None
    paces: dict[str, _Pace] = {}
    running: dict[str, str] = {}
    """Instance by call."""
    number, now = 0, 0.0
    try:
        for at, line in text_lines(path):
            number = at
            record = decode(line)
            if record.input == START or kernel is None:
                kernel = kernel_of(record)
                continue
            apply(kernel, record)
            now = max(now, record.now)
            if record.input == "finished" and (on := running.get(record.arguments["call_id"])):
                paces.setdefault(on, _Pace()).note(*kernel.estimates.scales(on))
            for decision in record.decisions:
                if isinstance(decision, Send):
                    running[decision.call_id] = decision.instance_id
                elif isinstance(decision, End):
                    running.pop(decision.call_id, None)
    except (InvalidRecord, RecursionError) as error:
        raise InvalidTrace(
            Where(str(path), number), str(error), "give a whole event log, written by this release's router"
        ) from error
    if kernel is None:
        raise InvalidTrace(Where(str(path)), "no start record", "give an event log from its beginning")
    return _observed(kernel, paces, now)


def refitted(profile: Profile, fit: SpeedFit) -> Profile:
    """Return a profile that says what was observed."""
    return replace(
        profile,
        t0=profile.t0 * fit.decode,
        t1=profile.t1 * fit.decode,
        t2=profile.t2 * fit.decode,
        c1=profile.c1 * fit.prefill,
        c2=profile.c2 * fit.prefill,
    )


def by_pool(fits: Iterable[SpeedFit]) -> dict[str, SpeedFit]:
    """Return one fit for each pool: the mean of its instances that had calls enough, each by its calls."""
    found: dict[str, SpeedFit] = {}
    groups: dict[str, list[SpeedFit]] = {}
    for fit in fits:
        groups.setdefault(fit.pool, []).append(fit)
    for pool, members in groups.items():
        enough = [fit for fit in members if fit.calls >= FEWEST_CALLS]
        calls = sum(fit.calls for fit in enough)
        found[pool] = SpeedFit(
            instance_id="",
            pool=pool,
            gpu_type=members[0].gpu_type,
            calls=sum(fit.calls for fit in members),
            prefill=exp(sum(fit.calls * log(fit.prefill) for fit in enough) / calls) if calls else 1.0,
            decode=exp(sum(fit.calls * log(fit.decode) for fit in enough) / calls) if calls else 1.0,
        )
    return found


def _observed(kernel: Kernel, paces: Mapping[str, _Pace], now: float) -> Observed:
    view = kernel.view()
    known = [each.instance for each in view.instances]
    ready = [each for each in known if each.state is InstanceState.READY] or known
    fits = [paces.get(each.instance_id, _Pace()).fit(each) for each in ready]
    fleet = tuple(
        SimulatedInstance(
            instance=replace(instance, state=InstanceState.READY),
            profile=refitted(instance.profile, fit),
            options=EngineOptions(
                order=EngineOrder.PRIORITY if instance.takes_priority else EngineOrder.FCFS,
                keep_prefixes=instance.prefix_caching,
            ),
        )
        for instance, fit in zip(ready, fits, strict=True)
    )
    policy = replace(kernel.policy, parameters=view.parameters)
    return Observed(
        fleet=fleet,
        speeds=tuple(fits),
        estimates=kernel.estimates,
        policy=policy,
        parameters=dict(view.workflow_parameters),
        ended=now,
    )
