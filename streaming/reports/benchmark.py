"""A benchmark of a step: how long it takes, and the cost of each kind of op."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from pulse.facts import Array
from pulse.interface import Port
from pulse.program.native.native_state import NativeState
from pulse.program.native.profile import Profile
from pulse.program.program import Program
from pulse.program.streams.state import State
from pulse.support.record import record
from pulse.support.report import Pairs, Report, Section, Table, Text, duration
from pulse.support.wording import spell
from streaming.latency import LatencyHistogram
from streaming.opening.opened_model import OpenedModel, backend_text
from streaming.reports.profile_report import profile_dict, profile_sections

WARM_UP_STEPS = 50
"""Steps before the first round, which are not measured."""
PROFILE_STEPS = 200
"""Steps of a profile."""
BAR_COLUMNS = 40
COLUMNS = ("", "p50", "p90", "p99", "p99.9", "max", "mean", "p99.9/p50")


@record
class Benchmark(Report):
    """The latency of every step on noise.

    opened, program  what was measured
    steps    steps of each round
    rounds   the latency of each round
    total    the latency of all rounds
    profile  None if the backend has no instructions
    details  whether the text includes nodes and instructions
    """

    opened: OpenedModel
    program: Program
    steps: int
    rounds: tuple[LatencyHistogram, ...]
    total: LatencyHistogram
    profile: Profile | None
    details: bool = False

    def sections(self) -> list[Section]:
        """Return percentiles, a histogram, and the profile."""
        total = self.total
        pairs = [("model", f"{self.opened.title}, {backend_text(self.program)}")]
        pairs += self.opened.pairs(self.program.model)
        if total.deadline_s is not None:
            share = total.percentile_s(99) / total.deadline_s
            missed = f"missed by {total.missed} of {total.count}; p99 is {share:.1%} of it"
            pairs.append(("deadline", f"{duration(total.deadline_s)}, {missed}"))
        named = [(f"round {round_index}", latency) for round_index, latency in enumerate(self.rounds, 1)]
        rows = [_row(name, latency) for name, latency in (*named, ("all", total))]
        bins = total.histogram()
        max_count = max((row.count for row in bins), default=1)
        bars = [
            [
                duration(row.from_s),
                duration(row.to_s),
                str(row.count),
                "█" * -(-row.count * BAR_COLUMNS // max_count),
            ]
            for row in bins
        ]
        profile: list[Section] = [
            Text(
                f"no profile: the {self.program.backend} backend has no instructions; use {spell('backend', 'numba')}",
                "dim",
            )
        ]
        if self.profile is not None:
            profile = profile_sections(self.profile, self.details)
        return [
            Pairs(pairs),
            Table("latency of a step", COLUMNS, rows, range(1, 8)),
            Table("histogram", ("from", "to", "steps", ""), bars, range(3)),
            *profile,
        ]

    def values(self) -> dict[str, Any]:
        return {
            **self.opened.as_dict(self.program.model),
            "backend": self.program.backend,
            "weights": self.program.form,
            "activations": self.program.activations,
            "threads": self.program.threads,
            "steps": self.steps,
            "rounds": self.rounds,
            "latency": self.total,
            "p999_over_p50": self.total.percentile_s(99.9) / self.total.percentile_s(50),
            "histogram": self.total.histogram(),
            **profile_dict(self.profile),
        }


def measure_steps(
    opened: OpenedModel,
    program: Program,
    steps: int,
    rounds: int,
    details: bool,
    advance: Callable[[int, int], None],
) -> Benchmark:
    """Time ``rounds`` rounds of ``steps`` steps, each on a new stream, then profile the steps."""
    deadline_s = opened.deadline_s(program.pulse)
    by_round, total = [LatencyHistogram(deadline_s) for _ in range(rounds)], LatencyHistogram(deadline_s)
    for number, latency in enumerate(by_round, 1):
        _measure(program, steps, latency)
        total.merge(latency)
        advance(number, rounds)
    state = _new_state(program, np.random.default_rng(0))
    profile = state.profile(PROFILE_STEPS) if isinstance(state, NativeState) else None
    return Benchmark(opened, program, steps, tuple(by_round), total, profile, details)


def _measure(program: Program, steps: int, latency: LatencyHistogram) -> None:
    rng = np.random.default_rng(0)
    state = _new_state(program, rng)
    feeds = [{port.name: _noise(port, rng) for port in program.inputs if port.streams} for _ in range(8)]
    for step in range(-WARM_UP_STEPS, steps):
        feed = feeds[step % len(feeds)]
        if program.limit is not None and (state.clock.pulse + 1) * program.pulse > program.limit:
            state.reset()
        start_ns = time.perf_counter_ns()
        state.step(feed)
        step_ns = time.perf_counter_ns() - start_ns
        if step >= 0:
            latency.record_ns(step_ns)


def _new_state(program: Program, rng: np.random.Generator) -> State:
    return program.spawn({port.name: _noise(port, rng) for port in program.inputs if not port.streams})


def _noise(port: Port, rng: np.random.Generator) -> Array:
    if np.issubdtype(port.dtype, np.floating):
        return (0.1 * rng.standard_normal(port.shape)).astype(port.dtype)
    return rng.integers(0, 2, port.shape).astype(port.dtype)


def _row(name: str, latency: LatencyHistogram) -> list[str]:
    summary = latency.summary()
    times = (*summary.percentiles().values(), summary.mean_us)
    return [name, *(duration(us / 1e6) for us in times), f"{summary.p999_us / summary.p50_us:.2f}"]
