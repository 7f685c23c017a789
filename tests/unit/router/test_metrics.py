from pathlib import Path

from hexflow_router.metrics import TABLE, Metrics, page

ROOT = Path(__file__).parents[3]


def test_the_page_of_metrics_is_not_stale() -> None:
    written = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    assert written == page(), "write it anew: python -m hexflow_router.metrics > docs/reference/metrics.md"


def test_every_metric_says_what_to_do_about_it() -> None:
    assert len({metric.name for metric in TABLE}) == len(TABLE)
    for metric in TABLE:
        assert metric.name.startswith("hexflow_")
        assert metric.help.endswith(".")
        assert len(metric.advice) > 30
        assert metric.name.endswith("_total") == (metric.kind == "counter")


def test_counts_gauges_and_times_come_out_as_prometheus_reads_them() -> None:
    metrics = Metrics()
    metrics.count("hexflow_calls_total", "a100", "Finished", by=2)
    metrics.set("hexflow_calls_waiting", 3, "a100-0")
    metrics.observe("hexflow_call_seconds", 0.7, "a100")
    text = metrics.exposition().decode()
    assert 'hexflow_calls_total{outcome="Finished",pool="a100"} 2.0' in text
    assert 'hexflow_calls_waiting{instance="a100-0"} 3.0' in text
    assert 'hexflow_call_seconds_bucket{le="1.0",pool="a100"} 1.0' in text
    metrics.clear("hexflow_calls_waiting")
    assert "a100-0" not in metrics.exposition().decode()
