"""The fleet of a simulation: instances as they really are, beside what the kernel believes of them.

Frozen records with next to no behaviour. What happens to an instance on the way is an event; who is told of it,
and when, is the simulation's business.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from hexflow_scheduler import Instance, Profile
from hexflow_simulator.request import EngineOptions, EngineOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedInstance:
    """Pair an instance with the truth about it."""

    instance: Instance
    """What the kernel is told; its profile may be wrong."""
    profile: Profile | None = None
    """Its true speed; None where that is what the kernel believes."""
    options: EngineOptions = field(default_factory=EngineOptions)
    slowdown: float = 1.0
    """How many times as long everything takes as its true profile says, unannounced."""

    @property
    def true_profile(self) -> Profile:
        """Its true speed, before any slowdown."""
        return self.instance.profile if self.profile is None else self.profile


def options_of(instance: Instance) -> EngineOptions:
    """Return the options of an engine that does what the kernel believes of its instance."""
    return EngineOptions(
        order=EngineOrder.PRIORITY if instance.takes_priority else EngineOrder.FCFS,
        keep_prefixes=instance.prefix_caching,
    )


class FleetChange(StrEnum):
    """Say what happens to an instance."""

    DIES = "Dies"
    """Its server is gone: connections break, and none can be made. The kernel learns it by failures."""
    SLOWS = "Slows"
    """From now on everything takes ``factor`` times what its profile says; nobody is told."""
    RETURNS = "Returns"
    """A dead one comes up again under a new id, with an empty cache; a slow one has its speed back."""
    JOINS = "Joins"
    """One that is in the fleet but was absent so far appears."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetEvent:
    """Say what happens to an instance and when."""

    at: float
    """Instant, in seconds from the start of the trace."""
    instance_id: str
    kind: FleetChange
    factor: float = 1.0
    """Of ``SLOWS``: how many times as long everything takes."""
