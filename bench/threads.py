"""``python -m bench.threads``: long steps on one thread and on several, alternately; all results are the same bits."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import pulse
from bench.measurement.timing import Ratio, alternate, make_stepper
from bench.models import PUBLISHED, catalogue
from pulse.program.native.kernel_program import KernelProgram
from pulse.program.program import Program

PULSES = {
    "swift_f0": (256, 1024, 4096, 16384),
    "fireredvad": (1, 16, 64, 256),
    "gtcrn": (1, 32, 128),
    "tcn_1": (1, 32, 256),
    "gru": (1, 32),
    "seanet_encoder_256": (320, 3200, 12800),
    "seanet_decoder_256": (1, 10, 40),
    "separator": (80, 800, 3200),
    "conformer": (8, 64, 256),
}
"""Models by their keys, and frames of a pulse."""


@dataclass(frozen=True)
class ThreadTime:
    """A model at one pulse: microseconds of a step on one thread and on several, and how many rows run in parts."""

    title: str
    pulse: int
    alone_us: float
    shared_us: float
    ratio: Ratio
    rows: int
    in_parts: int


def thread_time(title: str, alone: Program, threads: int, rounds: int) -> ThreadTime:
    """Time both on the same noise. Raises AssertionError: the results are not bit-identical."""
    shared = alone.with_threads(threads)
    assert isinstance(shared, KernelProgram)
    (port,) = (port for port in alone.inputs if port.streams)
    pulses = (0.1 * np.random.default_rng(0).standard_normal((8, *port.shape))).astype(np.float32)
    states = {"alone": alone.spawn(), "shared": shared.spawn()}
    for x in pulses:
        single, several = (state.step({port.name: x}) for state in states.values())
        assert all(single[name].tobytes() == several[name].tobytes() for name in single), title
    steppers = {name: make_stepper(state.step, list(pulses)) for name, state in states.items()}
    times = alternate(steppers, rounds, steps=20, warmup_steps=20)
    alone_us, shared_us = (times.median(name).p50_us for name in steppers)
    return ThreadTime(
        title,
        alone.pulse,
        alone_us,
        shared_us,
        times.ratio("alone", "shared"),
        shared.row_count,
        shared.thread_cuts.count,
    )


def thread_times(threads: int, rounds: int, keys: list[str], folder: Path) -> Iterator[ThreadTime]:
    """Yield the times of each model at each of its pulses, except those of missing files."""
    for entry in catalogue(folder):
        if keys and entry.key not in keys:
            continue
        for frames in PULSES.get(entry.key, ()):
            program = pulse.stream(pulse.load(entry.source(), **entry.arguments), frames)
            yield thread_time(entry.title, program, threads, rounds)


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("keys", nargs="*", help="models; all without any")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--models", type=Path, default=PUBLISHED, help="folder of published models")
    options = parser.parse_args()
    print(f"| model | pulse | one thread | {options.threads} threads | ratio | rows in parts |")
    print("|---|---:|---:|---:|---:|---:|")
    for row in thread_times(options.threads, options.rounds, options.keys, options.models):
        print(
            f"| {row.title} | {row.pulse} | {row.alone_us:,.0f} us | {row.shared_us:,.0f} us | {row.ratio} | "
            f"{row.in_parts} of {row.rows} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
