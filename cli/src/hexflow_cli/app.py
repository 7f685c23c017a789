"""The surface of the command `hexflow`: its subcommands, their options and how they end.

Each subcommand is one module, imported when it is used, so that `hexflow --help` is quick and an image that holds
only the router can start it (docs/adr/0004). `docs/reference/cli.md` is generated from this module.
"""

from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer

from hexflow_cli import offline
from hexflow_cli.options import Json
from hexflow_cli.running import run_command

app = typer.Typer(
    name="hexflow",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Ask databases in plain words: agentic Text-to-SQL, scheduled for the deadline of the whole question "
    "on whatever mix of GPUs is at hand.",
)

_PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}

Files = Annotated[
    list[Path] | None,
    typer.Option("-f", "--file", help="File or folder of resources; repeat it for more.", show_default=False),
]
Book = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        readable=True,
        help="Answer book of the emulated models.",
        show_default="that of the sample shop",
    ),
]
TimeScale = Annotated[
    float,
    typer.Option(
        min=0.01,
        max=1000,
        help="Run the emulated clock this many times faster than real; deadlines and reports are in emulated seconds.",
    ),
]


@app.command()
def up(
    file: Files = None,
    port: Annotated[
        int | None,
        typer.Option(
            help="Tenants' port: questions, OpenAI calls.", show_default="8080 if free, else a free one"
        ),
    ] = None,
    admin_port: Annotated[
        int | None,
        typer.Option(
            help="Admin port: metrics, scheduler, event log.", show_default="8081 if free, else a free one"
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Address that the tenants' port listens on.")] = "127.0.0.1",
    time_scale: TimeScale = 1.0,
    book: Book = None,
    event_log: Annotated[
        Path | None, typer.Option(help="File to add the scheduler's event log to.", show_default=False)
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Leave out the log of the router and the instances.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run a router and emulated GPUs on this machine, from the resources that a cluster takes. Ctrl-C ends it all.

    Without -f it runs the example: three unequal GPUs and the sample shop. A pool with `endpoints:` uses servers that
    are there already. Edits of the files are followed while it runs.
    """

    def command() -> Coroutine[Any, Any, int]:
        from hexflow_cli.up import UpOptions, up

        return up(
            UpOptions(
                files=tuple(file or ()),
                host=host,
                port=port,
                admin_port=admin_port,
                time_scale=time_scale,
                book=book,
                event_log=event_log,
                quiet=quiet,
                as_json=as_json,
            )
        )

    run_command(command, as_json=as_json)


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="The question in your own words; - reads it from stdin.")],
    database: Annotated[
        str | None,
        typer.Option("--database", "-d", help="Database to ask.", show_default="the workflow's only one"),
    ] = None,
    deadline: Annotated[
        float | None,
        typer.Option(help="Seconds within which the answer is wanted.", show_default="the tenant's class"),
    ] = None,
    evidence: Annotated[
        str | None, typer.Option(help="What you know besides: a definition, a hint.", show_default=False)
    ] = None,
    workflow: Annotated[
        str | None,
        typer.Option("--workflow", "-w", help="Workflow that answers.", show_default="the only one"),
    ] = None,
    tenant: Annotated[
        str | None,
        typer.Option(help="Ask as this tenant of `hexflow up`.", show_default="the workflow's first"),
    ] = None,
    api_key: Annotated[
        str | None,
        typer.Option(envvar="HEXFLOW_API_KEY", help="The tenant's key.", show_default="that of --tenant"),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            envvar="HEXFLOW_URL",
            help="The router.",
            show_default="that of `hexflow up`, else http://127.0.0.1:8080",
        ),
    ] = None,
    show_sql: Annotated[bool, typer.Option("--show-sql", help="Show the statement that was run.")] = False,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Show every call with its instance, budget, urgency and tokens, and every statement that was considered.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Ask a question and watch its stages; the rows go to stdout, everything else to stderr."""

    def command() -> Coroutine[Any, Any, int]:
        from hexflow_cli.ask import AskOptions, ask

        return ask(
            AskOptions(
                question=question,
                database=database,
                deadline_seconds=deadline,
                evidence=evidence,
                workflow=workflow,
                tenant=tenant,
                api_key=api_key,
                url=url,
                show_sql=show_sql,
                explain=explain,
                as_json=as_json,
            )
        )

    run_command(command, as_json=as_json)


@app.command()
def demo(
    questions: Annotated[int, typer.Option(min=1, max=30, help="Questions in the burst.")] = 30,
    seed: Annotated[int, typer.Option(help="Seed of who asks what when.")] = 1,
    time_scale: TimeScale = 5.0,
    policy: Annotated[str, typer.Option(help="Policy to show.")] = "LeastHarm",
    baseline: Annotated[
        str, typer.Option(help="Policy to compare it with, on the very same burst; `none` leaves that out.")
    ] = "RoundRobin+FCFS",
    book: Book = None,
    as_json: Json = False,
) -> None:
    """Watch a burst of questions become rows on three unequal emulated GPUs, then once more under a simple policy.

    Needs no GPU, no key and no network. Ends with status 1 if any rows differ from the checked answers.
    """

    def command() -> Coroutine[Any, Any, int]:
        from hexflow_cli.demo import DemoOptions, demo

        return demo(
            DemoOptions(
                questions=questions,
                seed=seed,
                time_scale=time_scale,
                policy=policy,
                baseline=None if baseline == "none" else baseline,
                book=book,
                as_json=as_json,
            )
        )

    run_command(command, as_json=as_json)


@app.command()
def validate(
    file: Annotated[
        list[Path],
        typer.Option("-f", "--file", help="File or folder of resources, or - for stdin; repeat it for more."),
    ],
    secrets_elsewhere: Annotated[
        bool,
        typer.Option(
            "--secrets-elsewhere",
            help="The Secrets live in the cluster alone, and the resources are meant for it.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Check resources without running anything, and show every problem with its place and its remedy.

    What the API server and the operator would refuse, in their words, before anything is applied.
    """
    from hexflow_cli.validate import validate

    raise typer.Exit(validate(file, secrets_elsewhere=secrets_elsewhere, as_json=as_json))


app.command()(offline.simulate)
app.command()(offline.tune)
app.command()(offline.bench)


@app.command(context_settings=_PASSED_ON)
def emulate(context: typer.Context) -> None:
    """Run one emulated instance; takes the arguments of `vllm serve` and its own (`hexflow emulate serve --help`)."""
    from hexflow_emulator import main

    raise typer.Exit(main(context.args))


@app.command(context_settings=_PASSED_ON)
def router(context: typer.Context) -> None:
    """Run the router alone, as its image does; takes the router's own arguments (`hexflow router --help`)."""
    from hexflow_router.main import main

    raise typer.Exit(main(context.args))


@app.command(context_settings=_PASSED_ON)
def operator(context: typer.Context) -> None:
    """Run the operator against a cluster, as its image does or from a desk; takes its own arguments (`hexflow operator --help`)."""
    from hexflow_operator.main import main

    raise typer.Exit(main(context.args))


@app.command()
def version(as_json: Json = False) -> None:
    """Show the versions of hexflow, Python and the libraries that matter."""
    from hexflow_cli.version import show

    show(as_json=as_json)


def run() -> None:
    """Run the command line of this process."""
    app()
