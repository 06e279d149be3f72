"""Metrics for Prometheus."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from streaming.latency import LatencyHistogram
from streaming.serve.counts import COUNT_MEANINGS

if TYPE_CHECKING:
    from streaming.serve.service import Service

BOUNDS_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0)
"""The upper bounds of the buckets."""
PART_MEANINGS = {
    "queue": "Seconds from the arrival of a pulse's last sample to its step",
    "step": "Seconds of the step of a pulse",
    "answer": "Seconds from the arrival of a pulse's last sample until its outputs are handed to the socket",
}
"""The measured parts of a pulse's latency."""


class ServiceCollector(Collector):
    """Reads the metrics of a service on demand."""

    def __init__(self, service: "Service") -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics, as they are now."""
        service = self._service
        streams = GaugeMetricFamily("pulse_streams", "Streams that are open", labels=["model"])
        lanes = GaugeMetricFamily("pulse_lanes", "Streams that may be open", labels=["model"])
        for model in service.models:
            streams.add_metric([model.name], model.open_streams)
            lanes.add_metric([model.name], model.settings.streams)
        yield streams
        yield lanes
        load = GaugeMetricFamily(
            "pulse_thread_load", "Fraction of a thread that steps fill, by their p99", labels=["thread"]
        )
        for index, worker in enumerate(service.workers):
            load.add_metric([str(index)], service.admission.thread_load(worker))
        yield load
        yield GaugeMetricFamily(
            "pulse_loop_load",
            "Fraction of the last second in which the event loop computed",
            service.admission.loop_fraction,
        )
        yield GaugeMetricFamily("pulse_connections", "WebSockets that are open", len(service.connections))
        for name, count in service.counts.by_name().items():
            yield CounterMetricFamily(f"pulse_{name}", COUNT_MEANINGS[name], count)
        endings = CounterMetricFamily(
            "pulse_connections_ended", "Connections by the reason of their end", labels=["reason"]
        )
        for reason, count in sorted(service.counts.ended.items()):
            endings.add_metric([reason], count)
        yield endings
        for part, meaning in PART_MEANINGS.items():
            family = HistogramMetricFamily(f"pulse_{part}_seconds", meaning, labels=["model"])
            for model in service.models:
                latency = service.times(model.name).by_name[part]
                family.add_metric([model.name], _buckets(latency), latency.total_ns / 1e9)
            yield family


def prometheus_text(service: "Service") -> bytes:
    """Return the text of /metrics."""
    registry = CollectorRegistry()
    registry.register(ServiceCollector(service))
    return generate_latest(registry)


def _buckets(latency: LatencyHistogram) -> list[tuple[str, float]]:
    bucket_counts = latency.bucket_counts()
    counts = [
        (f"{bound:g}", float(sum(count for ns, count in bucket_counts if ns <= bound * 1e9)))
        for bound in BOUNDS_S
    ]
    return [*counts, ("+Inf", float(sum(count for _, count in bucket_counts)))]
