"""What the operator says of a GPUPool and of a TextToSQLWorkflow: the ``status`` of each.

Written by the operator alone. A reader passes over what a newer operator has added.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, Strict, StringConstraints

from hexflow_api.condition import Condition, Generation, StatusModel, Timestamp
from hexflow_api.meta import keyed_by

Count = Annotated[int, Strict(), Field(ge=0)]
Url = Annotated[str, StringConstraints(max_length=2048)]


class ResourceStatus(StatusModel):
    """Hold what every status has."""

    observed_generation: Generation | None = None
    """The metadata.generation that the rest of the status is about."""
    conditions: Annotated[
        tuple[Condition, ...], Field(max_length=16, json_schema_extra=keyed_by("type"))
    ] = ()
    """What is so and what is not, and why; Ready is the sum of it."""

    def as_written(self) -> dict[str, Any]:
        """Return the status as it is written to the API server: camelCase, without what has no value."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)


class GPUPoolStatus(ResourceStatus):
    """Say how the pool is."""

    replicas: Count | None = None
    """Instances that there are."""
    ready_replicas: Count | None = None
    """Instances that are ready to answer."""
    ready: Annotated[str, StringConstraints(max_length=32)] | None = None
    """Ready and wanted instances as kubectl shows them, such as 2/3."""
    selector: Annotated[str, StringConstraints(max_length=4096)] | None = None
    """Labels of the pool's pods in one line, which an autoscaler reads."""
    endpoints: Annotated[tuple[Url, ...], Field(max_length=256)] | None = None
    """Addresses at which the pool's instances answer."""
    profile: Annotated[str, StringConstraints(max_length=512)] | None = None
    """Name of the speed profile in force."""


class ParameterInForce(StatusModel):
    """Say what a policy's parameter is, and who said so."""

    value: Annotated[float, Strict()]
    """Its value."""
    source: Literal["Pinned", "Seed", "Tuned", "Default"]
    """Pinned by value, the seed of tuning, found by tuning, or the policy's own default."""
    since: Timestamp | None = None
    """When it came into force."""


class RecommendedParameter(StatusModel):
    """Say what tuning would choose."""

    value: Annotated[float, Strict()]
    """Its value."""
    since: Timestamp | None = None
    """When tuning found it."""


class TextToSQLWorkflowStatus(ResourceStatus):
    """Say how the workflow is, and how it does."""

    url: Url | None = None
    """Where questions are asked, within the cluster."""
    policy: Annotated[str, StringConstraints(max_length=128)] | None = None
    """The policy in force: the oldest workflow's of the namespace."""
    parameters: Annotated[dict[str, ParameterInForce], Field(max_length=16)] | None = None
    """The policy's parameters in force, by name."""
    recommended: Annotated[dict[str, RecommendedParameter], Field(max_length=16)] | None = None
    """What tuning would choose in their place, by name."""
    p95_seconds: Annotated[float, Field(ge=0)] | None = None
    """Seconds within which 95 of 100 recent questions were answered."""
    attainment: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share of recent questions that were answered by their deadline."""
    attainment_percent: Annotated[str, StringConstraints(max_length=8)] | None = None
    """The same as kubectl shows it, such as 97.5."""
