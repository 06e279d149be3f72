"""The cost of instructions: a rule for every kernel, and figures that can be counted by hand."""

import ctypes
from itertools import count

import numpy as np
import pytest

from pulse.jit.registry import KERNELS
from pulse.jit.rows.instruction import number_fields
from pulse.program.kernels import families as families
from pulse.program.kernels.copy import CopyRow
from pulse.program.machine import machine
from pulse.program.native.native_program import NativeProgram
from pulse.program.native.profile import InstructionProfile, Profile, measure
from pulse.program.table.cost import Cost, RowNote, cost_of
from pulse.program.table.emitted import EmittedInstruction
from pulse.program.table.memory import Buffer, Region, TensorView
from pulse.pulsify.driver import pulsify
from tests.pulse.model_builder import ModelBuilder
from tests.pulse.program.own_kernels import is_of_pulse


def rows_of(builder: ModelBuilder, *outputs: object, pulse: int = 4) -> list[EmittedInstruction]:
    return list(NativeProgram(pulsify(builder.model(*outputs), pulse=pulse)).instructions)  # type: ignore[arg-type]


def cost_of_the_only(rows: list[EmittedInstruction], kernel: str) -> Cost:
    (row,) = (row for row in rows if row.kernel == kernel)
    return cost_of(row)


def test_every_kernel_runs_a_declared_instruction() -> None:
    """The instruction names the kernel, or the kernel is its form for lanes."""
    lanes = {kernel.lanes.name for kernel in KERNELS.values() if kernel.lanes is not None}
    for name, kernel in KERNELS.items():
        if is_of_pulse(kernel):
            assert kernel.instruction is not None, name
            assert name in lanes or name == kernel.instruction.in_form(kernel.instruction.kernel, kernel.form)


def test_the_cost_of_a_convolution_is_that_counted_by_hand() -> None:
    """8 to 6 channels, 3 taps and 4 frames: the weights are padded to a panel of 16 columns."""
    builder = ModelBuilder(x="1,8,T")
    rows = rows_of(
        builder, builder.conv(builder.pad(builder["x"], (2, 0), name="pad"), 3, out=6, name="conv")
    )
    cost = cost_of_the_only(rows, "product")
    assert cost.multiply_adds == 4 * 3 * 8 * 6
    tables = 8 * (4 + 4 + 1)  # rows of x and of y; the three taps are one run of 24 in memory
    assert cost.weights == 4 * (3 * 8 * 16 + 6) + tables
    assert cost.state == 4 * 8 * (4 + 2)
    assert cost.arena == 4 * 4 * 6
    assert cost.bytes == cost.weights + cost.state + cost.arena
    moved = cost_of_the_only(rows, "move")
    assert (moved.weights, moved.state, moved.arena) == (0, 2 * 2 * 8 * 4, 0)
    assert cost_of_the_only(rows, "tick") == Cost(state=2 * 16)


def test_repeated_elements_count_once() -> None:
    """A tensor that is stretched by a stride of zero is as large as what is stored of it."""
    whole = TensorView(Buffer(Region.ARENA, 4 * 32), 0, (4, 8), (8, 1), np.dtype(np.float32))
    stretched = TensorView(Buffer(Region.WEIGHTS, 32), 0, (4, 8), (0, 1), np.dtype(np.float32))
    loops = (
        number_fields("n", (1, 1, 1, 1, 4, 8))
        | number_fields("a", (0, 0, 0, 0, 0, 1))
        | number_fields("b", (0, 0, 0, 0, 8, 1))
    )
    row = EmittedInstruction(CopyRow(src=stretched, dst=whole, size=4, **loops), "node", "Op")
    assert cost_of(row) == Cost(weights=32, arena=128)


def test_times_shares_and_costs_of_rows_add_up() -> None:
    cost = Cost(weights=100, arena=28, multiply_adds=64)
    rows = (
        InstructionProfile("a", "Conv", "product", 1e-6, 0.5, cost),
        InstructionProfile("b", "Conv", "product", 0.5e-6, 0.25, cost),
        InstructionProfile("b", "Own", "own", 0.5e-6, 0.25, Cost()),
    )
    profile = Profile(rows, 10, 2e-6, 1e-8)
    conv, custom = profile.group_by("op")
    assert (conv.instructions, conv.share, conv.cost) == (2, 0.75, Cost(200, 0, 56, 128))
    assert conv.gigabytes_per_s == pytest.approx(256 / 1.5e-6 / 1e9)
    assert conv.giga_multiply_adds_per_s == pytest.approx(128 / 1.5e-6 / 1e9)
    assert (custom.gigabytes_per_s, custom.giga_multiply_adds_per_s) == (None, None)
    assert [row.cost for row in profile.group_by("node")] == [cost, cost]
    assert list(profile) == list(rows)
    assert len(profile) == 3


def test_the_time_for_reading_the_clock_is_in_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock of 1 GHz whose reading takes 40 ns: rows take 60, 160, 260 ... ns, and more in one round of ten."""
    builder = ModelBuilder(x="1,64,T")
    rows = rows_of(builder, builder.conv(builder["x"], 5, out=64, name="conv"), pulse=16)
    rounds = count()

    def run_profiled(table: int, row_count: int, bases: int, ticks: int) -> None:
        late = 10**6 if next(rounds) % 10 == 0 else 0
        total = (ctypes.c_int64 * row_count).from_address(ticks)
        for number in range(row_count):
            total[number] += 100 * (number + 1) + late

    monkeypatch.setattr(machine, "run", lambda *_: None)
    monkeypatch.setattr(machine, "run_profiled", run_profiled)
    monkeypatch.setattr(machine, "run_timed", lambda *_: 5040)
    monkeypatch.setattr(machine, "ticks_per_second", lambda: 1e9)
    monkeypatch.setattr(machine, "seconds_per_reading", lambda: 40e-9)
    notes = [RowNote(row.node, row.op, row.kernel, cost_of(row)) for row in rows]
    profile = measure(notes, 0, 0, 100)
    times = [60e-9 + 100e-9 * number for number in range(len(rows))]
    assert len(rows) > 1
    assert [row.seconds_per_step for row in profile] == pytest.approx(times)
    assert [row.share for row in profile] == pytest.approx([time / sum(times) for time in times])
    assert (profile.steps, profile.step_s) == (100, pytest.approx(5e-6))
    assert profile.overhead_s == pytest.approx(40e-9 * len(rows))
    (conv,) = (row for row in profile if row.kernel == "product")
    assert conv.giga_multiply_adds_per_s == pytest.approx(16 * 5 * 64 * 64 / conv.seconds_per_step / 1e9)
