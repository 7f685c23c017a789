"""Every metric of the router: its name, its labels, and what to do about it.

``docs/reference/metrics.md`` is written from the table here. Labels take only names that are known (pools,
instances, workflows, tenants, reasons), never text from a caller, so that nobody can make series without end.
"""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from hexflow_api.metric import Metric, metrics_page

SECONDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0)
"""Buckets of every duration, in seconds."""


TABLE: Final[tuple[Metric, ...]] = (
    Metric(
        "hexflow_calls_total",
        "counter",
        "pool outcome",
        "Calls that ended, by how they ended (Finished, Failed, Cancelled, Dropped, Expired, Unservable).",
        "Failed or Expired above a few per cent: look at `hexflow_call_failures_total` for the reason, then at the "
        "pool's instances. Unservable: no pool has the model or the context length.",
    ),
    Metric(
        "hexflow_call_failures_total",
        "counter",
        "pool reason",
        "Tries that failed at an instance, by reason; a call that was retried counts once for each try.",
        "ConnectFailed: the server is down or the address wrong. FirstByteTimeout, IdleTimeout: it hangs; look at its "
        "log. EngineError: it answers 5xx. AbortedByEngine: it was told to stop. Rubbish, Redirected: something else "
        "than an engine listens there. EngineRefusedKey: correct the endpoint's `apiKeySecretRef`.",
    ),
    Metric(
        "hexflow_call_retries_total",
        "counter",
        "pool",
        "Calls sent again after a try failed, by the pool of the new try.",
        "A steady rate means an instance that fails without being seen as failed: find it by "
        "`hexflow_call_failures_total` and take it out.",
    ),
    Metric(
        "hexflow_calls_demoted_total",
        "counter",
        "pool",
        "Calls sent whose query gives way to others, since it cannot be in time any more (`slo.objective: Attainment`).",
        "A rising share of `hexflow_calls_total`: the fleet is too small for what arrives, or the deadline too short.",
    ),
    Metric(
        "hexflow_call_seconds",
        "histogram",
        "pool",
        "From sending a call to its last byte.",
        "Rising while `hexflow_call_queued_seconds` stays flat: the engines are crowded; add instances or lower "
        "`maxNumSeqs`. Compare pools to see which is slow.",
    ),
    Metric(
        "hexflow_call_queued_seconds",
        "histogram",
        "pool",
        "From the release of a call to its sending.",
        "Rising: all slots or the KV caches are full. Add instances, or raise `maxNumSeqs` where memory allows.",
    ),
    Metric(
        "hexflow_first_byte_seconds",
        "histogram",
        "pool",
        "From sending a streamed call to its first event.",
        "Rising: prefill is slow or crowded; long prompts, or a prefix cache that does not hit "
        "(`hexflow_tokens_total` with kind cached).",
    ),
    Metric(
        "hexflow_tokens_total",
        "counter",
        "pool kind source",
        "Tokens of finished calls: kind prompt, cached (part of prompt), output; source usage or estimate.",
        "Much under source estimate: the engine reports no usage, so scheduling rests on guesses; ask clients for "
        "`stream_options.include_usage`, or use an engine that reports it.",
    ),
    Metric(
        "hexflow_calls_waiting",
        "gauge",
        "instance",
        "Calls held in the queue of an instance; instance `none` counts those that no instance can take now.",
        "`none` above zero for long: no instance of the model is ready. One instance far above the others: its "
        "speed profile is wrong; see `/debug/scheduler`.",
    ),
    Metric(
        "hexflow_calls_running",
        "gauge",
        "instance",
        "Calls that were sent to an instance and have not ended.",
        "At the instance's slots all the time: it is full. Zero while others are busy: look whether it is ready.",
    ),
    Metric(
        "hexflow_oldest_wait_seconds",
        "gauge",
        "",
        "How long the longest waiting call has waited.",
        "Near the deadline of the workflow: the fleet is too small for what arrives.",
    ),
    Metric(
        "hexflow_instance_ready",
        "gauge",
        "instance pool",
        "1 when the instance takes calls, else 0.",
        "0 for long: `/debug/scheduler` says why (not reachable, model not listed, breaker open).",
    ),
    Metric(
        "hexflow_breaker_open",
        "gauge",
        "instance pool",
        "1 while calls are kept away from an instance because it failed several in a row.",
        "Read the instance's log; the breaker closes by itself after a call that succeeds.",
    ),
    Metric(
        "hexflow_probes_total",
        "counter",
        "pool result",
        "Looks at an instance, by result (Ready, ConnectFailed, FirstByteTimeout, ModelNotListed, NotHealthy, Rubbish).",
        "ModelNotListed: the server serves another model than the pool says; compare `model.name` with its "
        "`/v1/models`. FirstByteTimeout: it is overloaded or hangs.",
    ),
    Metric(
        "hexflow_engine_sample_age_seconds",
        "gauge",
        "instance pool",
        "Age of the last metrics read from the engine.",
        "Above ten seconds the router falls back to its own counts (see the next metric).",
    ),
    Metric(
        "hexflow_engine_sample_stale",
        "gauge",
        "instance pool",
        "1 while the router knows only its own calls on an instance, since the engine's metrics are old or missing.",
        "Harmless when nobody else uses the engine. Else open the engine's `/metrics` to the router.",
    ),
    Metric(
        "hexflow_client_gone_total",
        "counter",
        "door",
        "Requests whose client left before the end; their calls were stopped at the engines.",
        "Many: clients give up before the answer comes; compare their time-out with `hexflow_query_seconds`.",
    ),
    Metric(
        "hexflow_admissions_total",
        "counter",
        "workflow result",
        "Questions that a workflow with `scheduling.admission` looked at, by result (Admitted; Degraded: with fewer "
        "candidates; Refused: 429; Tried: expected to be late, let in since no other runs).",
        "Refused or Degraded for long: the fleet is too small for what arrives, or `slo.deadlineSeconds` too short "
        "(compare `hexflow_query_seconds`). Tried alone: the deadline is shorter than a query takes on an idle fleet.",
    ),
    Metric(
        "hexflow_requests_total",
        "counter",
        "door status",
        "Requests by front door (openai, queries) and status.",
        "4xx: a caller's mistake, its answer says which. 429: the limits of a tenant or of the queue. 502, 504: the "
        "engines. 503: no instance.",
    ),
    Metric(
        "hexflow_event_log_lines_total",
        "counter",
        "",
        "Records written to the event log.",
        "Flat under traffic: the log cannot be written; look at the disk and at the next metric.",
    ),
    Metric(
        "hexflow_event_log_dropped_total",
        "counter",
        "",
        "Records that could not be written and were dropped.",
        "Above zero: the disk is full or too slow. The tuner refuses a log with gaps.",
    ),
    Metric(
        "hexflow_queries_total",
        "counter",
        "workflow tenant status",
        "Queries that ended, by terminal state.",
        "Failed: the answers' `reason` says why. DeadlineExceeded: compare the stages in an answer with their budgets.",
    ),
    Metric(
        "hexflow_query_seconds",
        "histogram",
        "workflow",
        "From the arrival of a query to its end.",
        "Near the deadline: see whether waiting (`hexflow_call_queued_seconds`), the engines (`hexflow_call_seconds`) or the "
        "database (`hexflow_statement_seconds`) take it, and in which stage (`hexflow_stage_seconds`).",
    ),
    Metric(
        "hexflow_stage_seconds",
        "histogram",
        "workflow stage",
        "From the start of a stage to its end.",
        "One stage far above the others takes the time of late queries. An answer's `stages`, and `/debug/scheduler` while "
        "it runs, say whether its calls or its statements do.",
    ),
    Metric(
        "hexflow_statement_seconds",
        "histogram",
        "workflow",
        "Time of a statement in the database, tried or answered.",
        "Seconds rather than milliseconds: the database is slow, busy, or lacks an index; no GPU helps against that.",
    ),
    Metric(
        "hexflow_queries_running",
        "gauge",
        "workflow",
        "Queries that have not ended.",
        "Rising without end: more arrives than the fleet can answer; add instances or limit tenants.",
    ),
    Metric(
        "hexflow_query_deadlines_total",
        "counter",
        "workflow met",
        "Answered queries by whether they met their deadline (met true or false).",
        "This is the attainment. When it falls, look at `hexflow_oldest_wait_seconds` and at the pools' speed first.",
    ),
    Metric(
        "hexflow_statements_total",
        "counter",
        "workflow result",
        "Statements tried against the database, by result (Succeeded, Failed, Refused, TimedOut).",
        "Refused: the guard stopped a statement, which is its work; many mean a model that does not follow the "
        "prompt. TimedOut: the database is slow or lacks an index.",
    ),
    Metric(
        "hexflow_configuration_valid",
        "gauge",
        "",
        "1 when the configuration as it is now is in force, 0 while it is invalid and the last good one is kept.",
        "0: `/readyz` has the problems, of files with their lines; `hexflow validate -f` shows the same.",
    ),
    Metric(
        "hexflow_namespace_listed_age_seconds",
        "gauge",
        "what",
        "In a cluster: seconds since the API server last listed what the router watches (configmap, pods, policies).",
        "Above 600: the API server cannot be reached, or the router lacks a right; its log and `/readyz` say which. It goes "
        "on with what it knew, and notices by itself when an engine dies, but sees no new ones.",
    ),
    Metric(
        "hexflow_configuration_loads_total",
        "counter",
        "result",
        "Loads of the configuration (Applied, Refused).",
        "Refused: see `hexflow_configuration_valid`.",
    ),
)


class Metrics:
    """Hold the router's metrics in a registry of their own (no process-wide state)."""

    def __init__(self) -> None:
        """Make every metric of the table."""
        self.registry = CollectorRegistry()
        self._counters: dict[str, Counter] = {}
        self._gauges: dict[str, Gauge] = {}
        self._histograms: dict[str, Histogram] = {}
        for metric in TABLE:
            if metric.kind == "counter":
                self._counters[metric.name] = Counter(
                    metric.name, metric.help, metric.labels.split(), registry=self.registry
                )
            elif metric.kind == "gauge":
                self._gauges[metric.name] = Gauge(
                    metric.name, metric.help, metric.labels.split(), registry=self.registry
                )
            else:
                self._histograms[metric.name] = Histogram(
                    metric.name, metric.help, metric.labels.split(), buckets=SECONDS, registry=self.registry
                )

    def count(self, name: str, *labels: str, by: float = 1) -> None:
        """Add to a counter."""
        counter = self._counters[name]
        (counter.labels(*labels) if labels else counter).inc(by)

    def set(self, name: str, value: float, *labels: str) -> None:
        """Set a gauge."""
        gauge = self._gauges[name]
        (gauge.labels(*labels) if labels else gauge).set(value)

    def observe(self, name: str, value: float, *labels: str) -> None:
        """Add a value to a histogram."""
        histogram = self._histograms[name]
        (histogram.labels(*labels) if labels else histogram).observe(value)

    def clear(self, name: str) -> None:
        """Drop every series of a gauge, before it is set anew."""
        self._gauges[name].clear()

    def exposition(self) -> bytes:
        """Return the page that Prometheus reads."""
        return generate_latest(self.registry)


WHERE: Final = """\
On the admin port at `/metrics`, in Prometheus' text format. Seconds are the router's seconds: emulated ones
under `--time-scale`, real ones everywhere else. Labels take only names that are known."""


def page() -> str:
    """Return ``docs/reference/metrics.md``."""
    return metrics_page("router", WHERE, TABLE)


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201 - the page goes to a file
