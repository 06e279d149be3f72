"""A loop that times several steppers in alternating rounds."""

import gc
import itertools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import TypeVar

import numpy as np

Feed = TypeVar("Feed")


@dataclass(frozen=True)
class Percentiles:
    """The time of one step, in microseconds."""

    p50_us: float
    p90_us: float
    p99_us: float
    p99_9_us: float
    max_us: float

    @classmethod
    def of(cls, times_ns: Sequence[int]) -> "Percentiles":
        """Return the percentiles of the times of all steps."""
        return cls(*(float(value) / 1e3 for value in np.percentile(times_ns, [50, 90, 99, 99.9, 100])))


@dataclass(frozen=True)
class Ratio:
    """How many times slower one stepper is than another: median, lowest and highest over the rounds."""

    median: float
    lowest: float
    highest: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.lowest:.2f}..{self.highest:.2f})"


@dataclass(frozen=True)
class Comparison:
    """The percentiles of every stepper in every round."""

    rounds: Mapping[str, Sequence[Percentiles]]

    def median(self, name: str) -> Percentiles:
        """Return the median over the rounds of each percentile; the largest of the maxima."""
        p50, p90, p99, p99_9, longest = zip(*(astuple(percentiles) for percentiles in self.rounds[name]))
        median = statistics.median
        return Percentiles(median(p50), median(p90), median(p99), median(p99_9), max(longest))

    def ratio(self, slow: str, fast: str, percentile: str = "p50_us") -> Ratio:
        """Return the time of ``slow`` divided by that of ``fast``, over the rounds."""
        pairs = zip(self.rounds[slow], self.rounds[fast])
        ratios = [getattr(a, percentile) / getattr(b, percentile) for a, b in pairs]
        return Ratio(statistics.median(ratios), min(ratios), max(ratios))


def alternate(
    steppers: Mapping[str, Callable[[], object]], rounds: int, steps: int, warmup_steps: int = 300
) -> Comparison:
    """Time every stepper for ``steps`` calls per round, one after the other; who goes first changes by round.

    Short alternating rounds let a change in the machine's speed reach all steppers alike. The garbage collector
    is off while it times.
    """
    results: dict[str, list[Percentiles]] = {name: [] for name in steppers}
    for stepper in steppers.values():
        for _ in range(warmup_steps):
            stepper()
    order = list(steppers)
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            for name in order:
                results[name].append(Percentiles.of(time_steps(steppers[name], steps)))
            order.append(order.pop(0))
    finally:
        if was_enabled:
            gc.enable()
    return Comparison(results)


def time_steps(stepper: Callable[[], object], steps: int) -> list[int]:
    """Return the time of each of ``steps`` calls, in nanoseconds."""
    clock = time.perf_counter_ns
    times: list[int] = []
    for _ in range(steps):
        started_ns = clock()
        stepper()
        times.append(clock() - started_ns)
    return times


def make_stepper(step: Callable[[Feed], object], pulses: Sequence[Feed]) -> Callable[[], object]:
    """Return a stepper that passes one pulse after another to ``step``, in a cycle."""
    source = itertools.cycle(pulses)
    return lambda: step(next(source))
