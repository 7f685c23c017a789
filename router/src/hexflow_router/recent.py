"""How the questions of late went, for the status of each workflow: seconds and deadlines. Time is passed in."""

import math
from collections import defaultdict, deque
from dataclasses import dataclass

from hexflow_router.answer import Status
from hexflow_router.query import Query

KEPT = 1000
"""Questions of a workflow that are remembered."""
WINDOW_SECONDS = 3600.0
"""Age (the router's seconds) past which a question no longer counts."""
LEAST_FOR_P95 = 20
"""With fewer the 95th percentile is the slowest one."""


@dataclass(frozen=True, slots=True)
class _Ended:
    at: float
    seconds: float
    """Infinite where there was no answer."""
    met: bool


class RecentQuestions:
    """Remember how the last questions of each workflow ended. For one event loop."""

    def __init__(self) -> None:
        self._ended: defaultdict[str, deque[_Ended]] = defaultdict(lambda: deque(maxlen=KEPT))

    def note(self, query: Query) -> None:
        """Remember a question that has ended; one that nobody wanted any more says nothing."""
        ending = query.ending
        if ending is None or ending.status is Status.CANCELLED:
            return
        seconds = max(0.0, ending.at - query.arrival)
        answered = ending.status is Status.SUCCEEDED
        self._ended[query.workflow.name].append(
            _Ended(
                at=ending.at,
                seconds=seconds if answered else math.inf,
                met=answered and seconds <= query.deadline_seconds,
            )
        )

    def p95_seconds(self, workflow: str, now: float) -> float | None:
        """Return the seconds within which 95 of 100 were answered; None where too few came or were answered."""
        seconds = sorted(each.seconds for each in self._since(workflow, now))
        if len(seconds) < LEAST_FOR_P95:
            return None
        found = seconds[math.ceil(0.95 * len(seconds)) - 1]
        return found if math.isfinite(found) else None

    def attainment(self, workflow: str, now: float) -> float | None:
        """Return the share that was answered by its deadline; None where none came."""
        met = [each.met for each in self._since(workflow, now)]
        return sum(met) / len(met) if met else None

    def _since(self, workflow: str, now: float) -> list[_Ended]:
        return [each for each in self._ended.get(workflow, ()) if now - each.at <= WINDOW_SECONDS]
