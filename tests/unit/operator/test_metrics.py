from pathlib import Path

from hexflow_operator.metrics import TABLE, Metrics, page

ROOT = Path(__file__).parents[3]


def test_the_page_of_metrics_is_not_stale() -> None:
    written = (ROOT / "docs" / "reference" / "operator-metrics.md").read_text(encoding="utf-8")
    assert written == page(), (
        "write it anew: python -m hexflow_operator.metrics > docs/reference/operator-metrics.md"
    )


def test_every_metric_says_what_to_do_about_it() -> None:
    assert len({metric.name for metric in TABLE}) == len(TABLE)
    for metric in TABLE:
        assert metric.name.startswith("hexflow_operator_")
        assert len(metric.advice) > 30
        assert metric.name.endswith("_total") == (metric.kind == "counter")


def test_counts_gauges_and_times_come_out_as_prometheus_reads_them() -> None:
    metrics = Metrics()
    metrics.count("hexflow_operator_writes_total", "Deployment", "apply", by=2)
    metrics.set("hexflow_operator_leading", 1)
    metrics.observe("hexflow_operator_reconcile_seconds", 0.02, "GPUPool")
    text = metrics.exposition().decode()
    assert 'hexflow_operator_writes_total{kind="Deployment",verb="apply"} 2.0' in text
    assert "hexflow_operator_leading 1.0" in text
    assert 'hexflow_operator_reconcile_seconds_bucket{kind="GPUPool",le="0.03"} 1.0' in text
