"""The surface of subcommands that need no router and no GPU, with their options; `app.py` has the others."""

from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer

from hexflow_cli.options import Json, Workers
from hexflow_cli.running import run_command, run_here


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
            help="What arrives: a CSV of requests with the columns arrival_s, input_tokens, output_tokens (or Azure's, Mooncake's, BurstGPT's), HexFlow's JSONL, or a router's event log.",
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
            max=1e12,
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
        typer.Option(
            min=1e-3, max=1e12, help="Only those that arrive within so many seconds.", show_default=False
        ),
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

    The same queries arrive under every policy. Ctrl-C shows what there is by then. For example, where `fleet.yaml` holds a GPUPool for each kind of GPU
    (`docs/tutorial/which-policy.md` has one):

        hexflow simulate --fleet fleet.yaml --trace requests.csv
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


def tune(
    trace: Annotated[
        Path,
        typer.Argument(
            help="What arrived: a router's event log, HexFlow's JSONL, or a CSV of requests.",
            show_default=False,
        ),
    ],
    fleet: Annotated[
        list[Path] | None,
        typer.Option(
            "-f",
            "--fleet",
            help="File or folder with the GPUPools, and the TextToSQLWorkflow if you like; repeat it for more.",
            show_default="an event log says it",
        ),
    ] = None,
    workflow: Annotated[
        str | None,
        typer.Option(
            "-w",
            "--workflow",
            help="Vary this workflow's parameters alone, and judge by its queries alone.",
            show_default="all",
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "-p",
            "--policy",
            help="Policy to tune.",
            show_default="the workflow's, else the log's, else LeastHarm",
        ),
    ] = None,
    in_force: Annotated[
        float | None,
        typer.Option(help="Value in force.", show_default="the workflow's, else the log's, else the default"),
    ] = None,
    low: Annotated[
        float | None,
        typer.Option("--min", help="Least value.", show_default="the workflow's, else the policy's"),
    ] = None,
    high: Annotated[
        float | None,
        typer.Option("--max", help="Greatest value.", show_default="the workflow's, else the policy's"),
    ] = None,
    max_step: Annotated[
        float | None,
        typer.Option(
            min=1e-9, help="Most that the value may change.", show_default="the workflow's, else no bound"
        ),
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(
            help="What to make better: P95, Req95, Attainment or Rate.",
            show_default="the workflow's, else P95",
        ),
    ] = None,
    min_queries: Annotated[
        int | None,
        typer.Option(
            min=1, help="Queries without which nothing is tuned.", show_default="the workflow's, else 100"
        ),
    ] = None,
    min_improvement: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Share by which the objective must get better.",
            show_default="the workflow's, else 0.03",
        ),
    ] = None,
    window: Annotated[
        float | None,
        typer.Option(
            min=1, help="Look at the trace's last so many seconds.", show_default="the workflow's, else all"
        ),
    ] = None,
    slo: Annotated[
        float | None,
        typer.Option(
            min=1e-3, max=1e12, help="Deadline in seconds of every query.", show_default="the trace's own"
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Model that serves all queries, whatever the trace says.", show_default="the trace's"
        ),
    ] = None,
    replicas: Annotated[
        int, typer.Option(min=2, max=1000, help="Traces like this one on which a change must prove itself.")
    ] = 8,
    advice: Annotated[
        bool,
        typer.Option(help="Play the trace under every other policy too, to see what each would have given."),
    ] = True,
    write: Annotated[
        Path | None,
        typer.Option(
            help="Write the result as a ConfigMap, as the tuner of a cluster does.", show_default=False
        ),
    ] = None,
    write_profile: Annotated[
        Path | None,
        typer.Option(
            help="Write the speed of each pool's GPUs, as the log shows it, as a ConfigMap that its `spec.profile` may name.",
            show_default=False,
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(help="Write a report to this file: one page that needs no network.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Find the value of a policy's parameter that would have served a trace best: alpha of HexGenFlow, the exponent of LeastHarm.

    The trace is replayed on modelled GPUs. Nothing is changed anywhere; "no change" is an answer, and the usual one.
    """

    def command() -> int:
        from hexflow_cli.tune import TuneOptions, tune_command

        return tune_command(
            TuneOptions(
                trace=trace,
                fleet=tuple(fleet or ()),
                workflow=workflow,
                policy=policy,
                in_force=in_force,
                low=low,
                high=high,
                max_step=max_step,
                objective=objective,
                min_queries=min_queries,
                min_improvement=min_improvement,
                window_seconds=window,
                model=model,
                slo_seconds=slo,
                replicas=replicas,
                advice=advice,
                write=write,
                write_profile=write_profile,
                html=html,
                as_json=as_json,
            )
        )

    run_here(command, as_json=as_json)


def bench(
    scenarios: Annotated[
        str, typer.Option(help="Scenarios, with commas between.", show_default="all 24")
    ] = "",
    loads: Annotated[
        str, typer.Option(help="Loads, as shares of each scenario's rate.")
    ] = "0.4,0.6,0.8,0.95,1.1",
    ours: Annotated[str, typer.Option(help="Policy that is compared with all others.")] = "LeastHarm",
    rivals: Annotated[
        str, typer.Option(help="Policies to compare it with.", show_default="all 18 baselines")
    ] = "",
    seeds: Annotated[str, typer.Option(help="Seeds that are compared on.")] = "11,12,13,14,15",
    tuning_seeds: Annotated[
        str, typer.Option(help="Seeds that each rival is tuned on, cell by cell.")
    ] = "1,2",
    count: Annotated[
        int | None,
        typer.Option(min=10, help="Queries of a trial.", show_default="each scenario's own: 500 to 4,000"),
    ] = None,
    rates: Annotated[
        bool,
        typer.Option(
            "--rates", help="Look for sustainable rates too: ours, round robin's and the best three rivals'."
        ),
    ] = False,
    rate_seeds: Annotated[str, typer.Option(help="Seeds of the rates.")] = "21,22,23",
    workers: Workers = None,
    results: Annotated[
        Path, typer.Option(help="File of results, to which each trial is added as it ends.")
    ] = Path("bench.jsonl"),
    report: Annotated[
        Path | None, typer.Option(help="Markdown page to write, renewed with each cell.", show_default=False)
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(help="Write a report to this file: one page that needs no network.", show_default=False),
    ] = None,
    only_report: Annotated[
        bool, typer.Option("--only-report", help="Run nothing; show what the results hold, complete or not.")
    ] = False,
    code: Annotated[
        str | None,
        typer.Option(
            help="What the results are from.", show_default="the last commit of kernel and simulator"
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare a policy with every baseline, each tuned in every cell, over scenarios, loads and seeds.

    The whole takes hours. Stopped (ctrl-C), it goes on where it was with the same command.
    """

    def command() -> int:
        from hexflow_cli.bench import BenchOptions, bench, numbers, words

        return bench(
            BenchOptions(
                scenarios=words(scenarios),
                loads=numbers(loads, option="--loads", kind=float),
                ours=ours,
                rivals=words(rivals),
                seeds=numbers(seeds, option="--seeds", kind=int),
                tuning_seeds=numbers(tuning_seeds, option="--tuning-seeds", kind=int),
                count=count,
                workers=workers,
                results=results,
                report=report,
                html=html,
                rates=rates,
                rate_seeds=numbers(rate_seeds, option="--rate-seeds", kind=int),
                only_report=only_report,
                code=code,
                as_json=as_json,
            )
        )

    run_here(command, as_json=as_json)
