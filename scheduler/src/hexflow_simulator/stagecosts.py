"""What the scheduler of HexGen-Flow's authors believes: a call of a stage takes so long on a GPU, whatever its lengths.

One constant for each stage and GPU, from the tables in their code; nothing is learned. For the reproduction.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from hexflow_scheduler import Call, Estimates, Instance, Usage
from hexflow_scheduler.cost import MeanSpeed, Speed

STAGES = ("retriever", "keywords", "candidate", "revise", "tester", "unit-tests", "evaluate")
"""Kinds of stages: what the name of a stage starts with."""

SECONDS: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "A100": (0.23, 1.14, 18.2, 3.33, 0.17, 2.54, 0.87),
        "A6000": (0.49, 2.11, 34.3, 8.03, 0.39, 4.56, 1.79),
        "L40S": (0.40, 2.03, 32.6, 5.89, 0.31, 4.55, 1.54),
    }
)
"""Seconds of a call by GPU, in the order of ``STAGES``: Llama-3.1-70B (their tables say L40)."""

TEMPLATE_ROUNDS = 4.0
"""Corrections in the template by which they reckon what is still to come."""


@dataclass(frozen=True, slots=True)
class TableSpeed(Speed):
    """Look seconds up: in place of its tokens, the output of a call is the number of its stage."""

    seconds: tuple[float, ...] = ()

    def prefill_seconds(self, prompt_tokens: float, *, cached_tokens: float = 0) -> float:
        """Return nothing: it is in the seconds of the call."""
        return 0.0

    def decode_seconds(self, prompt_tokens: float, output_tokens: float, *, batch: float = 1) -> float:
        """Return the seconds of the call, whatever its prompt and batch."""
        # What learns from a call asks with its true length; nothing is made of the answer.
        return self.seconds[min(int(output_tokens), len(STAGES) - 1)]

    def call_seconds(
        self, prompt_tokens: float, output_tokens: float, *, batch: float = 1, cached_tokens: float = 0
    ) -> float:
        """Return the seconds of the call, whatever its prompt and batch."""
        # What learns from a call asks with its true length; nothing is made of the answer.
        return self.seconds[min(int(output_tokens), len(STAGES) - 1)]


class StageCosts(Estimates):
    """Expect of every call the constant of its stage and GPU."""

    def __init__(self, gpus: Mapping[str, str]) -> None:
        """Take the GPU of each instance, by its id."""
        super().__init__()
        self._gpus = dict(gpus)

    def output_tokens(self, call: Call) -> float:
        """Return the number of the call's stage, which is what ``TableSpeed`` asks for."""
        return float(number(call.stage))

    def speed(self, instance: Instance) -> Speed:
        """Return the table of the instance's GPU."""
        return TableSpeed(instance.profile, 1.0, 1.0, SECONDS[self._gpus[instance.instance_id]])

    def rounds(self, workflow: str, stage: str) -> float:
        """Return the corrections of the template, and one call for every other stage."""
        return TEMPLATE_ROUNDS if stage.startswith("revise") else 1.0

    def stage_seconds(self, workflow: str, stage: str, model: str, fleet: MeanSpeed) -> float:
        """Return the mean seconds of the stage over all instances: three calls for the retriever's second part."""
        rounds = 3.0 if stage == "retriever-again" else self.rounds(workflow, stage)
        place = number(stage)
        return rounds * sum(SECONDS[gpu][place] for gpu in self._gpus.values()) / len(self._gpus)

    def rest_seconds(self, call: Call) -> float:
        """Return nothing: their slack is that of the deadline, whatever is still to come."""
        return 0.0

    def finished(self, call: Call, usage: Usage) -> None:
        """Learn nothing."""

    def timed(self, instance_id: str, *, prefill: float | None, decode: float | None) -> None:
        """Learn nothing."""


def number(stage: str) -> int:
    """Return the place of a stage in ``STAGES``; raises ValueError for one that is none of them."""
    for place, kind in enumerate(STAGES):
        if stage.startswith(kind):
            return place
    raise ValueError(f"the authors had no stage like {stage!r}")
