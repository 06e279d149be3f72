"""A stream runs as long as it likes: a step allocates nothing lasting, and wakes no garbage collector."""

import gc
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pulse.facts import Array
from pulse.program.native.native_program import NativeProgram
from pulse.program.native.native_state import NativeState
from pulse.pulsify.driver import pulsify
from tests.noise import normal_noise
from tests.pulse.model_builder import ModelBuilder

STEPS = 10_000
PULSE = 4


def program() -> NativeProgram:
    """A window with its delay, and an elementwise chain."""
    builder = ModelBuilder(x="1,8,T")
    x = builder.conv(builder.pad(builder["x"], (2, 0), name="pad"), 3, name="conv")
    return NativeProgram(pulsify(builder.model(builder.apply("tanh", x, name="tanh")), pulse=PULSE))


def pulse() -> Array:
    return normal_noise(1, 8, PULSE)


def warm_state() -> NativeState:
    state = program().spawn()
    for _ in range(100):
        state.step(pulse())
    return state


@contextmanager
def collections() -> Iterator[list[int]]:
    """The generations that the garbage collector runs through, as it comes to it by itself."""
    generations: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            generations.append(info["generation"])

    gc.collect()
    thresholds = gc.get_threshold()
    gc.set_threshold(700, 10, 10)  # Python's own
    gc.callbacks.append(note)
    try:
        yield generations
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*thresholds)


def test_a_step_wakes_no_garbage_collector() -> None:
    """The objects of a step are freed with their last reference: the collector's counter does not grow over 10,000."""
    state, x = warm_state(), pulse()
    assert gc.isenabled()
    with collections() as generations:
        for _ in range(STEPS):
            state.step(x)
    assert generations == []


def test_the_collector_is_woken_by_cycles() -> None:
    """If a step made one cycle, ``test_a_step_wakes_no_garbage_collector`` would fail."""
    with collections() as generations:
        for _ in range(STEPS):
            cycle: list[object] = []
            cycle.append(cycle)
    assert len(generations) > 0


def trace_memory(steps: int, step: object) -> tuple[int, int]:
    """Return the bytes that Python holds more after ``steps`` calls than before, and at most during them."""
    assert callable(step)
    tracemalloc.start()
    try:
        step()
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        for _ in range(steps):
            step()
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return after - before, peak - before


def test_the_machine_allocates_nothing() -> None:
    """Neither while it runs nor after it; the few bytes are the loop of this test."""
    state = warm_state()
    lasting, peak = trace_memory(1000, lambda: state.run_machine())
    assert lasting <= 64
    assert peak <= 512


def test_a_step_takes_the_outputs_and_no_more() -> None:
    """At most what the caller gets: an array for each output, and the dict with them; nothing stays."""
    state, x = warm_state(), pulse()
    outputs = sum(array.nbytes for array in state.step(x).values())
    lasting, peak = trace_memory(1000, lambda: state.step(x))
    assert lasting <= 64
    assert peak <= outputs + 2048


def test_steps_leave_no_blocks_of_the_allocator() -> None:
    state, x = warm_state(), pulse()
    before = sys.getallocatedblocks()
    for _ in range(STEPS):
        state.step(x)
    assert sys.getallocatedblocks() - before <= 20


def resident_bytes() -> int:
    """Memory of this process that is in RAM; skips where the system does not tell."""
    status = Path("/proc/self/statm")
    if not status.exists():
        pytest.skip("no /proc/self/statm here")
    import resource

    return int(status.read_text().split()[1]) * resource.getpagesize()


def test_a_million_steps_take_no_memory() -> None:
    """The resident memory grows by less than 1 MiB; this takes about half a second."""
    state, x = warm_state(), pulse()
    for _ in range(STEPS):
        state.step(x)
    before = resident_bytes()
    for _ in range(1_000_000):
        state.step(x)
    assert resident_bytes() - before < 1 << 20
