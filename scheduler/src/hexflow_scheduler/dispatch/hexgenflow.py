"""HexGenFlow: a fast instance with a short queue, by the paper's score without its units.

Source: HexGen-Flow (arXiv 2505.05286), ``score = (1 - alpha) * beta / t_queue - alpha * t_comp``, the
largest wins. As published the score mixes 1/seconds with seconds, so that beta has the unit s² and an
empty queue scores without bound. Here both times are divided by the mean ``t_comp`` of the call over
its candidates, and ``t_queue`` is at least one quantum (a step of the instance), so the choice does not
depend on the unit of time. ``t_comp`` is that in the batch the call would meet.
"""

from collections.abc import Sequence
from typing import ClassVar

from hexflow_scheduler.active import ActiveCall
from hexflow_scheduler.dispatch import Choice, one_by_one
from hexflow_scheduler.fleet import Fleet
from hexflow_scheduler.load import InstanceLoad
from hexflow_scheduler.parameter import Parameter, Parameters

ALPHA = Parameter(
    name="alpha",
    default=0.5,
    low=0.0,
    high=1.0,
    meaning="1 looks at the instance's speed for the call alone, 0 at its queue alone.",
)
BETA = Parameter(
    name="beta",
    default=0.3,
    low=0.001,
    high=1000.0,
    meaning="How much a short queue is worth against a fast instance; no unit.",
)


class HexGenFlow:
    """Weigh how long the queue is against how fast the instance is for this call."""

    name: ClassVar[str] = "HexGenFlow"
    queue: ClassVar[str] = "Urgency"
    parameters: ClassVar[tuple[Parameter, ...]] = (ALPHA, BETA)

    def place(
        self, now: float, siblings: Sequence[ActiveCall], fleet: Fleet, values: Parameters, /
    ) -> Sequence[Choice]:
        """Place the calls one by one by the paper's score."""
        alpha, beta = values["alpha"], values["beta"]

        def scores(active: ActiveCall, candidates: Sequence[InstanceLoad]) -> Sequence[float]:
            computing = [load.call_seconds(active) for load in candidates]
            reference = sum(computing) / len(computing)
            return [
                score(
                    alpha=alpha,
                    beta=beta,
                    queue=max(load.queue_seconds(now), load.speed.quantum) / reference,
                    compute=seconds / reference,
                )
                for load, seconds in zip(candidates, computing, strict=True)
            ]

        return one_by_one(siblings, fleet, scores)


def score(*, alpha: float, beta: float, queue: float, compute: float) -> float:
    """Return the score of an instance; ``queue`` and ``compute`` are times over the reference."""
    return (1 - alpha) * beta / queue - alpha * compute
