"""A long life: streams with random blocks and stalls, cancelled, broken off, failing; nothing accepted is lost."""

import gc
import os
import random
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from random import Random
from typing import Any

import anyio
import numpy as np
import pytest

from pulse.facts import Array
from streaming.executor import Executor, ExecutorError
from tests.agreement import assert_outputs_close
from tests.noise import normal_noise
from tests.streaming.executor.streams import (
    assert_balanced,
    assert_nothing_left,
    join_pieces,
    named_program,
)
from tests.streaming.models import both_backends

pytestmark = pytest.mark.anyio
PULSE = 6
STREAMS = 4


class BrokenStreamError(Exception):
    """The error of a source that fails."""


async def source(x: Array, rng: Random, fails: bool) -> AsyncIterator[Any]:
    """``x`` in random blocks with random stalls."""
    at = 0
    while at < x.shape[1]:
        size = rng.choice([0, 1, 5, PULSE, 7, 40, 300])
        yield x[:, at : at + size]
        at += size
        if rng.random() < 0.2:
            await anyio.sleep(rng.choice([0, 0.0001, 0.002]))
        if fails and at > x.shape[1] // 2:
            raise BrokenStreamError


class RandomStreams:
    """Random streams one after the other, and how many ended in each way."""

    def __init__(self, executor: Executor, seed: int) -> None:
        self.executor, self.rng = executor, random.Random(seed)
        self.ends = dict.fromkeys(("whole", "failed", "broken off", "cancelled", "late"), 0)
        self.frames_out = 0

    async def stream_until(self, moment_s: float) -> None:
        """Run streams until a moment, at least one."""
        await self.stream()
        while time.monotonic() < moment_s:
            await self.stream()

    async def stream(self) -> None:
        rng, executor = self.rng, self.executor
        frames = rng.randrange(1500)
        x = np.arange(1, frames + 1, dtype=np.float32) + normal_noise(
            1, frames, seed=rng.randrange(1000), scale=0.1
        )
        fails, pieces = rng.random() < 0.2, []
        stop_at = rng.choice([None, None, 3])
        end = "whole"
        with anyio.move_on_after(rng.choice([0.001, 0.01, 10])) as limit:
            try:
                async for outputs in executor.stream(source(x, rng, fails)):
                    pieces.append(outputs)
                    assert_balanced(executor.statistics())
                    if len(pieces) == stop_at:
                        end = "broken off"
                        break
                    if rng.random() < 0.1:
                        await anyio.sleep(rng.choice([0, 0.001]))
            except BrokenStreamError:
                end = "failed"
            except ExecutorError:
                end = "late"
        if limit.cancelled_caught:
            end = "cancelled"
        self.ends[end] += 1
        self.compare(join_pieces(pieces, executor.program), x, end)

    def compare(self, outputs: dict[str, Array], x: Array, end: str) -> None:
        """Compare the outputs so far with the offline outputs of the frames that were not dropped; ``x`` increases."""
        if not outputs:
            return
        policy, input_kept = self.executor.policy, x
        self.frames_out += outputs["loud"].shape[1]
        if policy.drops:
            input_kept = outputs["loud"] / 2
            assert np.isin(input_kept, x).all()
            assert (np.diff(input_kept) > 0).all(), "frames are repeated or in another order"
        expected = self.executor.program.model.typed.run({"x": input_kept})
        if end != "whole":
            expected = {name: array[:, : outputs[name].shape[1]] for name, array in expected.items()}
        if policy.silent:
            on_time = np.any(outputs["loud"] != 0, axis=0)
            np.testing.assert_allclose(outputs["loud"][:, on_time], expected["loud"][:, on_time], rtol=1e-5)
            assert outputs["loud"].shape == expected["loud"].shape
        else:
            assert_outputs_close(outputs, expected)


async def run_executors(policy: str, backend: str, seconds: float, seed: int) -> dict[str, int]:
    """Run executors with several streams each for some seconds; returns how many streams ended in each way."""
    ends = {}
    until = time.monotonic() + seconds
    while not ends or time.monotonic() < until:
        program = named_program("filtered", PULSE, backend)
        depth = random.Random(seed).choice([1, 3, 8])
        try:
            async with (
                Executor(program, policy, depth, deadline_s=0.002) as executor,
                anyio.create_task_group() as tasks,
            ):
                lives = [RandomStreams(executor, seed + number) for number in range(STREAMS)]
                for life in lives:
                    tasks.start_soon(life.stream_until, min(until, time.monotonic() + max(0.2, seconds / 20)))
        except* BrokenStreamError:
            pass  # of sources whose streams were broken off before it came out
        statistics = executor.statistics()
        assert statistics.streams == statistics.frames_in_flight == 0
        assert_balanced(statistics)
        assert statistics.frames_out == sum(life.frames_out for life in lives)
        for life in lives:
            ends = {name: ends.get(name, 0) + count for name, count in life.ends.items()}
        seed += STREAMS
    return ends


def resident_mib() -> float:
    """The memory of this process without garbage."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


@pytest.mark.parametrize("policy", ["wait", "drop_oldest", "silence_then_catch_up", "abort"])
async def test_random_streams_leave_no_thread_and_no_descriptor(policy: str) -> None:
    with assert_nothing_left():
        await run_executors(policy, "numba", 0.2, seed=1)


@pytest.fixture
def usual_collector() -> Iterator[None]:
    """Tests collect garbage seldom, so that it gathers, and the allocator keeps its memory."""
    seldom = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*seldom)


@pytest.mark.slow
@pytest.mark.usefixtures("usual_collector")
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc/self/statm here")
@both_backends
@pytest.mark.parametrize("policy", ["wait", "drop_oldest", "silence_then_catch_up", "abort"])
async def test_many_streams_take_bounded_memory(policy: str, backend: str) -> None:
    with assert_nothing_left():
        await run_executors(policy, backend, 5, seed=100)
        before = resident_mib()
        ends = await run_executors(policy, backend, 40, seed=200)
    grown = resident_mib() - before
    assert grown < 20, f"{grown:.0f} MiB more than after the first 5 s"
    assert min(count for end, count in ends.items() if end != "late") > 0, ends
