"""What the router of a namespace says of itself on its admin port (`GET /v1/report`), for the statuses of the resources.

The router writes it, the operator reads it at most once a minute and passes over what a newer router has added.
"""

from typing import Any

from pydantic import Field, ValidationError

from hexflow_api.condition import StatusModel


class ReportedProblem(StatusModel):
    """Say what is wrong with one resource, as far as the router sees."""

    kind: str
    """GPUPool or TextToSQLWorkflow."""
    name: str
    """Its name."""
    reason: str
    """One of `condition.Reason`, such as SecretNotFound."""
    message: str = ""
    """What to do, for a person."""


class ReportedInstance(StatusModel):
    """Say how one instance is."""

    url: str
    """Its address; that of an endpoint as the pool gives it."""
    ready: bool = False
    """Whether it takes calls."""
    message: str = ""
    """Why it does not."""


class ReportedPool(StatusModel):
    """Say how the instances of a pool are."""

    instances: tuple[ReportedInstance, ...] = ()
    """Every instance that the router knows."""


class ReportedParameter(StatusModel):
    """Say what a parameter is and who said so, as in `status.ParameterInForce`."""

    value: float
    """Its value."""
    source: str
    """Pinned, Seed, Tuned or Default."""
    since: str | None = None
    """When it came into force, as Kubernetes writes it."""


class ReportedWorkflow(StatusModel):
    """Say how a workflow does."""

    p95_seconds: float | None = None
    """Seconds within which 95 of 100 recent questions were answered; null where there were too few."""
    attainment: float | None = None
    """Share of recent questions that were answered by their deadline."""
    parameters: dict[str, ReportedParameter] | None = None
    """The policy's parameters in force."""


class Report(StatusModel):
    """Hold all that a router says."""

    problems: tuple[ReportedProblem, ...] = ()
    """What is wrong though the rest works."""
    pools: dict[str, ReportedPool] = Field(default_factory=dict)
    """By name."""
    workflows: dict[str, ReportedWorkflow] = Field(default_factory=dict)
    """By name."""

    def as_answered(self) -> dict[str, Any]:
        """Return the answer's JSON."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def read_report(content: Any) -> Report | None:
    """Return what a router has answered; None where it is of a version that cannot be understood."""
    try:
        return Report.model_validate(content)
    except ValidationError:
        return None
