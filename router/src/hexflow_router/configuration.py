"""The configuration: the resources as the router uses them. Where they come from is `sources.py`'s business.

Databases are only described here; ``databases.py`` opens them. This module knows no HTTP, no kernel and no clock.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hexflow_api import (
    Database,
    ResourceError,
    Resources,
    SecretKeyRef,
    SecretMissing,
    Stage,
    TextToSQLWorkflow,
    read_secret,
)
from hexflow_api.report import ReportedProblem
from hexflow_router.auth import Doorkeeper, Tenant, fingerprint
from hexflow_router.fleet import Fleet, fleet_of, missing_secret


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSetup:
    """Hold a stage with the model and the pools that serve it."""

    stage: Stage
    model: str
    pools: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseSetup:
    """Hold a database with its address, or with why there is none."""

    database: Database
    dsn: str | None = field(repr=False)
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowSetup:
    """Hold a workflow as the router runs it."""

    workflow: TextToSQLWorkflow
    stages: tuple[StageSetup, ...]
    databases: Mapping[str, DatabaseSetup]

    @property
    def name(self) -> str:
        """The workflow's name."""
        return self.workflow.name

    @property
    def policy(self) -> str:
        """The policy that its resource names."""
        return self.workflow.spec.scheduling.policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Hold everything that the resources say; never changes, is replaced."""

    fleet: Fleet = field(default_factory=Fleet)
    workflows: Mapping[str, WorkflowSetup] = field(default_factory=dict)
    doorkeeper: Doorkeeper = field(default_factory=Doorkeeper)
    problems: tuple[str, ...] = ()
    """What is wrong though the rest works: a missing secret, workflows that disagree."""
    reported: tuple[ReportedProblem, ...] = ()
    """Those of them that the operator cannot see for itself, as it passes them on."""

    @property
    def leading(self) -> WorkflowSetup | None:
        """The workflow whose policy is in force: the first listed."""
        return next(iter(self.workflows.values()), None)


def arrange(resources: Resources, secrets_dir: Path) -> Configuration:
    """Return the configuration that resources make, with secrets from files. Raises ResourceError."""
    resources.namespace  # noqa: B018 - raises where there are several
    fleet = fleet_of(resources, secrets_dir)
    problems: list[str] = [*fleet.problems, *resources.unknown_fields]
    reported: list[ReportedProblem] = [*fleet.reported]
    workflows: dict[str, WorkflowSetup] = {}
    tenants: dict[str, tuple[Tenant, ...]] = {}
    keys: dict[str, list[Tenant]] = {}
    for workflow in resources.workflows:
        workflows[workflow.name] = _workflow(workflow, resources, secrets_dir, problems)
        tenants[workflow.name] = tuple(_tenants(workflow, secrets_dir, keys, problems))
        reported += _missing(workflow, secrets_dir)
    policies = {setup.policy for setup in workflows.values()}
    if len(policies) > 1:
        first = next(iter(workflows.values()))
        problems.append(
            f"The workflows name different policies ({', '.join(sorted(policies))}); {first.policy} of"
            f" {first.name!r} is in force for all: make them agree."
        )
    return Configuration(
        fleet=fleet,
        workflows=workflows,
        doorkeeper=Doorkeeper(tenants=tenants, keys=keys),
        problems=tuple(problems),
        reported=tuple(reported),
    )


def _missing(workflow: TextToSQLWorkflow, secrets_dir: Path) -> Iterator[ReportedProblem]:
    """Yield each secret of a workflow that is not there."""
    refs = [(f"database {each.name}", each.dsn_secret_ref) for each in workflow.spec.databases]
    refs += [
        (f"tenant {each.name}", each.api_key_secret_ref)
        for each in workflow.spec.tenants
        if each.api_key_secret_ref
    ]
    for of, ref in refs:
        if _secret(secrets_dir, ref)[0] is None:
            yield missing_secret("TextToSQLWorkflow", workflow.name, ref=ref, of=of)


def _workflow(
    workflow: TextToSQLWorkflow, resources: Resources, secrets_dir: Path, problems: list[str]
) -> WorkflowSetup:
    stages = tuple(_stage(stage, workflow, resources, problems) for stage in workflow.spec.effective_stages())
    databases = {database.name: _database(database, secrets_dir) for database in workflow.spec.databases}
    problems += [
        f"Database {name!r} of workflow {workflow.name!r}: {setup.problem}"
        for name, setup in databases.items()
        if setup.problem
    ]
    return WorkflowSetup(workflow=workflow, stages=stages, databases=databases)


def _stage(
    stage: Stage, workflow: TextToSQLWorkflow, resources: Resources, problems: list[str]
) -> StageSetup:
    try:
        model = resources.model_of(workflow, stage)
    except ResourceError as problem:
        problems.append(str(problem))
        return StageSetup(stage=stage, model=stage.model or "", pools=frozenset())
    pools = frozenset(pool.name for pool in resources.pools_of(workflow, stage))
    return StageSetup(stage=stage, model=model, pools=pools)


def _database(database: Database, secrets_dir: Path) -> DatabaseSetup:
    dsn, problem = _secret(secrets_dir, database.dsn_secret_ref)
    return DatabaseSetup(database=database, dsn=dsn, problem=problem)


def _tenants(
    workflow: TextToSQLWorkflow, secrets_dir: Path, keys: dict[str, list[Tenant]], problems: list[str]
) -> list[Tenant]:
    tenants = []
    for resource in workflow.spec.tenants:
        tenant = Tenant(
            name=resource.name,
            workflow=workflow.name,
            slo_class=resource.slo_class,
            queries_per_minute=resource.queries_per_minute,
            max_in_flight=resource.max_in_flight,
            weight=resource.weight,
            keyed=resource.api_key_secret_ref is not None,
        )
        tenants.append(tenant)
        if resource.api_key_secret_ref is None:
            continue
        key, problem = _secret(secrets_dir, resource.api_key_secret_ref)
        if problem:
            problems.append(
                f"Tenant {tenant.name!r} of workflow {workflow.name!r} cannot ask anything: {problem}"
            )
        if key:
            keys.setdefault(fingerprint(key), []).append(tenant)
    return tenants


def _secret(directory: Path, ref: SecretKeyRef) -> tuple[str | None, str | None]:
    try:
        value = read_secret(directory, ref).strip()
    except SecretMissing as missing:
        return None, str(missing)
    return (value, None) if value else (None, f"The secret {ref} is empty: write its value.")
