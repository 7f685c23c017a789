"""What a simulated kernel knows of lengths that no kernel could: the truth, or estimates with an error put on.

For bounds (our rule with true lengths) and for how much a rule loses by wrong estimates.
"""

from dataclasses import dataclass
from random import Random

from hexflow_scheduler import Call, Estimates


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """Say what is expected of the length of each call's output."""

    true_lengths: bool = False
    """Its true length instead of what was learned."""
    error: float = 0.0
    """Times a lognormal factor of this standard deviation and median 1: 0.3 is an error of about 30 %."""
    seed: int = 0
    """Of the factors; a call has the same one under every policy."""


class InformedEstimates(Estimates):
    """Expect of each call's output what ``knowledge`` says; learn and predict all else as usual."""

    def __init__(self) -> None:
        super().__init__()
        self.knowledge = Knowledge()
        self._true: dict[str, int] = {}

    def tell(self, call_id: str, output_tokens: int) -> None:
        """Say how long a call's output will be, before it arrives."""
        self._true[call_id] = output_tokens

    def output_tokens(self, call: Call) -> float:
        """Return the expected output of the call, which ``tell`` told of."""
        true = self._true.pop(call.call_id, None)
        known = self.knowledge
        expected = super().output_tokens(call)
        if known.true_lengths and true is not None:
            expected = float(true)
        if known.error:
            expected *= Random(f"{known.seed}/{call.call_id}").lognormvariate(0.0, known.error)  # noqa: S311
        return max(1.0, min(expected, call.max_tokens))


def informed(estimates: Estimates | None, knowledge: Knowledge) -> InformedEstimates:
    """Return a copy of estimates that know more, or less."""
    made = InformedEstimates.from_data((estimates or Estimates()).to_data())
    assert isinstance(made, InformedEstimates)  # noqa: S101
    made.knowledge = knowledge
    return made
