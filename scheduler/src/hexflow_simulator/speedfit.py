"""What an event log tells besides its queries: the fleet, how fast it really was, what its router has learned.

The log is replayed by the kernel for all that the router knew at its end. How fast an instance was is reckoned from the
log itself: the seconds of each call against what the profile says of its own tokens among all the others that ran beside it
(``callspeed``). Prefill and decode are not told apart: the time of a stream's first token says as much of the other calls
as of its own prefill.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import exp, log
from pathlib import Path
from statistics import median

from hexflow_scheduler import (
    Estimates,
    Instance,
    InstanceState,
    InvalidRecord,
    Kernel,
    Parameters,
    Policy,
    Profile,
)
from hexflow_scheduler.eventlog import START, apply, decode, kernel_of
from hexflow_simulator.callspeed import CallTimes
from hexflow_simulator.complaint import InvalidTrace, Where
from hexflow_simulator.fleet import SimulatedInstance, options_of
from hexflow_simulator.lines import text_lines
from hexflow_simulator.tuning import SpeedFit

FEWEST_CALLS = 40
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


def read_observed(path: Path) -> Observed:
    """Replay an event log; raises InvalidTrace where this program's kernel cannot follow it."""
    kernel: Kernel | None = None
    calls = CallTimes()
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
            calls.note(record)
    except (InvalidRecord, RecursionError) as error:
        raise InvalidTrace(
            Where(str(path), number), str(error), "give a whole event log, written by this release's router"
        ) from error
    if kernel is None:
        raise InvalidTrace(Where(str(path)), "no start record", "give an event log from its beginning")
    return _observed(kernel, calls, now)


def refitted(profile: Profile, fit: SpeedFit) -> Profile:
    """Return a profile that says what was observed."""
    return profile.slowed(prefill=fit.prefill, decode=fit.decode)


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


def _fit(instance: Instance, calls: CallTimes) -> SpeedFit:
    ratios = calls.ratios(instance.instance_id, instance.profile)
    factor = median(ratios) if len(ratios) >= FEWEST_CALLS else 1.0
    return SpeedFit(
        instance_id=instance.instance_id,
        pool=instance.pool,
        gpu_type=instance.gpu_type,
        calls=len(ratios),
        prefill=factor,
        decode=factor,
    )


def _observed(kernel: Kernel, calls: CallTimes, now: float) -> Observed:
    view = kernel.view()
    known = [each.instance for each in view.instances]
    ready = [each for each in known if each.state is InstanceState.READY] or known
    fits = [_fit(each, calls) for each in ready]
    fleet = tuple(
        SimulatedInstance(
            instance=replace(instance, state=InstanceState.READY),
            profile=refitted(instance.profile, fit),
            options=options_of(instance),
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
