"""What the executor costs in addition to the model, for each pulse."""

import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import anyio
import numpy as np

import pulse
from bench.live.load import compute_and_collect
from bench.models.amplifier import RATE_HZ, amplifier
from pulse.facts import Array
from pulse.program.program import Program
from streaming.builtin import SAMPLE_RATE_HZ, model_path
from streaming.executor import Executor

MODELS: Mapping[str, tuple[Callable[[], Program], int]] = {
    "denoiser": (lambda: pulse.stream(model_path(), pulse=160), SAMPLE_RATE_HZ),
    "amplifier": (lambda: pulse.stream(amplifier(), pulse=480), RATE_HZ),
}
"""The rows of the table, both in pulses of 10 ms: one of about 20 us, one of about 1 ms."""
LOADS: Mapping[str, Callable[[], AbstractContextManager[None]]] = {
    "idle": nullcontext,
    "computes and collects": compute_and_collect,
}
"""The other work of the Python process."""
LOOPS = ("asyncio", "trio")
"""The event loops that are compared."""
PERIOD_S = 0.01
"""The seconds between two pulses of a paced stream."""
GROUP_PULSES = 100
"""Pulses over which one overhead of a saturated run is measured."""


@dataclass(frozen=True)
class ExecutorRow:
    """One run; times in microseconds per pulse.

    model        its name
    source       ``one array``, or blocks on request
    loop         the event loop
    load         saturated, or paced
    model_us     p50 of the model alone, inside the run
    overhead_us  p50 of everything else. Saturated: the time in addition to the model's, over ``GROUP_PULSES`` pulses;
                 Paced: from the arrival of a pulse until its outputs are taken, less the model's time
    waiting_us   p50 from the arrival of a pulse until it starts
    total_p50_us, total_p99_us  from the arrival of a pulse until its outputs are taken
    loop_us      processor time of the event loop's thread
    """

    model: str
    source: str
    loop: str
    load: str
    model_us: float
    overhead_us: float
    waiting_us: float
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


def overhead(model: str, source: str, loop: str, load: str, seconds: float) -> ExecutorRow:
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
                if frames >= GROUP_PULSES * output.frames:
                    now_ns = time.perf_counter_ns()
                    groups_us.append((now_ns - begun_ns) / 1e3 * output.frames / frames)
                    begun_ns, frames = now_ns, 0
        return executor, (time.thread_time() - spent_s) * 1e6 / count

    with LOADS[load]():
        anyio.run(run, 5 * GROUP_PULSES if source == "saturated" else 20, backend=loop)
        groups_us.clear()
        count = seconds * 100 if source == "paced" else seconds * 1e6 / expected_us(program, x)
        executor, loop_us = anyio.run(run, max(int(count), 5 * GROUP_PULSES), backend=loop)
    statistics = executor.statistics()
    waiting, compute, total = (
        statistics.waiting.summary(),
        statistics.compute.summary(),
        statistics.total.summary(),
    )
    total_us = float(np.median(groups_us)) if source == "saturated" else total.p50_us
    overhead_us = total_us - (compute.mean_us if source == "saturated" else compute.p50_us)
    times = (compute.p50_us, overhead_us, waiting.p50_us, total.p50_us, total.p99_us, loop_us)
    return ExecutorRow(model, source, loop, load, *times)


def expected_us(program: Program, x: Array) -> float:
    """Return the approximate time of a pulse."""
    state = program.spawn()
    state.step(x)
    begun_ns = time.perf_counter_ns()
    for _ in range(20):
        state.step(x)
    return (time.perf_counter_ns() - begun_ns) / 20e3 + 50
