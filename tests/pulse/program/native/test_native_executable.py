"""Programs of the numba backend: memories, listing, profile, threads."""

import ctypes
import sys
import threading
import time

import numpy as np
import pytest

from pulse.facts import Array
from pulse.ops.matmul import MatMul
from pulse.ops.shape import Transpose
from pulse.program.native.native_program import NativeProgram
from pulse.program.native.native_state import NativeState
from pulse.program.table.copies import list_copies
from pulse.pulsify.driver import pulsify
from pulse.support.mapping import ALIGNMENT
from tests.noise import normal_noise
from tests.pulse.model_builder import ModelBuilder

F = np.float32


def compile_native(builder: ModelBuilder, *outputs: object, pulse: int = 4) -> NativeProgram:
    return NativeProgram(pulsify(builder.model(*outputs), pulse=pulse))  # type: ignore[arg-type]


def two_convs(same: bool) -> NativeProgram:
    """Two convolutions of equal or of different weights."""
    builder = ModelBuilder(x="1,8,T")
    x = builder["x"]
    for name in ("a", "b"):
        if same:
            builder.rng = np.random.default_rng(1)
        x = builder.conv(builder.pad(x, (2, 0), name=f"{name}.pad"), 3, name=name)
    return compile_native(builder, x)


def test_equal_weights_are_kept_once() -> None:
    """Weights of a model are kept once, and no stream has its own copy."""
    same, different = two_convs(True), two_convs(False)
    kernel = 8 * 8 * 3 * 4
    assert different.weights.size - same.weights.size >= kernel
    first, second = same.spawn(), same.spawn()
    assert first.bases[0] == second.bases[0] == same.weights.ctypes.data
    assert len({int(first.bases[1]), int(second.bases[1])}) == 2
    assert len({int(first.bases[2]), int(second.bases[2])}) == 2


def test_weights_are_read_only() -> None:
    """A stream cannot change what others read."""
    program = two_convs(True)
    with pytest.raises(ValueError, match="read-only"):
        program.weights[0] = 1
    before = program.weights.tobytes()
    state = program.spawn()
    for seed in range(3):
        state.step(normal_noise(1, 8, 4, seed=seed))
    state.flush(normal_noise(1, 8, 2))
    assert program.weights.tobytes() == before


def test_the_state_is_one_buffer_that_snapshots_copy() -> None:
    """The clock, the ends and every delay: history, the newest pulse, registers, nothing else."""
    program = two_convs(False)
    state = program.spawn()
    assert program.state_bytes == program.initial.size == state.memory.size
    histories = sum(-(-frames * 8 * 4 // ALIGNMENT) * ALIGNMENT for frames in (2 + 4, 2 + 4))
    assert histories <= program.state_bytes <= histories + 4 * ALIGNMENT
    state.step(normal_noise(1, 8, 4))
    saved = state.snapshot()
    assert len(saved) - program.state_bytes < 64
    assert state.memory.tobytes() in saved
    assert all(int(base) % ALIGNMENT == 0 for base in state.bases)


def test_the_register_and_the_clock_count_pulses_alike() -> None:
    """The register of the machine says the same as the clock of Python."""
    program = two_convs(False)
    state = program.spawn()
    (place,) = next(row for row in program.instructions if row.kernel == "tick").operands
    register = state.memory[place.buffer.offset :][:8].view(np.int64)
    for count in range(1, 4):
        state.step(normal_noise(1, 8, 4))
        assert register[0] == state.clock.pulse == count
    state.reset()
    assert register[0] == state.clock.pulse == 0


def test_the_listing_has_a_line_for_each_instruction() -> None:
    """The first line has sizes; the others have number, kernel, node and op of a row."""
    program = two_convs(False)
    head, *lines = program.listing()
    moved = list_copies(program.instructions)
    assert [str(moves) for moves in moved] == lines[: len(moved)]
    assert sum(moves.count for moves in moved) == sum(row.kernel == "copy" for row in program.instructions)
    lines = lines[len(moved) :]
    assert head.startswith(
        f"{len(program.instructions)} instructions, {program.weights.size} bytes of weights"
    )
    assert f"{program.state_bytes} of state, {program.arena_bytes} of arena" in head
    assert len(lines) == len(program.instructions)
    for number, (line, row) in enumerate(zip(lines, program.instructions)):
        assert line.split()[:2] == [str(number), row.kernel]
        assert row.node in line
        assert f"({row.op})" in line
    assert lines[-1].split()[1] == "tick"
    assert any("(Conv)" in line and " a " in line for line in lines)


def test_a_profile_lists_all_instructions_and_keeps_the_stream() -> None:
    """Shares sum to one; the stream continues as if nothing had happened."""
    program = two_convs(False)
    state, other = program.spawn(), program.spawn()
    for stepped in (state, other):
        stepped.step(normal_noise(1, 8, 4))
    rows = state.profile(steps=20)
    assert [(row.node, row.op, row.kernel) for row in rows] == [
        (row.node, row.op, row.kernel) for row in program.instructions
    ]
    assert sum(row.share for row in rows) == pytest.approx(1.0)
    assert any(row.seconds_per_step > 0 for row in rows)
    assert (
        state.step(normal_noise(1, 8, 4, seed=1))["b"].tobytes()
        == other.step(normal_noise(1, 8, 4, seed=1))["b"].tobytes()
    )


def test_a_step_of_the_machine_allocates_no_python_object() -> None:
    """Not in 10,000 runs; two blocks are of the interpreter itself."""
    state = two_convs(False).spawn()
    for _ in range(100):
        state.run_machine()
    before = sys.getallocatedblocks()
    for _ in range(10_000):
        state.run_machine()
    assert sys.getallocatedblocks() - before <= 2


def test_steps_release_their_memory() -> None:
    """Outputs without references are freed: 2,000 steps, a reset and a snapshot each."""
    state, x = two_convs(False).spawn(), normal_noise(1, 8, 4)
    for _ in range(50):
        state.step(x)
    before = sys.getallocatedblocks()
    for _ in range(2000):
        state.step(x)
        state.snapshot()
    assert sys.getallocatedblocks() - before <= 20


def large() -> NativeState:
    """A product that takes the machine a while: 2000 x 400 x 400, for as many rows as it is repeated."""
    builder = ModelBuilder(x="1,400,T")
    x = builder.add("turn", Transpose((0, 2, 1)), builder["x"])
    for number in range(4):
        x = builder.add(
            f"product{number}", MatMul(), x, builder.constant(normal_noise(400, 400, seed=number) / F(20))
        )
    return compile_native(builder, x, pulse=2000).spawn()


def test_other_threads_run_while_the_machine_does() -> None:
    """A thread is not made to give up the GIL.

    Only a call that gives it away by itself lets another thread on, as soon as a processor has time for it.
    """
    state = large()
    state.run_machine()
    started, inside = threading.Event(), threading.Event()
    counted = [0]

    def count() -> None:
        started.set()
        while not inside.is_set():
            counted[0] += 1
            time.sleep(0)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(10.0)
    try:
        thread = threading.Thread(target=count)
        thread.start()
        started.wait()
        before, until = counted[0], time.monotonic() + 60
        while counted[0] == before and time.monotonic() < until:
            state.run_machine()
        after = counted[0]
    finally:
        inside.set()
        sys.setswitchinterval(interval)
        thread.join()
    assert after > before


def test_streams_run_in_threads_at_once() -> None:
    """States of one program, each in its own thread, give what they give alone."""
    program = two_convs(False)
    inputs = [[normal_noise(1, 8, 4, seed=10 * n + k) for k in range(200)] for n in range(3)]

    def play(parts: list[Array]) -> bytes:
        state = program.spawn()
        return b"".join(state.step(part)["b"].tobytes() for part in parts)

    expected = [play(parts) for parts in inputs]
    results: list[bytes] = [b""] * 3

    def work(number: int) -> None:
        results[number] = play(inputs[number])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == expected


def test_programs_flush_denormals_and_restore_the_mode() -> None:
    """Inputs that are denormal, and results that would be; outside the machine they still exist."""
    builder = ModelBuilder(x="1,1,T")
    scale = builder.constant(np.full((1, 1, 1), 1e-10, F))
    state = compile_native(builder, builder.apply("mul", builder["x"], scale, name="y"), pulse=4).spawn()
    x = np.array([[[1e-30, 1e-40, 1.0, -1e-32]]], F)
    assert (x * F(1e-10))[0, 0, 0] > 0
    y = state.step(x)["y"]
    np.testing.assert_array_equal(y[0, 0], np.array([0, 0, 1e-10, 0], F))
    assert float(np.array([1e-40], F)[0] * F(0.5)) > 0


def test_a_chain_whose_results_are_denormal_gives_zeros() -> None:
    builder = ModelBuilder(x="1,1,T")
    x = builder["x"]
    for number in range(4):
        x = builder.apply(
            "mul", builder.apply("tanh", x, name=f"t{number}"), builder.constant(np.full((1, 1, 1), 1e-11, F))
        )
    state = compile_native(builder, x, pulse=16).spawn()
    (y,) = state.step(np.linspace(1, 10, 16, dtype=F).reshape(1, 1, 16)).values()
    np.testing.assert_array_equal(y, 0)


def test_addresses_of_the_call_are_those_of_the_memories() -> None:
    """The machine is called with three plain numbers, which stay as long as the state."""
    program = two_convs(False)
    state = program.spawn()
    table, rows, bases = state.call
    assert (table, rows) == (program.table.ctypes.data, len(program.instructions))
    addresses = (ctypes.c_int64 * 3).from_address(bases)
    assert list(addresses) == [
        program.weights.ctypes.data,
        state.memory.ctypes.data,
        state.arena.ctypes.data,
    ]
