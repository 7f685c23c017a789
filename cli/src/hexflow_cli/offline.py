"""The surface of subcommands that need no router and no GPU, with their options; `app.py` has the others."""

from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer

from hexflow_cli.options import Json, Workers
from hexflow_cli.running import run_command


def simulate(
    fleet: Annotated[
        list[Path],
        typer.Option(
            "-f", "--fleet", help="File or folder with the GPUPools of the fleet; repeat it for more."
        ),
    ],
    trace: Annotated[
        Path | None,
        typer.Option(
            "-t",
            "--trace",
            help="What arrives: a CSV of requests (Azure, Mooncake, BurstGPT, or arrival_s,input_tokens,output_tokens), HexFlow's JSONL, or a router's event log.",
            show_default=False,
        ),
    ] = None,
    mix: Annotated[
        str | None,
        typer.Option(
            help="Instead of a trace, generated queries: natural, stratified, modern, short …",
            show_default=False,
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(min=1e-6, max=1e6, help="Queries a second.", show_default="a trace's own"),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "-p",
            "--policy",
            help="Policy to compare: a name, a pair (RoundRobin+Urgency), one with parameters (HexGenFlow:alpha=0.3), or `all`; repeat it for more.",
            show_default="six of them",
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1000,
            help="How many times, each with other queries. Of a trace the first is the trace itself, the others are drawn from it block by block.",
            show_default="3; 1 for a trace from 20,000 queries on",
        ),
    ] = None,
    by: Annotated[
        str, typer.Option(help="What the best is picked by: P50, P95, P99, Req95 or Attainment.")
    ] = "P95",
    slo: Annotated[
        float | None,
        typer.Option(
            min=1e-3,
            help="Deadline in seconds of queries that state none.",
            show_default="5 times what a query takes alone, on average",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Model that serves all queries, whatever the trace says.",
            show_default="the trace's; the fleet's only one",
        ),
    ] = None,
    queries: Annotated[
        int | None, typer.Option(min=1, help="How many queries.", show_default="500 of a mix, all of a trace")
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(min=1e-3, help="Only those that arrive within so many seconds.", show_default=False),
    ] = None,
    cv: Annotated[
        float | None,
        typer.Option(
            min=1e-3,
            max=20,
            help="Of a mix: coefficient of variation of the gaps; above 1 queries come in clumps.",
            show_default="1",
        ),
    ] = None,
    arrivals: Annotated[
        Path | None,
        typer.Option(
            help="Of a mix: CSV whose column of arrivals says when queries come.", show_default=False
        ),
    ] = None,
    databases: Annotated[
        int | None,
        typer.Option(
            min=1, max=100_000, help="Of a mix: how many databases are asked.", show_default="the mix's own"
        ),
    ] = None,
    sweep: Annotated[
        str | None,
        typer.Option(
            help="Further rates for the curve of P95 against rate, as multiples, with commas between; 1 for none.",
            show_default="0.5,0.75,1.25,1.5 where a report is written",
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(help="Write a report to this file: one page that needs no network.", show_default=False),
    ] = None,
    png: Annotated[
        Path | None, typer.Option(help="Write the report's pictures into this folder.", show_default=False)
    ] = None,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Find out which policy is best for a fleet at some traffic, without a GPU: the router's own scheduler on modelled engines.

    The same queries arrive under every policy. Ctrl-C shows what there is by then.
    """

    def command() -> Coroutine[Any, Any, int]:
        from hexflow_cli.simulate import SimulateOptions, multiples, simulate
        from hexflow_cli.trafficoptions import TrafficOptions

        return simulate(
            SimulateOptions(
                fleet=tuple(fleet),
                traffic=TrafficOptions(
                    trace=trace,
                    mix=mix,
                    rate=rate,
                    cv=cv,
                    arrivals=arrivals,
                    databases=databases,
                    queries=queries,
                    seconds=seconds,
                    slo_seconds=slo,
                    model=model,
                ),
                policies=tuple(policy or ()),
                seeds=seeds,
                by=by,
                paces=None if sweep is None else multiples(sweep),
                workers=workers,
                html=html,
                png=png,
                as_json=as_json,
            )
        )

    run_command(command, as_json=as_json)
