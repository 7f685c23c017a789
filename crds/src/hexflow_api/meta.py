"""What all resources share: their shape, their names, and references to Secrets and ConfigMaps.

Knows no resource in particular.
"""

import re
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    Strict,
    StringConstraints,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from hexflow_api.violation import refuse_violations

API_GROUP: Final = "hexflow.dev"
API_VERSION: Final = "hexflow.dev/v1alpha1"
"""What ``apiVersion`` says in each of our resources."""

DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
DNS_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
DATA_KEY = r"^\.?[-_a-zA-Z0-9][-._a-zA-Z0-9]*$"
LABEL_VALUE = r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
LABEL_KEY = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
MODEL_NAME = r"^[^\s@]+$"
WEIGHTS_URL = r"^(hf|pvc|s3|oci)://.+$"
ABSOLUTE_PATH = r"^/.+$"
CRON = (
    r"^(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|[-0-9A-Za-z*/,?]+( +[-0-9A-Za-z*/,?]+){4})$"
)
QUANTITY = r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$"

PATTERN_WORDS = {
    DNS_LABEL: "may hold lower-case letters, digits and '-', and begins and ends with a letter or digit",
    DNS_SUBDOMAIN: "may hold lower-case letters, digits, '-' and '.', and begins and ends with a letter or digit",
    DATA_KEY: "may hold letters, digits, '-', '_' and '.', and does not begin with '..'",
    LABEL_VALUE: "may hold letters, digits, '-', '_' and '.', and begins and ends with a letter or digit",
    MODEL_NAME: "must hold no blank and no '@' (which parts a model's name from a stage's in requests)",
    WEIGHTS_URL: "must begin with hf://, pvc://, s3:// or oci://",
    ABSOLUTE_PATH: "must be an absolute path",
    CRON: "must be five fields (minute, hour, day, month, weekday) as cron has them, or a word like @hourly",
    QUANTITY: "must be a quantity like 500m, 2 or 8Gi",
}
"""What each pattern asks for, in words, for error messages."""

Flag = Annotated[bool, Strict()]
Text = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=DNS_LABEL)]
"""A DNS label: the name of a stage, a database, a tenant, a class."""
LabelValue = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=LABEL_VALUE)]
ObjectName = Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=DNS_SUBDOMAIN)]
"""The name of an object that others make: a Secret, a ConfigMap, a claim."""
DataKey = Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=DATA_KEY)]
ModelName = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=MODEL_NAME)]
Quantity = Annotated[str, StringConstraints(min_length=1, max_length=32, pattern=QUANTITY)]
Native = Annotated[dict[str, Any], Field(max_length=64)]
"""A piece of a native Kubernetes object, handed on as it is."""
Words = Annotated[str, StringConstraints(max_length=4096)]
"""Text that may be empty."""
Labels = Annotated[dict[str, Annotated[str, StringConstraints(max_length=253)]], Field(max_length=64)]


def keyed_by(key: str) -> dict[str, JsonValue]:
    """Return what makes a list a map to the API server: items are told apart by ``key``, and merged by it."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}


class ResourceModel(BaseModel):
    """Refuse unknown fields, speak camelCase in YAML and snake_case in Python, and never change."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        allow_inf_nan=False,
    )


class ObjectMeta(BaseModel):
    """Hold what Kubernetes keeps about every object; fields that HexFlow does not use are tolerated."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, extra="ignore", frozen=True
    )

    name: ObjectName
    namespace: Label = "default"
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    uid: str | None = None
    generation: int | None = None

    @field_validator("labels", "annotations")
    @classmethod
    def _keys(cls, given: dict[str, str]) -> dict[str, str]:
        for key in given:
            if not re.search(LABEL_KEY, key) or len(key) > 317:
                raise PydanticCustomError(
                    "label_key",
                    "'{key}' is no key: at most 63 letters, digits, '-', '_' and '.', perhaps after a domain and '/'",
                    {"key": key},
                )
        return given

    @field_validator("labels")
    @classmethod
    def _values(cls, given: dict[str, str]) -> dict[str, str]:
        for key, value in given.items():
            if value and (not re.search(LABEL_VALUE, value) or len(value) > 63):
                raise PydanticCustomError(
                    "label_value",
                    "the value of '{key}' may hold at most 63 letters, digits, '-', '_' and '.'; annotations take any text",
                    {"key": key},
                )
        return given


class Resource(ResourceModel):
    """Hold what every resource has but its spec, and obey the rules of its kind."""

    api_version: Literal["hexflow.dev/v1alpha1"] = API_VERSION
    kind: str
    metadata: ObjectMeta
    status: dict[str, Any] | None = Field(default=None, repr=False, exclude=True)
    """Written by the operator; ignored here."""

    @model_validator(mode="after")
    def _obey_rules(self) -> Self:
        refuse_violations(self)
        return self

    @property
    def name(self) -> str:
        """Its name, unique in its namespace."""
        return self.metadata.name


class PlainObjectMeta(BaseModel):
    """Hold the names of a Secret or a ConfigMap."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    name: ObjectName
    namespace: Label = "default"


class SecretKeyRef(ResourceModel):
    """Name one key of a Secret in the namespace of the resource."""

    name: ObjectName
    """Name of the Secret."""
    key: DataKey
    """Key within the Secret's data."""

    def __str__(self) -> str:
        return f"{self.name}/{self.key}"


class ConfigMapKeyRef(ResourceModel):
    """Name one key of a ConfigMap in the namespace of the resource."""

    name: ObjectName
    """Name of the ConfigMap."""
    key: DataKey
    """Key within the ConfigMap's data."""

    def __str__(self) -> str:
        return f"{self.name}/{self.key}"


class LabelRequirement(ResourceModel):
    """Ask something of one label, as Kubernetes' selectors do."""

    key: Text
    """The label."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """What is asked of it."""
    values: Annotated[tuple[Annotated[str, StringConstraints(max_length=63)], ...], Field(max_length=64)] = ()
    """Values for In and NotIn."""


class LabelSelector(ResourceModel):
    """Select objects by their labels; all that is said must hold."""

    match_labels: Labels = Field(default_factory=dict)
    """Labels and the values that they must have."""
    match_expressions: Annotated[tuple[LabelRequirement, ...], Field(max_length=32)] = ()
    """Further requirements."""

    def matches(self, labels: dict[str, str]) -> bool:
        """Tell whether an object with ``labels`` is selected; an empty selector selects every object."""
        if any(labels.get(key) != value for key, value in self.match_labels.items()):
            return False
        return all(_holds(requirement, labels) for requirement in self.match_expressions)


def _holds(requirement: LabelRequirement, labels: dict[str, str]) -> bool:
    value = labels.get(requirement.key)
    if requirement.operator == "Exists":
        return value is not None
    if requirement.operator == "DoesNotExist":
        return value is None
    if requirement.operator == "In":
        return value in requirement.values
    return value not in requirement.values


class Placement(ResourceModel):
    """Say where in the cluster pods may run; native Kubernetes fields, handed on as they are."""

    node_selector: Labels | None = None
    """Labels that a node must have."""
    affinity: Native | None = None
    """Kubernetes' affinity."""
    tolerations: Annotated[tuple[Native, ...], Field(max_length=64)] | None = None
    """Taints that are tolerated."""
    runtime_class_name: ObjectName | None = None
    """Container runtime, such as nvidia."""
    priority_class_name: ObjectName | None = None
    """PriorityClass of the pods."""
    topology_spread_constraints: Annotated[tuple[Native, ...], Field(max_length=16)] | None = None
    """How pods spread over zones and nodes."""
    scheduler_name: ObjectName | None = None
    """Scheduler of the pods, where it is not Kubernetes' own."""
