"""`hexflow up`: a fleet, a router and your resources on this machine, until ctrl-C."""

import asyncio
import hashlib
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table
from rich.text import Text

from hexflow_api import Resources, laptop_warnings
from hexflow_cli import port, samples
from hexflow_cli.console import print_json, stderr
from hexflow_cli.exitcode import ExitCode
from hexflow_cli.laptop import Laptop, LaptopOptions, a_laptop

DEFAULT_PORT = 8080
DEFAULT_ADMIN_PORT = 8081
_COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "bright_red")


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """Hold what the command line said."""

    files: tuple[Path, ...]
    host: str
    port: int | None
    admin_port: int | None
    time_scale: float
    book: Path | None
    event_log: Path | None
    quiet: bool
    as_json: bool


async def up(options: UpOptions) -> int:
    """Run the fleet until a signal cancels this."""
    laptop_options = _laptop_options(options)
    log = _silent if options.quiet else _log_line
    async with a_laptop(laptop_options, log=log, note=_note) as laptop:
        state_file = laptop.publish()
        for warning in (
            *laptop_warnings(laptop.resources),
            *_scale_warnings(laptop.resources, options.time_scale),
        ):
            _note(warning)
        if options.as_json:
            print_json(
                {**laptop.state().model_dump(mode="json", by_alias=True), "stateFile": str(state_file)}
            )
        else:
            _welcome(laptop)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(laptop.follow_files())
            tasks.create_task(laptop.watch_router())
    return ExitCode.DONE


def _laptop_options(options: UpOptions) -> LaptopOptions:
    def chosen(given: int | None, usual: int, option: str, host: str) -> int:
        return port.preferred(host, usual) if given is None else port.claim(host, given, option=option)

    return LaptopOptions(
        paths=options.files,
        book=samples.book(options.book),
        host=options.host,
        port=chosen(options.port, DEFAULT_PORT, "--port", options.host),
        admin_port=chosen(options.admin_port, DEFAULT_ADMIN_PORT, "--admin-port", "127.0.0.1"),
        time_scale=options.time_scale,
        event_log=options.event_log,
    )


def _scale_warnings(resources: Resources, time_scale: float) -> list[str]:
    """Say what a time scale does to engines that know nothing of it."""
    real = [pool.name for pool in resources.pools if pool.spec.source == "Endpoints"]
    if time_scale == 1.0 or not real:
        return []
    return [
        f"--time-scale {time_scale:g} is for emulated pools; the seconds of {', '.join(real)} will look "
        f"{time_scale:g} times as long as they are"
    ]


def _welcome(laptop: Laptop) -> None:
    state = laptop.state()
    table = Table.grid(padding=(0, 2))
    names = [workflow.name for workflow in state.workflows]
    workflow = names[0] if len(names) == 1 else "WORKFLOW"
    table.add_row(Text("ask", style="bold"), 'hexflow ask "How many …?"')
    table.add_row(Text("questions", style="bold"), f"POST {state.url}/v1/workflows/{workflow}/queries")
    table.add_row(Text("OpenAI calls", style="bold"), f"{state.url}/v1")
    table.add_row(Text("metrics, scheduler", style="bold"), f"{state.admin_url}/metrics, /debug/scheduler")
    keys = [tenant.api_key_file for item in state.workflows for tenant in item.tenants if tenant.api_key_file]
    if keys:
        table.add_row(Text("tenants' keys", style="bold"), str(keys[0].parent))
    stderr.print(Text("HexFlow is up. Ctrl-C stops it and everything it started.", style="bold green"))
    stderr.print(table)


def _note(message: str) -> None:
    stderr.print(Text.assemble(("hexflow ", "bold"), ("│ ", "dim"), message), soft_wrap=True)


def _log_line(name: str, line: str) -> None:
    colour = _COLOURS[hashlib.sha256(name.encode()).digest()[0] % len(_COLOURS)]
    stderr.print(Text.assemble((f"{name:<8}", colour), ("│ ", "dim"), line), soft_wrap=True)


def _silent(name: str, line: str) -> None:
    """Drop a line; its child keeps the last ones for the message if it dies."""
