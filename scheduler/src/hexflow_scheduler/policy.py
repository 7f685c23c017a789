"""Policies by name: a dispatch rule, a queue rule and their parameters.

Adding a rule is one module in ``dispatch/`` or ``ordering/`` and one line here
(``docs/how-to/add-a-policy.md``).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from math import isfinite
from typing import TypeVar

from hexflow_scheduler.dispatch import DispatchRule
from hexflow_scheduler.dispatch.earliest_finish import EarliestFinish
from hexflow_scheduler.dispatch.hexgenflow import HexGenFlow
from hexflow_scheduler.dispatch.hexgenflow_literal import HexGenFlowLiteral
from hexflow_scheduler.dispatch.just_enough import JustEnough
from hexflow_scheduler.dispatch.least_harm import LeastHarm
from hexflow_scheduler.dispatch.least_outstanding import LeastOutstanding
from hexflow_scheduler.dispatch.most_relaxed import MostRelaxed
from hexflow_scheduler.dispatch.power_of_two import PowerOfTwo
from hexflow_scheduler.dispatch.prefix_power_of_two import PrefixPowerOfTwo
from hexflow_scheduler.dispatch.round_robin import RoundRobin
from hexflow_scheduler.dispatch.shortest_queue import ShortestQueue
from hexflow_scheduler.dispatch.sticky_until_saturated import StickyUntilSaturated
from hexflow_scheduler.errors import InvalidParameter, UnknownPolicy
from hexflow_scheduler.ordering import QueueRule
from hexflow_scheduler.ordering.deadline import Deadline
from hexflow_scheduler.ordering.fcfs import FCFS
from hexflow_scheduler.ordering.latest_start import LatestStart
from hexflow_scheduler.ordering.least_attained import LeastAttained
from hexflow_scheduler.ordering.least_laxity import LeastLaxity
from hexflow_scheduler.ordering.projected_ratio import ProjectedRatio
from hexflow_scheduler.ordering.qlm import QLM
from hexflow_scheduler.ordering.urgency import Urgency
from hexflow_scheduler.ordering.vtc import VTC
from hexflow_scheduler.parameter import Parameter, Parameters
from hexflow_scheduler.relief import Relief

Rule = TypeVar("Rule")

DISPATCH_RULES: dict[str, type[DispatchRule]] = {
    LeastHarm.name: LeastHarm,
    HexGenFlow.name: HexGenFlow,
    HexGenFlowLiteral.name: HexGenFlowLiteral,
    RoundRobin.name: RoundRobin,
    LeastOutstanding.name: LeastOutstanding,
    PowerOfTwo.name: PowerOfTwo,
    PrefixPowerOfTwo.name: PrefixPowerOfTwo,
    ShortestQueue.name: ShortestQueue,
    EarliestFinish.name: EarliestFinish,
    StickyUntilSaturated.name: StickyUntilSaturated,
    MostRelaxed.name: MostRelaxed,
    JustEnough.name: JustEnough,
}
"""Every dispatch rule by its name; each is a policy together with its own queue rule."""

QUEUE_RULES: dict[str, type[QueueRule]] = {
    FCFS.name: FCFS,
    Urgency.name: Urgency,
    Deadline.name: Deadline,
    LatestStart.name: LatestStart,
    LeastLaxity.name: LeastLaxity,
    VTC.name: VTC,
    QLM.name: QLM,
    LeastAttained.name: LeastAttained,
    ProjectedRatio.name: ProjectedRatio,
}
"""Every queue rule by its name."""

DEFAULT_POLICY = LeastHarm.name
"""What runs where nobody named a policy."""

PARK_SECONDS = 60.0
"""Seconds that a call without deadline, or past it, waits for an instance that can take it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Name a dispatch rule and a queue rule and give their parameters."""

    dispatch: str
    queue: str
    parameters: Parameters = field(default_factory=Parameters)
    """Where they differ from the defaults."""
    park_seconds: float = PARK_SECONDS
    relief: Relief = field(default_factory=Relief)
    """What may be done where not all can be in time; nothing by default."""

    def __post_init__(self) -> None:
        _known(self.dispatch, DISPATCH_RULES, kind="dispatch rule")
        _known(self.queue, QUEUE_RULES, kind="queue rule")
        self.parameters.check(self.declared, owner=self.dispatch)
        if not (isfinite(self.park_seconds) and self.park_seconds > 0):
            raise InvalidParameter(f"park_seconds is a positive number of seconds, not {self.park_seconds!r}")

    @classmethod
    def named(
        cls,
        name: str = DEFAULT_POLICY,
        /,
        *,
        park_seconds: float = PARK_SECONDS,
        **parameters: float,
    ) -> "Policy":
        """Return the policy of a name: ``LeastHarm``, or a pair such as ``RoundRobin+Urgency``.

        Raises UnknownPolicy, and InvalidParameter for a value that the policy does not take.
        """
        dispatch, plus, queue = name.partition("+")
        rule = _known(dispatch, DISPATCH_RULES, kind="policy or dispatch rule")
        return cls(
            dispatch=dispatch,
            queue=queue if plus else rule.queue,
            parameters=Parameters(**parameters),
            park_seconds=park_seconds,
        )

    @property
    def name(self) -> str:
        """The name that ``named`` takes."""
        alone = DISPATCH_RULES[self.dispatch].queue == self.queue
        return self.dispatch if alone else f"{self.dispatch}+{self.queue}"

    @property
    def declared(self) -> tuple[Parameter, ...]:
        """The parameters that it takes, with defaults and bounds."""
        return DISPATCH_RULES[self.dispatch].parameters

    def values(self, *overrides: Parameters) -> Parameters:
        """Return a value for every parameter: the defaults, under this policy's, under ``overrides``."""
        values = Parameters(**{parameter.name: parameter.default for parameter in self.declared})
        for layer in (self.parameters, *overrides):
            layer.check(self.declared, owner=self.dispatch)
            values = layer.over(values)
        return values


def policy_names() -> tuple[str, ...]:
    """Return every name that ``Policy.named`` takes, the plain ones first."""
    pairs = (f"{dispatch}+{queue}" for dispatch in DISPATCH_RULES for queue in QUEUE_RULES)
    return (*DISPATCH_RULES, *pairs)


def _known(name: str, rules: Mapping[str, type[Rule]], *, kind: str) -> type[Rule]:
    rule = rules.get(name)
    if rule is None:
        near = get_close_matches(name, rules, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise UnknownPolicy(f"no {kind} is called {name!r}; {hint}There are: {', '.join(rules)}")
    return rule
