"""StreamTimes: the latencies of one stream, or of many."""

from typing import Any

from streaming.latency import LatencyHistogram


class StreamTimes:
    """Histograms, each written by one thread.

    waiting  time from the arrival of a pulse's last sample to its step
    compute  duration of the step, shared by its lanes
    total    time from the arrival until the outputs were handed to the socket
    """

    def __init__(self) -> None:
        self.waiting, self.compute, self.total = LatencyHistogram(), LatencyHistogram(), LatencyHistogram()

    @property
    def by_name(self) -> dict[str, LatencyHistogram]:
        """The latency of each stage, by its name in the protocol."""
        return {"queue": self.waiting, "step": self.compute, "answer": self.total}

    def merge(self, other: "StreamTimes") -> None:
        """Add the counts of another."""
        for name, latency in self.by_name.items():
            latency.merge(other.by_name[name])

    def as_dict(self) -> dict[str, Any]:
        """Return percentiles in microseconds: the fields of ``stats``."""
        return {f"{name}_us": _percentiles(latency) for name, latency in self.by_name.items()}


def _percentiles(latency: LatencyHistogram) -> dict[str, float]:
    summary = latency.summary()
    return {"count": summary.count, "p50": summary.p50_us, "p99": summary.p99_us, "max": summary.max_us}
