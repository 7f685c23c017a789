"""Conditions: what a status says about an object, in the form of Kubernetes' own (metav1.Condition).

A reason is one CamelCase word that a person can look up and a program can compare; the message beside it has
the names and numbers. Knows no resource in particular.
"""

from enum import StrEnum
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, Strict, StringConstraints
from pydantic.alias_generators import to_camel

CONDITION_TYPE = r"^[A-Z][A-Za-z0-9]*$"
REASON = r"^[A-Z][A-Za-z0-9]*$"

Timestamp = Annotated[str, StringConstraints(max_length=40), Field(json_schema_extra={"format": "date-time"})]
"""A point in time as Kubernetes writes it: ``2026-11-30T06:48:00Z``."""
Generation = Annotated[int, Strict(), Field(ge=0)]

MAX_MESSAGE: Final = 4096
"""Characters of a condition's message that fit; whoever writes a longer one cuts it."""


class StatusModel(BaseModel):
    """Speak camelCase in YAML and snake_case in Python, and pass over what a newer version has added."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        extra="ignore",
        frozen=True,
        use_attribute_docstrings=True,
        allow_inf_nan=False,
    )


class Explained(StrEnum):
    """A word that carries a sentence about itself."""

    sentence: str

    def __new__(cls, word: str, sentence: str = "") -> Self:
        """Make a member that is its word and carries its sentence."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.sentence = sentence
        return member


class ConditionType(Explained):
    """List what conditions are about, each with what it means when it is True."""

    READY = "Ready", "Questions and calls are served as the object asks."
    RECONCILING = "Reconciling", "A change is on its way; wait."
    STALLED = "Stalled", "Nothing gets better until somebody changes something."
    SETTINGS_IN_FORCE = (
        "SettingsInForce",
        "The workflow's policy and router settings are those of the namespace's router.",
    )
    TUNING_FRESH = "TuningFresh", "Tuning has looked at recent traffic; it says nothing about Ready."


class Reason(Explained):
    """List why a condition is as it is, each with what it means and, where there is something to do, with what to do."""

    # all is well, or will be
    SERVING = "Serving", "Every instance that is wanted is ready."
    PARTLY_SERVING = (
        "PartlyServing",
        "Some instances serve and others are not ready yet; the message says why.",
    )
    SETTLED = "Settled", "Everything is as the object asks, and nothing is on its way."
    PROGRESSING = "Progressing", "A change is on its way; wait."
    MODEL_LOADING = "ModelLoading", "The engine runs and its model is not loaded yet; wait."
    STARTING = "Starting", "Pods have been placed and their containers are being started; wait."
    SUSPENDED = "Suspended", "The pool is kept at no instance; set suspend to false to have it serve."
    SCALED_TO_ZERO = "ScaledToZero", "No instance is wanted; scale the pool up to have it serve."

    # the cluster has no place, or pods fail
    UNSCHEDULABLE = (
        "Unschedulable",
        "No node can take a pod; the message has the scheduler's words. Add nodes, or change gpu or placement.",
    )
    QUOTA_EXCEEDED = "QuotaExceeded", "The namespace's quota allows no further pod; raise it or want fewer."
    IMAGE_NOT_PULLED = "ImageNotPulled", "The image cannot be pulled; correct its name or the pull secret."
    CONTAINER_FAILED = "ContainerFailed", "A container ends again and again; look at its log."
    PODS_REFUSED = "PodsRefused", "The API server refuses the pods; the message has its words."

    # what is named is not there
    POOL_NOT_FOUND = (
        "PoolNotFound",
        "A pool that the workflow names is not there; make it or correct the name.",
    )
    NO_POOL = "NoPool", "No pool of the namespace may serve the workflow; make one or widen pools."
    SECRET_NOT_FOUND = "SecretNotFound", "A Secret or its key is not there; make it or correct the name."
    CONFIG_MAP_NOT_FOUND = (
        "ConfigMapNotFound",
        "A ConfigMap or its key is not there; make it or correct the name.",
    )
    NO_PODS_SELECTED = (
        "NoPodsSelected",
        "No pod has the selector's labels; correct the selector or start pods.",
    )
    PROFILE_NOT_FOUND = (
        "ProfileNotFound",
        "The profile that the pool names is not there or cannot be read; correct it or leave profile out.",
    )

    # what is there does not fit
    MODEL_NOT_SERVED = (
        "ModelNotServed",
        "No pool serves the model of a stage; add one or change the stage's model.",
    )
    MODEL_AMBIGUOUS = (
        "ModelAmbiguous",
        "The pools of a stage serve several models; say which with model, or fewer with pools.",
    )
    POOLS_NOT_READY = "PoolsNotReady", "No pool of the workflow has an instance that is ready; see the pools."
    ROUTER_NOT_READY = "RouterNotReady", "The namespace's router is not ready; look at its pods."
    ENGINE_UNREACHABLE = (
        "EngineUnreachable",
        "The router cannot reach an engine; the message has its address.",
    )
    OTHER_SETTINGS_IN_FORCE = (
        "OtherSettingsInForce",
        "An older workflow of the namespace asks for another policy or other router settings, and the oldest wins.",
    )
    TOO_LARGE = (
        "TooLarge",
        "The resources of the namespace do not fit the router's ConfigMap; spread them over namespaces.",
    )
    INVALID_SPEC = (
        "InvalidSpec",
        "The object breaks a rule that this version has and the one that took the object had not; correct it.",
    )
    UNKNOWN_FIELDS = (
        "UnknownFields",
        "The object has fields that only a newer operator knows; upgrade the operator or take them out.",
    )

    # the operator cannot do its work
    NAME_TAKEN = (
        "NameTaken",
        "An object that is not HexFlow's has the name of one it needs; rename or delete it.",
    )
    FORBIDDEN = "Forbidden", "The operator lacks a right; the message says which. Install its ClusterRole."
    APPLY_FAILED = "ApplyFailed", "The API server refuses an object that the operator makes; it tries again."

    # tuning
    TUNED = "Tuned", "Parameters have been looked at and the best known ones are in force or recommended."
    TUNING_OFF = "TuningOff", "The workflow asks for no tuning."
    NOT_TUNED_YET = "NotTunedYet", "The first run is still to come; see tuning.schedule."
    TOO_FEW_QUERIES = "TooFewQueries", "There was too little traffic to learn from; see tuning.minQueries."
    TUNING_FAILED = "TuningFailed", "The last runs ended badly; look at the tuner's log."
    ROLLED_BACK = (
        "RolledBack",
        "Attainment fell after the last change, and the values before it are in force.",
    )


class Condition(StatusModel):
    """Say one thing about an object: whether it is so, since when, and why."""

    type: Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=CONDITION_TYPE)]
    """What it is about."""
    status: Literal["True", "False", "Unknown"]
    """Whether it is so."""
    reason: Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=REASON)]
    """Why, in one word that does not change."""
    message: Annotated[str, StringConstraints(max_length=MAX_MESSAGE)]
    """Why, in words for a person."""
    last_transition_time: Timestamp
    """When status changed last."""
    observed_generation: Generation | None = None
    """The metadata.generation that this was found out about."""
