"""HexGenFlow literal: a fast instance with a short queue, by the paper's score as it is printed, in seconds.

Source: HexGen-Flow (arXiv 2505.05286), ``score = (1 - alpha) * beta / t_queue - alpha * t_comp``, the
largest wins. The first term is 1/seconds and the second seconds, so beta has the unit s² and fits one
model on one fleet: with beta = 1 the first term is nothing against calls of several seconds, and all go to
the fastest GPU; on the published traces about 1000 works. ``HexGenFlow`` is the same without units.

The first term is infinite for an empty queue. The authors' router divides by the work it ever assigned to
an engine, which is never taken off again and therefore above zero after the first call; that has no
meaning in a system that runs for long. Here ``t_queue`` is what is left to do, and at least one step.
"""

from collections.abc import Sequence
from typing import ClassVar

from hexflow_scheduler.active import ActiveCall
from hexflow_scheduler.dispatch import Choice, one_by_one
from hexflow_scheduler.dispatch.hexgenflow import ALPHA, score
from hexflow_scheduler.fleet import Fleet
from hexflow_scheduler.load import InstanceLoad
from hexflow_scheduler.parameter import Parameter, Parameters

BETA = Parameter(
    name="beta",
    default=1000.0,
    low=0.001,
    high=1e9,
    meaning="How much a short queue is worth against a fast instance, in square seconds.",
)


class HexGenFlowLiteral:
    """Weigh how long the queue is against how fast the instance is, in the paper's units."""

    name: ClassVar[str] = "HexGenFlowLiteral"
    queue: ClassVar[str] = "Urgency"
    parameters: ClassVar[tuple[Parameter, ...]] = (ALPHA, BETA)

    def place(
        self, now: float, siblings: Sequence[ActiveCall], fleet: Fleet, values: Parameters, /
    ) -> Sequence[Choice]:
        """Place the calls one by one by the score."""
        alpha, beta = values["alpha"], values["beta"]

        def scores(active: ActiveCall, candidates: Sequence[InstanceLoad]) -> Sequence[float]:
            return [
                score(
                    alpha=alpha,
                    beta=beta,
                    queue=max(load.queue_seconds(now), load.speed.quantum),
                    compute=load.call_seconds(active),
                )
                for load in candidates
            ]

        return one_by_one(siblings, fleet, scores)
