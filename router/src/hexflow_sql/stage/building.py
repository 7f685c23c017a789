"""From the kind a workflow names to the stage that does it."""

from collections.abc import Callable, Mapping

from hexflow_sql.stage.candidates import CandidateGeneration
from hexflow_sql.stage.correction import SelfCorrection
from hexflow_sql.stage.evaluation import Evaluation
from hexflow_sql.stage.linking import SchemaLinking
from hexflow_sql.stage.protocol import Stage, StageSettings

_KINDS: Mapping[str, Callable[[StageSettings], Stage]] = {
    SchemaLinking.kind: SchemaLinking,
    CandidateGeneration.kind: CandidateGeneration,
    SelfCorrection.kind: SelfCorrection,
    Evaluation.kind: Evaluation,
}
"""A stage for each kind; adding one is one module and one line."""


def build_stage(kind: str, settings: StageSettings) -> Stage:
    """Build the stage of a kind. Raises ValueError for a kind that does not exist."""
    if kind not in _KINDS:
        raise ValueError(f"no stage of kind {kind!r}; there are {', '.join(_KINDS)}")
    return _KINDS[kind](settings)
