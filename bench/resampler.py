"""The time of the live resampler for 10 ms of sound: `python -m bench.resampler`."""

import sys
import time

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from bench.measurement.host import Host
from streaming.native import resample
from streaming.native.resample import NativeResampler

RATES = [(48000, 16000), (16000, 48000), (44100, 48000)]
"""Pairs of rates, input and output."""
QUALITIES = ("low", "medium", "high", "best")
"""The qualities of the live resampler."""
BLOCK_S = 0.01
"""The seconds of sound in a block."""
ROUNDS = 2000
"""Measured blocks."""


def block_us(rate_in: int, rate_out: int, quality: str, rounds: int) -> NDArray[np.float64]:
    """Return the microseconds of each block."""
    resampler = NativeResampler(rate_in, rate_out, quality)
    x = np.ones(round(rate_in * BLOCK_S), np.float32)
    target = np.empty(round(rate_out * BLOCK_S) + 1, np.float32)
    convert, took_ns = resample.convert.call, np.empty(rounds)
    for index in range(rounds):
        begun_ns = time.perf_counter_ns()
        convert(resampler.address, x.ctypes.data, len(x), target.ctypes.data, len(target))
        took_ns[index] = time.perf_counter_ns() - begun_ns
    return took_ns / 1e3


def main() -> None:
    """Print p50 and p99 for each pair of rates and each quality."""
    table = Table(title="Resampler: microseconds for 10 ms of one channel")
    for column in ("from Hz", "to Hz", "quality", "p50", "p99"):
        table.add_column(column, justify="left" if column == "quality" else "right")
    for rate_in, rate_out in RATES:
        for quality in QUALITIES:
            p50, p99 = np.percentile(block_us(rate_in, rate_out, quality, ROUNDS), [50, 99])
            table.add_row(str(rate_in), str(rate_out), quality, f"{p50:.1f}", f"{p99:.1f}")
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    console.print(str(Host.here()))


if __name__ == "__main__":
    main()
