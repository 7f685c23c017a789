"""The stages of a workflow: linking, candidates, correction, evaluation; each a module."""

from hexflow_sql.stage.building import build_stage
from hexflow_sql.stage.events import Event, Observer
from hexflow_sql.stage.protocol import Stage, StageSettings

__all__ = ["Event", "Observer", "Stage", "StageSettings", "build_stage"]
