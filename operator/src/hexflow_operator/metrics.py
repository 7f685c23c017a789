"""Every metric of the operator: its name, its labels, and what to do about it.

``docs/reference/operator-metrics.md`` is written from the table here. Labels are kinds, verbs and outcomes, never
names of objects, so the number of series does not grow with the cluster.
"""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from hexflow_api.metric import Metric, metrics_page

SECONDS: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Buckets of every duration, in seconds."""


TABLE: Final[tuple[Metric, ...]] = (
    Metric(
        "hexflow_operator_reconciles_total",
        "counter",
        "kind outcome",
        "Looks at a pool, a workflow or a namespace's router, by outcome (Done, Refused, Failed, NotLeading).",
        "Refused: the API server does not accept what a resource asks for; the resource's conditions have its words. "
        "Failed at a steady rate: the API server is down or slow; see the operator's log.",
    ),
    Metric(
        "hexflow_operator_reconcile_seconds",
        "histogram",
        "kind",
        "How long one such look takes, requests to the API server included.",
        "Rising: the API server is slow, or `--writes-per-second` is low for what there is to write.",
    ),
    Metric(
        "hexflow_operator_writes_total",
        "counter",
        "kind verb",
        "Writes to the API server but for the Lease (apply, delete, status, create).",
        "Should rest when nothing is changed. A steady rate means that somebody else keeps changing what the operator "
        "makes: find the field manager in the object's `managedFields`.",
    ),
    Metric(
        "hexflow_operator_queue_length",
        "gauge",
        "",
        "Keys that wait for a look or are being looked at.",
        "Growing: more changes than the operator gets done; see `hexflow_operator_reconcile_seconds`.",
    ),
    Metric(
        "hexflow_operator_longest_reconcile_seconds",
        "gauge",
        "",
        "How long the oldest look that has not ended has been going on.",
        "Above a minute: a request hangs. Beyond five minutes the operator says that it is not alive.",
    ),
    Metric(
        "hexflow_operator_watch_event_age_seconds",
        "gauge",
        "",
        "Time since a watch last told of a change.",
        "Hours are well where nothing changes. Read it along with `hexflow_operator_missed_changes_total`.",
    ),
    Metric(
        "hexflow_operator_missed_changes_total",
        "counter",
        "kind",
        "Objects that had changed without a watch telling, found by the periodic comparison.",
        "Now and then after an outage of the API server. Rising all the time: watches are dead; the operator says "
        "that it is not alive after two such comparisons in a row.",
    ),
    Metric(
        "hexflow_operator_objects",
        "gauge",
        "",
        "Objects that the operator keeps in memory.",
        "Its memory grows with them, by some ten kilobytes each.",
    ),
    Metric(
        "hexflow_operator_leading",
        "gauge",
        "",
        "1 where this process leads, 0 where it waits.",
        "The sum over all replicas should be 1. 0 for longer than a minute: nobody acts; look at the Lease.",
    ),
    Metric(
        "hexflow_operator_router_reports_total",
        "counter",
        "outcome",
        "Questions to the routers about themselves, by outcome (Answered, Silent).",
        "Silent while the router's pods are ready: a NetworkPolicy keeps the operator from its admin port.",
    ),
)


class Metrics:
    """Count and measure by the names of the table, in a registry of their own."""

    def __init__(self) -> None:
        """Make every metric of the table."""
        registry = self._registry = CollectorRegistry()
        self._counters: dict[str, Counter] = {}
        self._gauges: dict[str, Gauge] = {}
        self._histograms: dict[str, Histogram] = {}
        for each in TABLE:
            said = each.name, each.help, each.labels.split()
            if each.kind == "counter":
                self._counters[each.name] = Counter(*said, registry=registry)
            elif each.kind == "gauge":
                self._gauges[each.name] = Gauge(*said, registry=registry)
            else:
                self._histograms[each.name] = Histogram(*said, buckets=SECONDS, registry=registry)

    def count(self, name: str, *labels: str, by: float = 1) -> None:
        """Add to a counter."""
        self._counters[name].labels(*labels).inc(by)

    def set(self, name: str, value: float) -> None:
        """Set a gauge."""
        self._gauges[name].set(value)

    def observe(self, name: str, seconds: float, *labels: str) -> None:
        """Note a duration."""
        self._histograms[name].labels(*labels).observe(seconds)

    def exposition(self) -> bytes:
        """Return all of them in Prometheus' text format."""
        return generate_latest(self._registry)


def page() -> str:
    """Return ``docs/reference/operator-metrics.md``."""
    where = (
        "At `/metrics` of the operator's port, in Prometheus' text format, beside `/healthz` and `/readyz`."
    )
    return metrics_page("operator", where, TABLE)


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201
