"""The traffic that a command line describes: a trace in a file, or a mix with the times at which its queries come."""

from dataclasses import dataclass
from pathlib import Path

from hexflow_cli.exitcode import CommandError, ExitCode
from hexflow_simulator.arrivals import Arrivals, Gamma, Poisson
from hexflow_simulator.fleet import SimulatedInstance
from hexflow_simulator.fleetfile import FleetFile
from hexflow_simulator.importing import Listed, open_trace
from hexflow_simulator.mix import mix_named
from hexflow_simulator.requestfile import RequestFile, read_arrivals
from hexflow_simulator.slo import warm_base
from hexflow_simulator.traffic import Generated, Recorded, Traffic, own_rate, recorded_base, unserved
from hexflow_simulator.workload import SLO_FACTOR, Workload

QUERIES = 500
"""Of a mix, unless said otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficOptions:
    """Hold what the command line said of traffic."""

    trace: Path | None = None
    mix: str | None = None
    rate: float | None = None
    cv: float | None = None
    arrivals: Path | None = None
    databases: int | None = None
    queries: int | None = None
    seconds: float | None = None
    slo_seconds: float | None = None
    model: str | None = None


def traffic_of(options: TrafficOptions, fleet: FleetFile) -> Traffic:
    """Return the traffic; raises CommandError, InvalidTrace and InvalidWorkload."""
    if (options.trace is None) == (options.mix is None):
        raise _wrong(
            "Say what arrives: either --trace with a file, or --mix with a name (natural, modern, short …)."
        )
    if options.model is not None and options.model not in fleet.models:
        raise _wrong(f"No instance serves {options.model}; the fleet has: {', '.join(fleet.models)}.")
    return _recorded(options, fleet) if options.trace is not None else _generated(options, fleet)


def _recorded(options: TrafficOptions, fleet: FleetFile) -> Recorded:
    assert options.trace is not None  # noqa: S101
    for name, value in (
        ("--arrivals", options.arrivals),
        ("--cv", options.cv),
        ("--databases", options.databases),
    ):
        if value is not None:
            raise _wrong(f"{name} goes with --mix: a trace has its own.")
    trace = open_trace(
        options.trace,
        model=options.model or fleet.models[0],
        slo_seconds=options.slo_seconds,
        arrivals=None if options.rate is None else Poisson(options.rate),
    )
    if options.model is None:
        if len(fleet.models) > 1 and isinstance(trace, RequestFile | Listed):
            raise _several(fleet, "the trace")
        stranger = unserved(trace, fleet.instances)
        if stranger is not None:
            where = "" if stranger.pools is None else f" in the pools {', '.join(sorted(stranger.pools))}"
            raise _wrong(
                f"{options.trace}: query {stranger.query_id} asks for {stranger.model}{where}, and no instance of the fleet has that; "
                f"send all queries to one model with --model (the fleet has: {', '.join(fleet.models)})."
            )
    count = trace.count
    if options.queries is not None:
        count = min(count, options.queries)
    if options.seconds is not None:
        count = min(count, sum(1 for query in trace if query.arrival < options.seconds) or 1)
    recorded = own_rate(trace)
    able = _able(fleet, options.model)
    return Recorded(
        trace=trace,
        name=options.trace.name,
        count=count,
        pace=options.rate / recorded if options.rate and recorded else 1.0,
        model=options.model,
        slo_seconds=options.slo_seconds,
        base_seconds=recorded_base(trace, able),
    )


def _generated(options: TrafficOptions, fleet: FleetFile) -> Generated:
    assert options.mix is not None  # noqa: S101
    mix = mix_named(options.mix)
    if options.model is None and len(fleet.models) > 1:
        raise _several(fleet, "the mix")
    model = options.model or fleet.models[0]
    base = warm_base(mix, [each.true_profile for each in _able(fleet, model)])
    arrivals, rate = _arrivals(options)
    count = options.queries
    if count is None:
        count = QUERIES if options.seconds is None else max(1, round(options.seconds * rate))
    slo_factor = SLO_FACTOR if options.slo_seconds is None else options.slo_seconds / base
    return Generated(
        workload=Workload(
            mix=mix,
            arrivals=arrivals,
            model=model,
            databases=options.databases,
            base_seconds=base,
            slo_factor=slo_factor,
        ),
        rate=rate,
        count=count,
    )


def _arrivals(options: TrafficOptions) -> tuple[Arrivals, float]:
    if options.arrivals is not None:
        if options.cv is not None:
            raise _wrong("--cv and --arrivals both say when queries come; give one of them.")
        replay = read_arrivals(options.arrivals)
        rate = options.rate or replay.rate
        return replay.at_rate(rate), rate
    if options.rate is None:
        raise _wrong(
            "Say how many queries of the mix come in a second (--rate 0.5), or give a CSV of arrivals (--arrivals)."
        )
    if options.cv is not None:
        return Gamma(options.rate, options.cv), options.rate
    return Poisson(options.rate), options.rate


def _several(fleet: FleetFile, what: str) -> CommandError:
    return _wrong(
        f"The fleet has several models ({', '.join(fleet.models)}); say with --model which {what} is for."
    )


def _able(fleet: FleetFile, model: str | None) -> list[SimulatedInstance]:
    return [each for each in fleet.instances if model is None or model in each.instance.models]


def _wrong(message: str) -> CommandError:
    return CommandError(message, code=ExitCode.USAGE, reason="TrafficUnclear")
