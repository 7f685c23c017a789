"""The configuration in force: the resources as the router uses them, and the watch over their files.

A change that cannot be read leaves the last good configuration in force and says so (``problems``, a
metric, ``/readyz``). Databases are only described here; ``databases.py`` opens them. This module knows no
HTTP and no kernel.
"""

import asyncio
import contextlib
import logging
import tempfile
from collections.abc import Callable, Mapping, Sequence
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
    load_resources,
    read_secret,
    write_secrets,
)
from hexflow_router.auth import Doorkeeper, Tenant, fingerprint
from hexflow_router.filewatch import looks
from hexflow_router.fleet import Fleet, fleet_of

_log = logging.getLogger("hexflow.router.configuration")


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

    @property
    def leading(self) -> WorkflowSetup | None:
        """The workflow whose policy is in force: the first listed."""
        return next(iter(self.workflows.values()), None)


def read_configuration(paths: Sequence[Path], secrets_dir: Path | None) -> Configuration:
    """Read resources from files and folders. Blocking. Raises ResourceError when they cannot be used.

    Without ``secrets_dir`` the Secrets among the resources are used. With it, as in a cluster, fields that only a
    newer version knows are passed over: a roll-back finds what that version wrote.
    """
    if secrets_dir is not None:
        return arrange(load_resources(paths, secrets_elsewhere=True, lenient=True), secrets_dir)
    resources = load_resources(paths)
    with tempfile.TemporaryDirectory(prefix="hexflow-secrets-") as folder:
        write_secrets(resources, Path(folder))
        return arrange(resources, Path(folder))


def arrange(resources: Resources, secrets_dir: Path) -> Configuration:
    """Return the configuration that resources make, with secrets from files. Raises ResourceError."""
    resources.namespace  # noqa: B018 - raises where there are several
    fleet = fleet_of(resources, secrets_dir)
    problems: list[str] = [*fleet.problems, *resources.unknown_fields]
    workflows: dict[str, WorkflowSetup] = {}
    tenants: dict[str, tuple[Tenant, ...]] = {}
    keys: dict[str, list[Tenant]] = {}
    for workflow in resources.workflows:
        workflows[workflow.name] = _workflow(workflow, resources, secrets_dir, problems)
        tenants[workflow.name] = tuple(_tenants(workflow, secrets_dir, keys, problems))
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
    )


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


Listener = Callable[[Configuration], None]


class ConfigurationWatch:
    """Keep the configuration in force up to date with its files."""

    def __init__(self, paths: Sequence[Path], secrets_dir: Path | None) -> None:
        """Watch nothing yet; ``load`` reads for the first time, ``run`` watches."""
        self._paths = tuple(paths)
        self._secrets_dir = secrets_dir
        self._listeners: list[Listener] = []
        self._signature: object = None
        self.on_refused: Callable[[], None] = lambda: None
        """Called when changed files cannot be used."""
        self.current = Configuration()
        self.error: str | None = None
        """Why the files as they are now are not in force; None while they are."""
        self.reloads = 0

    def subscribe(self, listener: Listener) -> None:
        """Call ``listener`` with each new configuration, and with the one in force now."""
        self._listeners.append(listener)
        listener(self.current)

    async def load(self) -> None:
        """Read for the first time. Raises ResourceError."""
        self._signature = await asyncio.to_thread(self._look)
        self.apply(await asyncio.to_thread(read_configuration, self._paths, self._secrets_dir))

    async def reload(self) -> None:
        """Read anew if a file has changed; what cannot be read is reported and changes nothing."""
        try:
            signature = await asyncio.to_thread(self._look)
            if signature == self._signature:
                return
            self._signature = signature
            configuration = await asyncio.to_thread(read_configuration, self._paths, self._secrets_dir)
        except ResourceError as problem:
            self._refuse(str(problem))
            return
        except OSError as problem:
            self._signature = None  # nothing is known of the files: the next look reads them
            self._refuse(f"they cannot be read now ({problem})")
            return
        self.error = None
        self.reloads += 1
        self.apply(configuration)

    def _refuse(self, problem: str) -> None:
        if problem != self.error:
            self.on_refused()
            _log.error("The changed resources are not used, the last good ones stay: %s", problem)
        self.error = problem

    async def run(self) -> None:
        """Watch until cancelled."""
        async for _ in looks(self._folders):
            try:
                await self.reload()
            except Exception:
                _log.exception("The changed resources could not be put in force, by a defect.")

    def _folders(self) -> list[Path]:
        folders = {path if path.is_dir() else path.parent for path in self._paths}
        if self._secrets_dir is not None:
            folders |= {self._secrets_dir, *self._secrets_dir.glob("*/")}
        return sorted(folders)

    def _look(self) -> object:
        files: list[Path] = []
        for path in self._paths:
            files += [*path.glob("*.yaml"), *path.glob("*.yml")] if path.is_dir() else [path]
        if self._secrets_dir is not None:
            files += self._secrets_dir.glob("*/*")
        seen = []
        for file in sorted(files):
            with contextlib.suppress(OSError):
                found = file.stat()
                seen.append((str(file), found.st_mtime_ns, found.st_size, found.st_ino))
        return tuple(seen)

    def apply(self, configuration: Configuration) -> None:
        """Put a configuration in force and tell whoever subscribed."""
        self.current = configuration
        for problem in configuration.problems:
            _log.warning("%s", problem)
        for listener in self._listeners:
            listener(configuration)
