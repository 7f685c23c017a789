"""vLLM's metrics, by vLLM's names, of the emulated engine.

What needs a real GPU (flops, bytes read) is there and stays 0, so that dashboards and alerts written for
vLLM find every name. Times are emulated seconds.
"""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from hexflow_emulator.arguments import EmulatorOptions
from hexflow_simulator import Engine, Finished

SECONDS = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0,
    960.0, 1920.0, 7680.0,
)  # fmt: skip
FIRST_TOKEN = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0,
    80.0, 160.0, 640.0, 2560.0,
)  # fmt: skip
PER_TOKEN = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
STEP_TOKENS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384)
SAMPLES = (1, 2, 5, 10, 20)

HISTOGRAMS: dict[str, tuple[float, ...]] = {
    "time_to_first_token_seconds": FIRST_TOKEN,
    "inter_token_latency_seconds": PER_TOKEN,
    "request_time_per_output_token_seconds": PER_TOKEN,
    "e2e_request_latency_seconds": SECONDS,
    "request_queue_time_seconds": SECONDS,
    "request_inference_time_seconds": SECONDS,
    "request_prefill_time_seconds": SECONDS,
    "request_decode_time_seconds": SECONDS,
    "request_prompt_tokens": TOKENS,
    "request_generation_tokens": TOKENS,
    "request_max_num_generation_tokens": TOKENS,
    "request_params_max_tokens": TOKENS,
    "request_prefill_kv_computed_tokens": TOKENS,
    "request_params_n": SAMPLES,
    "request_num_preemptions": SAMPLES,
    "iteration_tokens_total": STEP_TOKENS,
}
REASONS = ("stop", "length", "abort", "error", "repetition")


class EngineMetrics:
    """Count what the emulated engine does."""

    def __init__(self, engine: Engine, *, options: EmulatorOptions, started: float) -> None:
        self.registry = CollectorRegistry()
        self._labels = {"engine": "0", "model_name": options.names[0]}
        names = list(self._labels)
        self._histograms = {
            name: Histogram(f"vllm:{name}", name, names, buckets=buckets, registry=self.registry).labels(
                **self._labels
            )
            for name, buckets in HISTOGRAMS.items()
        }
        self._success = Counter(
            "vllm:request_success",
            "Requests by how they ended",
            [*names, "finished_reason"],
            registry=self.registry,
        )
        for reason in REASONS:
            self._success.labels(**self._labels, finished_reason=reason)
        self._prompt_tokens = self._counter("prompt_tokens", "Prompt tokens computed or found")
        self._generation_tokens = self._counter("generation_tokens", "Tokens written")
        self._cached_tokens = self._counter("prompt_tokens_cached", "Prompt tokens found in the prefix cache")
        self._by_source = Counter(
            "vllm:prompt_tokens_by_source",
            "Prompt tokens by where they came from",
            [*names, "source"],
            registry=self.registry,
        )
        self._cached_by_source = Counter(
            "vllm:prompt_tokens_cached_by_source",
            "Cached tokens by store",
            [*names, "source"],
            registry=self.registry,
        )
        for source in ("local_compute", "local_cache_hit", "external_kv_transfer"):
            self._by_source.labels(**self._labels, source=source)
        for source in ("device", "host", "p2p", "disk", "external_unspecified"):
            self._cached_by_source.labels(**self._labels, source=source)
        rejections = Counter(
            "vllm:admission_rejections",
            "Requests refused for a full queue",
            ["model_name", "reason"],
            registry=self.registry,
        )
        for reason in ("max_num_queued_reqs", "max_num_queued_tokens"):
            rejections.labels(model_name=options.names[0], reason=reason)
        for unused in (
            "estimated_flops_per_gpu", "estimated_read_bytes_per_gpu", "estimated_write_bytes_per_gpu",
            "external_prefix_cache_queries", "external_prefix_cache_hits", "mm_cache_queries", "mm_cache_hits",
        ):  # fmt: skip
            self._counter(unused, "Always 0 on an emulated instance")
        sleep = Gauge(
            "vllm:engine_sleep_state", "Never sleeps", [*names, "sleep_state"], registry=self.registry
        )
        for state in ("awake", "weights_offloaded", "discard_all"):
            sleep.labels(**self._labels, sleep_state=state).set(state == "awake")
        process = Gauge(
            "process_start_time_seconds", "When it started, since the epoch", registry=self.registry
        )
        process.set(started)
        self.registry.register(_EngineCollector(engine, options=options, labels=self._labels))

    def _counter(self, name: str, text: str) -> Counter:
        return Counter(f"vllm:{name}", text, list(self._labels), registry=self.registry).labels(
            **self._labels
        )

    def asked(self, *, samples: int, max_tokens: int) -> None:
        """Count a request as it arrives."""
        self._histograms["request_params_n"].observe(samples)
        self._histograms["request_params_max_tokens"].observe(max_tokens)

    def ended(self, finished: Finished, *, prompt_tokens: int, reason: str) -> None:
        """Count a sample that the engine has completed."""
        h = self._histograms
        decode = finished.finished - finished.first_token
        gaps = finished.output_tokens - 1
        h["time_to_first_token_seconds"].observe(finished.first_token - finished.submitted)
        h["e2e_request_latency_seconds"].observe(finished.finished - finished.submitted)
        h["request_queue_time_seconds"].observe(finished.started - finished.submitted)
        h["request_inference_time_seconds"].observe(finished.finished - finished.started)
        h["request_prefill_time_seconds"].observe(finished.first_token - finished.started)
        h["request_decode_time_seconds"].observe(decode)
        h["request_prompt_tokens"].observe(prompt_tokens)
        h["request_generation_tokens"].observe(finished.output_tokens)
        h["request_max_num_generation_tokens"].observe(finished.output_tokens)
        h["request_prefill_kv_computed_tokens"].observe(prompt_tokens - finished.cached_tokens)
        h["request_num_preemptions"].observe(finished.preemptions)
        if gaps:
            h["inter_token_latency_seconds"].observe(decode / gaps)
            h["request_time_per_output_token_seconds"].observe(decode / gaps)
        computed = prompt_tokens - finished.cached_tokens
        self._prompt_tokens.inc(prompt_tokens)
        self._cached_tokens.inc(finished.cached_tokens)
        self._by_source.labels(**self._labels, source="local_compute").inc(computed)
        self._by_source.labels(**self._labels, source="local_cache_hit").inc(finished.cached_tokens)
        self._cached_by_source.labels(**self._labels, source="device").inc(finished.cached_tokens)
        self._generation_tokens.inc(finished.output_tokens)
        self._success.labels(**self._labels, finished_reason=reason).inc()

    def text(self) -> bytes:
        """Return the metrics in Prometheus' text form."""
        return generate_latest(self.registry)


class _EngineCollector(Collector):
    """Read the gauges off the engine when they are asked for."""

    def __init__(self, engine: Engine, *, options: EmulatorOptions, labels: dict[str, str]) -> None:
        self._engine = engine
        self._options = options
        self._labels = labels

    def collect(self) -> Iterable[Metric]:
        counts = self._engine.counts()
        yield self._gauge("num_requests_running", "Requests in the running batch", counts.running)
        yield self._gauge("num_requests_waiting", "Requests that wait", counts.waiting)
        waiting = GaugeMetricFamily(
            "vllm:num_requests_waiting_by_reason",
            "Requests that wait, by reason",
            labels=[*self._labels, "reason"],
        )
        waiting.add_metric([*self._labels.values(), "capacity"], counts.waiting)
        waiting.add_metric([*self._labels.values(), "deferred"], 0)
        yield waiting
        yield self._gauge(
            "kv_cache_usage_perc",
            "Share of the KV cache in use; 1 is all",
            counts.used_blocks / counts.capacity_blocks,
        )
        for name, value in (
            ("prefix_cache_queries", counts.prefix_queries),
            ("prefix_cache_hits", counts.prefix_hits),
            ("num_preemptions", counts.preemptions),
        ):
            family = CounterMetricFamily(f"vllm:{name}", name, labels=list(self._labels))
            family.add_metric(list(self._labels.values()), value)
            yield family
        info = {
            **self._labels,
            "block_size": str(self._options.engine.block_tokens),
            "enable_prefix_caching": str(self._options.engine.keep_prefixes),
            "num_gpu_blocks": str(counts.capacity_blocks),
        }
        cache = GaugeMetricFamily("vllm:cache_config_info", "Settings of the KV cache", labels=list(info))
        cache.add_metric(list(info.values()), 1)
        yield cache

    def _gauge(self, name: str, text: str, value: float) -> GaugeMetricFamily:
        family = GaugeMetricFamily(f"vllm:{name}", text, labels=list(self._labels))
        family.add_metric(list(self._labels.values()), value)
        return family
