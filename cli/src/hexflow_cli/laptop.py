"""Laptop mode: the cluster without the cluster, as one object with a beginning and an end.

It plays the operator's part for resources in files: secrets are laid out as projected volumes would be, emulated
pools get their instances, the router gets the very files, and an edit of a file is followed while it runs.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import mkdtemp
from time import monotonic

from hexflow_api import ResourceError, Resources, load_resources, write_secrets
from hexflow_cli import samples
from hexflow_cli.client import RouterClient
from hexflow_cli.databases import check_databases
from hexflow_cli.exitcode import CommandError, ExitCode
from hexflow_cli.fleet import Fleet
from hexflow_cli.following import Fingerprint, edits, fingerprint
from hexflow_cli.plan import seats
from hexflow_cli.port import free_port
from hexflow_cli.process import Child, Log, Supervisor
from hexflow_cli.statefile import StateFile, TenantEntry, WorkflowEntry, own_start, state_folder

ROUTER = "hexflow_router"
_START_SECONDS = 90.0
"""How long processes of ours may take to be ready; a busy laptop needs ten."""
_LOOK_SECONDS = 5.0
"""How long to look for engines that somebody else runs, before saying that there is none yet."""
_BIND_ATTEMPTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LaptopOptions:
    """Say what to run and how."""

    paths: tuple[Path, ...] = ()
    """Files and folders of resources; empty: a copy of the example's."""
    book: Path
    """The answer book of the emulated models."""
    host: str = "127.0.0.1"
    port: int | None = None
    """Tenants' port; None finds a free one."""
    admin_port: int | None = None
    time_scale: float = 1.0
    event_log: Path | None = None
    policy: str | None = None
    """Another policy for the example's workflow; for the demo, which compares two."""


class Laptop:
    """Hold a running fleet and its router."""

    def __init__(
        self, options: LaptopOptions, *, folder: Path, supervisor: Supervisor, note: Callable[[str], None]
    ) -> None:
        """Take the private folder to work in and the supervisor that everything dies with."""
        self._options = options
        self._folder = folder
        self._supervisor = supervisor
        self._note = note
        self._fleet = Fleet(
            supervisor=supervisor, instances_file=folder / "instances.json", host="127.0.0.1", note=note
        )
        self._router: Child | None = None
        self._closing = False
        self._published = False
        self._seen: Fingerprint = frozenset()
        self.resources: Resources
        self.url = ""
        self.admin_url = ""

    @property
    def secrets(self) -> Path:
        """Return the folder of the secrets' files."""
        return self._folder / "secrets"

    async def start(self, resources: Resources) -> None:
        """Start everything and return when the router is ready. Raises CommandError, ResourceError."""
        self._seen = fingerprint(self._options.paths)
        await check_databases(resources)
        await self.apply(resources)
        for attempt in range(_BIND_ATTEMPTS):
            await self._start_router()
            try:
                await self._wait_until_ready()
                return
            except CommandError:
                retry = (
                    self._router is not None
                    and self._router.returncode is not None
                    and self._options.port is None
                )
                if not retry or attempt == _BIND_ATTEMPTS - 1 or not self._port_was_taken():
                    raise

    async def apply(self, resources: Resources) -> None:
        """Make the secrets and the instances those of the resources; the router reads the files itself."""
        wanted = seats(resources, book=self._options.book, time_scale=self._options.time_scale)
        write_secrets(resources, self.secrets)
        self.resources = resources
        await self._fleet.apply(wanted)

    async def follow_files(self) -> None:
        """Apply every edit of the resources; keep the last good ones while an edit is wrong. Runs until cancelled."""
        async for _ in edits(self._options.paths, since=self._seen):
            try:
                resources = load_resources(self._options.paths)
                await check_databases(resources)
                await self.apply(resources)
                if self._published:
                    self.state().write()
                self._note("resources changed and were applied")
            except (ResourceError, CommandError) as error:
                self._note(f"resources changed, but are wrong; the last good ones stay in force:\n{error}")

    async def watch_router(self) -> None:
        """Start the router again, on the same ports, whenever it ends. Runs until cancelled."""
        pause = 0.5
        while self._router is not None:
            code = await self._router.wait()
            if self._closing:
                return
            self._supervisor.forget(self._router)
            self._note(f"the router ended (status {code}); it starts again in {pause:g} s")
            await asyncio.sleep(pause)
            pause = min(10.0, pause * 2)
            await self._spawn_router()

    async def close(self) -> None:
        """Stop everything, the router first, so that nothing is restarted and nothing is sent on the way."""
        self._closing = True
        if self._router is not None:
            await self._supervisor.stop(self._router)
        await self._fleet.close()

    def pids(self) -> dict[str, int]:
        """Return the processes by name: the router and each instance by its id."""
        return {"router": self._router.pid if self._router else 0, **self._fleet.pids()}

    def instance_urls(self) -> dict[str, str]:
        """Return where every emulated instance listens, by its id."""
        return self._fleet.urls()

    def publish(self) -> Path:
        """Write the state file, by which `hexflow ask` finds us, and have it removed when we end."""
        path = self.state().write()
        self._published = True
        self._supervisor.remove_at_end(path)
        return path

    def state(self) -> StateFile:
        """Describe what runs, for the state file."""
        return StateFile(
            url=self.url,
            admin_url=self.admin_url,
            pid=os.getpid(),
            started=own_start(),
            time_scale=self._options.time_scale,
            workflows=tuple(
                WorkflowEntry(
                    name=workflow.name,
                    databases=tuple(database.name for database in workflow.spec.databases),
                    tenants=tuple(
                        TenantEntry(
                            name=tenant.name,
                            api_key_file=self.secrets
                            / tenant.api_key_secret_ref.name
                            / tenant.api_key_secret_ref.key
                            if tenant.api_key_secret_ref
                            else None,
                        )
                        for tenant in workflow.spec.tenants
                    ),
                )
                for workflow in self.resources.workflows
            ),
        )

    async def _start_router(self) -> None:
        host = self._options.host
        port = self._options.port or free_port(host)
        admin_port = self._options.admin_port or free_port("127.0.0.1")
        shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104 - compared, not bound
        self.url = f"http://{f'[{shown}]' if ':' in shown else shown}:{port}"
        self.admin_url = f"http://127.0.0.1:{admin_port}"
        self._router_arguments = [
            *(part for path in self._options.paths for part in ("--config", str(path))),
            *("--secrets-dir", str(self.secrets), "--instances", str(self._folder / "instances.json")),
            *("--host", host, "--port", str(port), "--admin-port", str(admin_port)),
            *("--time-scale", f"{self._options.time_scale:g}"),
            *("--journal", str(self._folder / "journal.sqlite")),
            *(("--event-log", str(self._options.event_log)) if self._options.event_log else ()),
            *("--grace-seconds", "3"),
        ]
        await self._spawn_router()

    async def _spawn_router(self) -> None:
        self._router = await self._supervisor.start("router", ROUTER, self._router_arguments)

    async def _wait_until_ready(self) -> None:
        """Wait for the router and, where instances are ours, for one of them; others may come when they like."""
        async with RouterClient(self.url) as client:
            await self._wait_for(client, "/healthz", seconds=_START_SECONDS)
            if await self._wait_for(
                client, "/readyz", seconds=_START_SECONDS if self._fleet.seats else _LOOK_SECONDS
            ):
                return
        silent = "; ".join(await self._complaints()) or "no pool has an instance"
        if self._fleet.seats:
            raise CommandError(
                f"No instance became ready within {_START_SECONDS:g} s: {silent}.",
                code=ExitCode.UNREACHABLE,
                reason="NotReady",
            )
        self._note(f"no engine is ready yet: {silent}. Questions wait for one until their deadline.")

    async def _wait_for(self, client: RouterClient, path: str, *, seconds: float) -> bool:
        end = monotonic() + seconds
        while not await client.answers(path):
            self._raise_if_dead()
            if monotonic() > end:
                return False
            await asyncio.sleep(0.1)
        return True

    async def _complaints(self) -> list[str]:
        """Return what the router says of each instance that is not ready."""
        async with RouterClient(self.admin_url) as client:
            try:
                servers = (await client.get("/debug/scheduler"))["servers"]
                return [
                    f"{item['url']}: {str(item['message']).rstrip('.')}"
                    for item in servers
                    if item["message"]
                ]
            except (CommandError, KeyError, TypeError):
                return []

    def _raise_if_dead(self) -> None:
        router = self._router
        if router is not None and router.returncode is not None:
            raise _died("The router", router.returncode, tuple(router.tail))
        stuck = self._fleet.stuck()
        if stuck is not None:
            raise _died(f"The emulated instance {stuck[0]}", None, stuck[1])

    def _port_was_taken(self) -> bool:
        return self._router is not None and any(
            "address already in use" in line.lower() for line in self._router.tail
        )


@asynccontextmanager
async def a_laptop(
    options: LaptopOptions, *, log: Log, note: Callable[[str], None], death_signal: bool = True
) -> AsyncIterator[Laptop]:
    """Start a laptop fleet, hand it out when it is ready, and leave nothing behind at the end."""
    folder = _private_folder(state_folder())
    async with Supervisor(log=log, death_signal=death_signal) as supervisor:
        supervisor.remove_at_end(folder)
        paths = options.paths or (samples.copy_laptop_resources(folder / "laptop", policy=options.policy),)
        options = replace(options, paths=paths)
        resources = load_resources(paths)
        laptop = Laptop(options, folder=folder, supervisor=supervisor, note=note)
        try:
            await laptop.start(resources)
            yield laptop
        finally:
            await laptop.close()


def _private_folder(root: Path) -> Path:
    try:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        return Path(mkdtemp(prefix="run-", dir=root))
    except OSError as error:
        raise CommandError(
            f"No folder can be made under {root} ({error.strerror}). Name one that can be written with "
            "HEXFLOW_STATE_DIR.",
            code=ExitCode.ENVIRONMENT,
            reason="StateFolder",
        ) from error


def _died(what: str, code: int | None, tail: tuple[str, ...]) -> CommandError:
    words = "\n".join(f"  {line}" for line in tail[-8:]) or "  (it wrote nothing)"
    status = f" with status {code}" if code is not None else ""
    return CommandError(
        f"{what} ended{status} while it was starting. Its last lines:\n{words}",
        code=ExitCode.ENVIRONMENT,
        reason="ProcessEnded",
    )
