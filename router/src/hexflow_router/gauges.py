"""What is read off when Prometheus comes: queues, running calls, readiness, the age of engines' counts."""

from hexflow_router.breaker import BreakerState
from hexflow_router.discovery import Discovery
from hexflow_router.driver import Driver
from hexflow_router.metrics import Metrics
from hexflow_scheduler import InstanceState


def measure(metrics: Metrics, *, driver: Driver, discovery: Discovery) -> None:
    """Set the gauges of the data path to what is so now; series of instances that are gone are dropped."""
    view = driver.kernel.view()
    for name in (
        "hexflow_calls_waiting",
        "hexflow_calls_running",
        "hexflow_instance_ready",
        "hexflow_breaker_open",
        "hexflow_engine_sample_age_seconds",
        "hexflow_engine_sample_stale",
    ):
        metrics.clear(name)
    for shown in view.instances:
        instance = shown.instance
        metrics.set("hexflow_calls_waiting", len(shown.queue), instance.instance_id)
        metrics.set("hexflow_calls_running", len(shown.running), instance.instance_id)
        ready = instance.state is InstanceState.READY
        metrics.set("hexflow_instance_ready", float(ready), instance.instance_id, instance.pool)
    metrics.set("hexflow_calls_waiting", len(view.parked), "none")
    metrics.set("hexflow_oldest_wait_seconds", driver.oldest_wait())
    for watch in discovery.watches():
        labels = (watch.instance_id, watch.pool.name)
        metrics.set("hexflow_breaker_open", float(watch.breaker is not BreakerState.CLOSED), *labels)
        metrics.set("hexflow_engine_sample_stale", float(watch.stale()), *labels)
        age = watch.sample_age()
        if age is not None:
            metrics.set("hexflow_engine_sample_age_seconds", age, *labels)
