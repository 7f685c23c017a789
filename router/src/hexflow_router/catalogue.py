"""What the OpenAI surface needs of the configuration: models, workflows' terms, and who may come in.

Made anew whenever the configuration changes; never changes itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hexflow_router.auth import Doorkeeper
from hexflow_router.configuration import Configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowTerms:
    """Hold what a call takes over from the workflow that it names."""

    name: str
    pools: frozenset[str]
    deadline_seconds: float
    class_deadlines: Mapping[str, float] = field(default_factory=dict)

    def deadline_of(self, slo_class: str | None) -> float:
        """Return the deadline in seconds of a class, or of the workflow where it names none."""
        return self.class_deadlines.get(slo_class or "", self.deadline_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """Hold what is offered."""

    models: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Pools that serve each model."""
    workflows: Mapping[str, WorkflowTerms] = field(default_factory=dict)
    doorkeeper: Doorkeeper = field(default_factory=Doorkeeper)


def catalogue_of(configuration: Configuration) -> Catalogue:
    """Return what a configuration offers."""
    models: dict[str, set[str]] = {}
    for pool in configuration.fleet.pools:
        models.setdefault(pool.model, set()).add(pool.name)
    workflows = {}
    for name, setup in configuration.workflows.items():
        slo = setup.workflow.spec.slo
        workflows[name] = WorkflowTerms(
            name=name,
            pools=frozenset().union(*(stage.pools for stage in setup.stages)),
            deadline_seconds=float(slo.deadline_seconds),
            class_deadlines={item.name: float(item.deadline_seconds) for item in slo.classes},
        )
    return Catalogue(
        models={model: frozenset(pools) for model, pools in models.items()},
        workflows=workflows,
        doorkeeper=configuration.doorkeeper,
    )
