"""TextToSQLWorkflow: a pipeline of stages, its deadline, its databases and its tenants."""

from typing import Annotated, Final, Literal

from pydantic import Field, Strict, StringConstraints, field_validator
from pydantic_core import PydanticCustomError

from hexflow_api.meta import (
    CRON,
    Flag,
    Label,
    LabelSelector,
    ModelName,
    Native,
    Placement,
    Resource,
    ResourceModel,
    SecretKeyRef,
    Text,
    keyed_by,
)
from hexflow_api.policy import DEFAULT_POLICY, PARAMETERS, POLICIES, POLICY_NAME

Dialect = Literal["sqlite"]
"""Kinds of database that a question can be answered from: the one place that lists them."""
StageKind = Literal["SchemaLinking", "CandidateGeneration", "SelfCorrection", "Evaluation"]
"""Kinds of stage that the router can run: the one place that lists them."""

Seconds = Annotated[int, Strict(), Field(ge=1, le=86_400)]
TableName = Annotated[str, StringConstraints(min_length=1, max_length=256)]
PoolNames = Annotated[tuple[Label, ...], Field(min_length=1, max_length=64)]


class PoolSelection(ResourceModel):
    """Say which pools may serve: by name or by label."""

    names: PoolNames | None = None
    """Names of pools in this namespace."""
    selector: LabelSelector | None = None
    """Labels of pools in this namespace."""


class Database(ResourceModel):
    """Name a database that questions may be asked of."""

    name: Label
    """The name that a question gives."""
    dialect: Dialect
    """The kind of database."""
    dsn_secret_ref: SecretKeyRef
    """Where its address is, as a URL such as sqlite:///shop.sqlite; always in a Secret, for it may hold a password."""
    include: Annotated[tuple[TableName, ...], Field(max_length=1024)] | None = None
    """Tables that the model may see and read; absent: all."""
    exclude: Annotated[tuple[TableName, ...], Field(max_length=1024)] = ()
    """Tables that are kept from the model."""
    sample_values: Annotated[int, Strict(), Field(ge=0, le=20)] = 3
    """Sample values of each column in the prompt; 0 keeps data out of it."""
    refresh_seconds: Annotated[int, Strict(), Field(ge=1, le=604_800)] = 300
    """Age at which the schema is read anew."""


class SloClass(ResourceModel):
    """Give a group of tenants a deadline of its own."""

    name: Label
    """The name that tenants give."""
    deadline_seconds: Seconds
    """Seconds from the question to its answer."""


class Slo(ResourceModel):
    """Say by when a question should be answered."""

    deadline_seconds: Seconds = 60
    """Seconds from the question to its answer."""
    on_deadline: Literal["Finish", "Abort"] = "Finish"
    """Finish: the answer comes late and says so. Abort: an error (504) at the deadline."""
    classes: Annotated[tuple[SloClass, ...], Field(max_length=16, json_schema_extra=keyed_by("name"))] = ()
    """Deadlines of groups of tenants."""
    objective: Literal["P95", "Req95", "Attainment", "Rate"] = "P95"
    """What tuning makes better.

    Where all workflows of the namespace say Attainment, a query that cannot be in time any more gives way to others.
    """


class Tenant(ResourceModel):
    """Name somebody who asks, known by an API key."""

    name: Label
    """The name in reports and metrics."""
    slo_class: Label | None = None
    """One of slo.classes; absent: slo.deadlineSeconds."""
    api_key_secret_ref: SecretKeyRef | None = None
    """The key that the tenant sends as `Authorization: Bearer …`; absent: requests without a key are this tenant's."""
    queries_per_minute: Annotated[int, Strict(), Field(ge=1, le=1_000_000)] | None = None
    """Queries that may begin in a minute; absent: no limit."""
    max_in_flight: Annotated[int, Strict(), Field(ge=1, le=100_000)] | None = None
    """Queries that may run at once; absent: no limit."""
    weight: Annotated[int, Strict(), Field(ge=1, le=1000)] = 1
    """Share among tenants under load; only scheduling.fairness and the queue rule VTC look at it."""


class Sampling(ResourceModel):
    """Set how the model draws its tokens; absent values are the stage's own."""

    temperature: Annotated[float, Strict(), Field(ge=0, le=2)] | None = None
    """0 takes the likeliest token, more draws more widely."""
    top_p: Annotated[float, Strict(), Field(gt=0, le=1)] | None = None
    """Share of the probability that is drawn from."""
    top_k: Annotated[int, Strict(), Field(ge=1, le=1_000_000)] | None = None
    """Number of likeliest tokens that are drawn from."""
    seed: Annotated[int, Strict(), Field(ge=0, le=2**31 - 1)] | None = None
    """First seed; parallel samples count up from it."""


class Stage(ResourceModel):
    """Describe one step of the pipeline."""

    name: Label
    """The stage's name in answers, metrics and `after`."""
    kind: StageKind
    """What it does."""
    after: Annotated[tuple[Label, ...], Field(max_length=32)] = ()
    """Stages that must be done before; empty: the one listed before this."""
    fan_out: Annotated[int, Strict(), Field(ge=1, le=64)] | None = None
    """Parallel calls of a CandidateGeneration stage; absent: 4."""
    samples: Annotated[int, Strict(), Field(ge=1, le=64)] | None = None
    """Samples asked for in each of these calls; absent: 1."""
    max_rounds: Annotated[int, Strict(), Field(ge=1, le=20)] | None = None
    """Corrections of one candidate in a SelfCorrection stage; absent: 3."""
    model: ModelName | None = None
    """Model of this stage; needed only where the pools serve several."""
    sampling: Sampling | None = None
    """How the model draws its tokens."""
    max_tokens: Annotated[int, Strict(), Field(ge=1, le=1_048_576)] | None = None
    """Upper bound on the output of one sample."""
    on_timeout: Literal["Skip", "Fail", "Continue"] = "Skip"
    """What the stage does when no time is left.

    Skip: the least that still gives an answer. Fail: fails the query. Continue: all of its work, late as it is.
    """
    pools: PoolNames | None = None
    """Narrows the workflow's pools for this stage."""


class Parameter(ResourceModel):
    """Set a policy's parameter: pinned (`value`), or open to tuning from `seed` within `min` and `max`."""

    value: Annotated[float, Strict()] | None = None
    """Pins it."""
    seed: Annotated[float, Strict()] | None = None
    """Where tuning begins."""
    min: Annotated[float, Strict()] | None = None
    """Least that tuning may choose."""
    max: Annotated[float, Strict()] | None = None
    """Most that tuning may choose."""

    @property
    def initial(self) -> float:
        """The value in force until something is tuned."""
        initial = self.seed if self.value is None else self.value
        assert initial is not None, "the rules admit no other case"  # noqa: S101
        return initial


class Pinned(ResourceModel):
    """Set a policy's parameter that is not tuned."""

    value: Annotated[float, Strict()]
    """Pins it; there is no seed, min and max, for it is never tuned."""

    @property
    def initial(self) -> float:
        """The value in force."""
        return self.value


class Scheduling(ResourceModel):
    """Choose the policy that places and orders calls."""

    policy: Annotated[str, Field(json_schema_extra={"pattern": POLICY_NAME, "maxLength": 63})] = (
        DEFAULT_POLICY
    )
    """A dispatch rule, or `<dispatch rule>+<queue rule>`; docs/reference/policies.md has each."""
    admission: Literal["Always", "InTime", "Degrade"] = "Always"
    """What becomes of a question that is expected to be late on every instance.

    Always: it is let in. InTime: an error (429) that says when to ask again. Degrade: let in, with fewer candidates.
    """
    drop_late_candidates: Flag = False
    """Whether a late query goes without the last of its candidates, or of their corrections, once it has others."""
    alpha: Parameter | None = None
    """HexGenFlow's balance between the fastest instance (1) and the shortest queue (0)."""
    beta: Parameter | None = None
    """HexGenFlow's scale of the queue term."""
    exponent: Parameter | None = None
    """LeastHarm's weight of late queries: 1 minds the mean, more the latest."""
    fairness: Pinned | None = None
    """How far LeastHarm lets a tenant with more queries under way than others give way to them: 0 (absent) not at all, 1 in proportion."""

    @field_validator("policy")
    @classmethod
    def _exists(cls, policy: str) -> str:
        if policy not in POLICIES:
            raise PydanticCustomError("unknown_policy", "must be the name of a policy")
        return policy

    @property
    def rules(self) -> tuple[str, str]:
        """The dispatch rule and the queue rule that the policy's name stands for."""
        return POLICIES[self.policy]

    @property
    def initial_parameters(self) -> dict[str, float]:
        """The values that are given for parameters of the policy's dispatch rule; those of other rules are left out."""
        given: dict[str, Parameter | Pinned | None] = {
            "alpha": self.alpha,
            "beta": self.beta,
            "exponent": self.exponent,
            "fairness": self.fairness,
        }
        taken = PARAMETERS.get(self.rules[0], {})
        return {name: each.initial for name, each in given.items() if each is not None and name in taken}


class Tuning(ResourceModel):
    """Say whether parameters follow the traffic."""

    mode: Literal["Off", "Recommend", "Auto"] = "Off"
    """Recommend writes what it found to the status, Auto puts it in force; write "Off" with quotes, for kubectl reads YAML 1.1."""
    schedule: Annotated[str, StringConstraints(max_length=100, pattern=CRON)] | None = None
    """When to tune, in cron's notation, such as */5 * * * *."""
    window_seconds: Annotated[int, Strict(), Field(ge=60, le=2_592_000)] | None = None
    """Age of the oldest query that counts."""
    min_queries: Annotated[int, Strict(), Field(ge=1, le=1_000_000)] | None = None
    """Queries without which nothing is tuned."""
    min_improvement: Annotated[float, Strict(), Field(ge=0, le=1)] | None = None
    """Share by which the objective must get better for a change."""
    max_step: Annotated[float, Strict(), Field(gt=0)] | None = None
    """Most that a parameter changes at a time."""


class Router(ResourceModel):
    """Adjust the pods of the namespace's router."""

    image: Text | None = None
    """Image of the router; absent: the operator's own version."""
    resources: Native | None = None
    """CPU and memory, as Kubernetes has them."""
    placement: Placement | None = None
    """Where it may run."""
    service_monitor: Flag = False
    """Whether a ServiceMonitor is made for Prometheus' operator."""


class TextToSQLWorkflowSpec(ResourceModel):
    """Say how questions become rows."""

    pools: PoolSelection | None = None
    """Pools that may serve; absent: every pool of the namespace."""
    databases: Annotated[
        tuple[Database, ...], Field(min_length=1, max_length=64, json_schema_extra=keyed_by("name"))
    ]
    """Databases that questions may be asked of."""
    slo: Slo = Slo()
    """By when a question should be answered."""
    tenants: Annotated[tuple[Tenant, ...], Field(max_length=256, json_schema_extra=keyed_by("name"))] = ()
    """Who may ask; empty: everybody who reaches the router."""
    stages: Annotated[tuple[Stage, ...], Field(max_length=32, json_schema_extra=keyed_by("name"))] = ()
    """The pipeline; empty: the four stages of the paper."""
    scheduling: Scheduling = Scheduling()
    """How calls are placed and ordered."""
    tuning: Tuning | None = None
    """Whether parameters follow the traffic."""
    router: Router | None = None
    """The pods of the namespace's router."""

    def effective_stages(self) -> tuple[Stage, ...]:
        """Return the pipeline with every default filled in, each stage's ``after`` written out."""
        stages = self.stages or PAPER_STAGES
        befores = ((), *((stage.name,) for stage in stages))
        return tuple(_filled(stage, before=before) for stage, before in zip(stages, befores, strict=False))

    def database(self, name: str) -> Database | None:
        """Return the database of that name, if there is one."""
        return next((database for database in self.databases if database.name == name), None)

    def tenant(self, name: str) -> Tenant | None:
        """Return the tenant of that name, if there is one."""
        return next((tenant for tenant in self.tenants if tenant.name == name), None)

    def deadline_seconds(self, tenant: str | None = None) -> int:
        """Return the seconds within which a question of ``tenant`` should be answered."""
        asker = self.tenant(tenant) if tenant else None
        classes = {slo_class.name: slo_class.deadline_seconds for slo_class in self.slo.classes}
        return (
            classes.get(asker.slo_class or "", self.slo.deadline_seconds)
            if asker
            else self.slo.deadline_seconds
        )


class TextToSQLWorkflow(Resource):
    """A pipeline of stages, its deadline, its databases and its tenants."""

    kind: Literal["TextToSQLWorkflow"] = "TextToSQLWorkflow"
    spec: TextToSQLWorkflowSpec


DEFAULT_FAN_OUT: Final = 4
"""Parallel calls of a CandidateGeneration stage that says nothing."""
DEFAULT_MAX_ROUNDS: Final = 3
"""Rounds of a SelfCorrection stage that says nothing."""

PAPER_STAGES: Final = (
    Stage(name="schema-linking", kind="SchemaLinking"),
    Stage(name="candidate-generation", kind="CandidateGeneration"),
    Stage(name="self-correction", kind="SelfCorrection"),
    Stage(name="evaluation", kind="Evaluation"),
)
"""The pipeline of HexGen-Flow (arXiv 2505.05286), after CHESS."""


def _filled(stage: Stage, *, before: tuple[str, ...]) -> Stage:
    generates = stage.kind == "CandidateGeneration"
    return stage.model_copy(
        update={
            "after": stage.after or before,
            "fan_out": stage.fan_out or (DEFAULT_FAN_OUT if generates else None),
            "samples": stage.samples or (1 if generates else None),
            "max_rounds": stage.max_rounds
            or (DEFAULT_MAX_ROUNDS if stage.kind == "SelfCorrection" else None),
        }
    )
