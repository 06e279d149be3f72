"""``python -m bench.executor``: what the executor costs besides the model, and the memory of a long file."""

import argparse
import json
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

import anyio
import numpy as np
from rich.console import Console
from rich.table import Table

import pulse
from bench.hop import bare_hop_us
from bench.host import Host
from bench.live.load import compute_and_collect
from bench.models.amplifier import RATE_HZ, amplifier
from pulse.facts import Array
from pulse.program.program import Program
from streaming.builtin import SAMPLE_RATE_HZ, model_path
from streaming.executor import Executor, SoundFileSink
from streaming.realtime.rights import status

MODELS: Mapping[str, tuple[Callable[[], Program], int]] = {
    "denoiser": (lambda: pulse.stream(model_path(), pulse=160), SAMPLE_RATE_HZ),
    "amplifier": (lambda: pulse.stream(amplifier(), pulse=480), RATE_HZ),
}
"""The rows of the table, both in pulses of 10 ms: one of about 20 us, one of about 1 ms."""
LOADS: Mapping[str, Callable[[], AbstractContextManager[None]]] = {
    "idle": nullcontext,
    "computes and collects": compute_and_collect,
}
"""What else Python does."""
LOOPS = ("asyncio", "trio")
"""The event loops that are compared."""
PERIOD_S = 0.01
"""The seconds between two pulses of a paced stream."""
GROUP = 100
"""Pulses over which one overhead of a saturated run is measured."""
MINUTES = (1, 60)
"""The lengths of the files whose memory is compared."""


@dataclass(frozen=True)
class Row:
    """One run; times in microseconds a pulse.

    model_us     p50 of the model alone, inside the run
    overhead_us  p50 of everything else: saturated, the time that passes besides the model's, over ``GROUP`` pulses;
                 paced, from the pulse's arrival to its outputs being taken, besides the model's
    loop_us      processor time of the event loop's thread
    """

    model: str
    source: str
    loop: str
    load: str
    model_us: float
    overhead_us: float
    queueing_us: float
    total_p50_us: float
    total_p99_us: float
    loop_us: float


async def pulses_on_request(x: Array, count: int) -> AsyncGenerator[Array]:
    for _ in range(count):
        yield x


async def paced_pulses(x: Array, count: int) -> AsyncGenerator[Array]:
    """Yield a pulse every 10 ms."""
    at_s = anyio.current_time()
    for _ in range(count):
        at_s += PERIOD_S
        await anyio.sleep_until(at_s)
        yield x


SOURCES = {"saturated": pulses_on_request, "paced": paced_pulses}
"""Where the pulses of a run come from: as soon as they are wanted, or in real time."""


def overhead(model: str, source: str, loop: str, load: str, seconds: float) -> Row:
    """Run one model for about this many seconds."""
    program, rate_hz = MODELS[model][0](), MODELS[model][1]
    port, output = program.inputs[0], program.outputs[0]
    x = (np.random.default_rng(0).standard_normal(port.shape) / 10).astype(port.dtype)
    groups_us: list[float] = []

    async def run(count: int) -> tuple[Executor, float]:
        spent_s = 0.0
        async with Executor(program, rate_hz=rate_hz) as executor:
            spent_s = time.thread_time()
            begun_ns, frames = time.perf_counter_ns(), 0
            async for outputs in executor.stream(SOURCES[source](x, count)):
                frames += outputs[output.name].shape[output.axis or 0]
                if frames >= GROUP * output.frames:
                    now_ns = time.perf_counter_ns()
                    groups_us.append((now_ns - begun_ns) / 1e3 * output.frames / frames)
                    begun_ns, frames = now_ns, 0
        return executor, (time.thread_time() - spent_s) * 1e6 / count

    with LOADS[load]():
        anyio.run(run, 5 * GROUP if source == "saturated" else 20, backend=loop)
        groups_us.clear()
        count = seconds * 100 if source == "paced" else seconds * 1e6 / expected_us(program, x)
        executor, loop_us = anyio.run(run, max(int(count), 5 * GROUP), backend=loop)
    statistics = executor.statistics()
    queueing, compute, total = (
        statistics.queueing.summary(),
        statistics.compute.summary(),
        statistics.total.summary(),
    )
    found_us = float(np.median(groups_us)) if source == "saturated" else total.p50_us
    beside_us = found_us - (compute.mean_us if source == "saturated" else compute.p50_us)
    times = (compute.p50_us, beside_us, queueing.p50_us, total.p50_us, total.p99_us, loop_us)
    return Row(model, source, loop, load, *times)


def expected_us(program: Program, x: Array) -> float:
    """Return the approximate time of a pulse."""
    state = program.spawn()
    state.step(x)
    begun_ns = time.perf_counter_ns()
    for _ in range(20):
        state.step(x)
    return (time.perf_counter_ns() - begun_ns) / 20e3 + 50


def sparse_file(path: Path, minutes: int) -> None:
    """Create a WAV file of silence that takes no space on the disk: mono, 16 bit."""
    size = 2 * minutes * 60 * SAMPLE_RATE_HZ
    form = struct.pack("<HHIIHH", 1, 1, SAMPLE_RATE_HZ, 2 * SAMPLE_RATE_HZ, 2, 16)
    head = struct.pack("<4sI4s4sI16s4sI", b"RIFF", 36 + size, b"WAVE", b"fmt ", 16, form, b"data", size)
    with path.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + size)


async def long_file(minutes: int, folder: Path) -> None:
    """Stream a file of this many minutes through the denoiser into another file."""
    sparse_file(folder / "in.wav", minutes)
    async with Executor(MODELS["denoiser"][0](), rate_hz=SAMPLE_RATE_HZ) as executor:
        await executor.run(folder / "in.wav", SoundFileSink(folder / "out.flac"))


def memory(minutes: int) -> tuple[float, float]:
    """Return the peak memory in MiB of a separate process that streams a long file, and its seconds."""
    begun_s = time.perf_counter()
    command = [sys.executable, "-m", "bench.executor", "--long-file", str(minutes)]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(process.stdout), time.perf_counter() - begun_s


def main() -> None:
    """Measure each setting, one after the other, and print tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.executor", description=main.__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each row")
    parser.add_argument("--json", type=Path, help="write all figures")
    parser.add_argument("--long-file", type=int, metavar="MINUTES", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.long_file is not None:
        with tempfile.TemporaryDirectory() as folder:
            anyio.run(long_file, options.long_file, Path(folder))
        print(
            int(status("VmHWM").removesuffix(" kB")) / 1024
        )  # ``ru_maxrss`` is never below that of the parent
        return
    host, console = Host.here(), Console(width=None if sys.stdout.isatty() else 120)
    table = Table(title="Executor: microseconds a pulse")
    for column in (
        "model",
        "source",
        "loop",
        "load",
        "model",
        "overhead",
        "queueing",
        "total",
        "p99",
        "loop",
    ):
        table.add_column(column, justify="left" if len(table.columns) < 4 else "right")
    rows = [
        overhead(model, source, loop, load, options.seconds)
        for model in MODELS
        for source in SOURCES
        for loop in LOOPS
        for load in LOADS
    ]
    for row in rows:
        names, times = list(asdict(row).values())[:4], list(asdict(row).values())[4:]
        table.add_row(*names, *(f"{value:.0f}" for value in times))
    console.print(str(host), style="dim", highlight=False)
    console.print(table)
    hops = {loop: anyio.run(bare_hop_us, 200, PERIOD_S, backend=loop) for loop in LOOPS}
    for loop, us in hops.items():
        console.print(f"a bare hop from {loop} to a thread and back, every 10 ms: {us:.0f} us")
    memories = {minutes: memory(minutes) for minutes in MINUTES}
    for minutes, (mib, seconds) in memories.items():
        console.print(f"a file of {minutes} min: {mib:.0f} MiB at most, {seconds:.1f} s")
    if options.json is not None:
        figures = {
            "host": asdict(host),
            "rows": [asdict(row) for row in rows],
            "hop_us": hops,
            "memory_mib": memories,
        }
        options.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
