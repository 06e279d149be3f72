"""Rows through both machines: a sample kernel as Python and compiled, denormals, profiling."""

import threading

import numpy as np
import pytest

from pulse.jit.language.simd import LANES, vfma, vload, vload_part, vsplat, vstore, vstore_part
from pulse.jit.processor import processor, target_machine
from pulse.jit.registry import (
    FASTMATH,
    KERNELS,
    compile_kernels,
    device,
    kernel,
    kernel_of,
    named_kernel,
)
from pulse.jit.rows.instruction import Instruction, Operand, reads, updates, writes
from pulse.jit.rows.pointer import ARENA, STATE, WEIGHTS, operand, real_bits
from pulse.program.machine import machine
from pulse.program.table.table import TableBuilder, kernels_of, link
from tests.noise import next_noise
from tests.pulse.jit.assembly import llvm_code


@device
def double(x):
    return x + x


class AxpyRow(Instruction):
    """``y[:n] += 2 * a * x[:n]``."""

    y: Operand = updates("f32")
    x: Operand = reads("f32")
    n: int
    a: float


class Types(Instruction):
    """A row with operands of all pointer types."""

    floats: Operand = updates("f32")
    doubles: Operand = updates("f64")
    wide: Operand = updates("i64")
    narrow: Operand = updates("i32")
    bytes_: Operand = updates("u8")


class ScaleRow(Instruction):
    """``y[0] = x[0] * a``."""

    y: Operand = writes("f32", 1)
    x: Operand = reads("f32", 1)
    a: float


class One(Instruction):
    """A row of a single tensor."""

    y: Operand = updates("f32", 1)


@kernel
def infra_axpy(row: AxpyRow):
    """Compute 16 elements at a time."""
    y, x, n, a = row.y, row.x, row.n, vsplat(double(row.a))
    i = 0
    while i + LANES <= n:
        vstore(y, i, vfma(a, vload(x, i), vload(y, i)))
        i += LANES
    if i < n:
        rest = n - i
        vstore_part(y, i, rest, vfma(a, vload_part(x, i, rest), vload_part(y, i, rest)))


@kernel
def infra_types(row: Types):
    """Element offsets and an index below 0."""
    floats, doubles, wide, narrow, bytes_ = row.floats, row.doubles, row.wide, row.narrow, row.bytes_
    after = floats + 2
    after += 1
    floats[0] = after[-1] + 1
    doubles[1] = doubles[0] * 0.5
    wide[1] = wide[0] - 2**40
    narrow[1] = narrow[0] * narrow[0]
    bytes_[1] = bytes_[0] + 1


@kernel
def infra_scale(row: ScaleRow):
    """Scale a single element."""
    y, x, a = row.y, row.x, row.a
    y[0] = x[0] * np.float32(a)


def family(index, helper):
    @named_kernel(f"infra_family_{index}")
    def member(row: One):
        y = row.y
        y[0] = helper(y[0]) + index

    return member


FAMILY = [family(index, helper) for index, helper in enumerate([double, device(lambda x: x * x)])]


def regions(*sizes):
    rng = np.random.default_rng(3)
    return [next_noise(rng, size).view(np.uint8) for size in sizes]


def run_compiled(table, memory, profiled=False):
    linked, rows = link(table), len(kernels_of(table))
    bases = np.array([region.ctypes.data for region in memory], np.int64)
    if profiled:
        ticks = np.zeros(rows, np.int64)
        machine.run_profiled(linked.ctypes.data, rows, bases.ctypes.data, ticks.ctypes.data)
        return ticks
    machine.run(linked.ctypes.data, rows, bases.ctypes.data)
    return None


def run_on_both_machines(table, memory):
    """The regions after the table ran as Python and compiled."""
    python, compiled = [r.copy() for r in memory], [r.copy() for r in memory]
    machine.run_python(table, python)
    run_compiled(table, compiled)
    return python, compiled


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 100])
def test_rows_run_in_order_on_their_operands(n: int) -> None:
    builder = TableBuilder()
    rows = [
        builder.add(infra_axpy, operand(ARENA, 4), operand(WEIGHTS, 0), n, real_bits(0.25)),
        builder.add(infra_axpy, operand(STATE, 8), operand(ARENA, 4), n, real_bits(-1.5)),
        builder.add(infra_axpy, operand(ARENA, 4), operand(STATE, 8), n, real_bits(2.0)),
    ]
    assert rows == [0, 1, 2]
    table = builder.finish()
    memory = regions(n, n + 2, n + 1)
    x, s, y = (r.view(np.float32).astype(np.float64) for r in memory)
    y[1:] += 0.5 * x
    s[2:] += -3 * y[1:]
    y[1:] += 4 * s[2:]
    for result in run_on_both_machines(table, memory):
        np.testing.assert_allclose(result[ARENA].view(np.float32), y, rtol=2e-5, atol=1e-5)
        np.testing.assert_allclose(result[STATE].view(np.float32), s, rtol=2e-5, atol=1e-5)


def test_pointers_of_every_type_read_and_write_their_elements() -> None:
    memory = [np.zeros(64, np.uint8)]
    memory[0][:16] = np.array([1, 2, 3, 4], np.float32).view(np.uint8)
    memory[0][16:24] = np.array([7.0]).view(np.uint8)
    memory[0][32:40] = np.array([2**40 + 5]).view(np.uint8)
    memory[0][48:52] = np.array([-300], np.int32).view(np.uint8)
    memory[0][56] = 254
    builder = TableBuilder()
    builder.add(infra_types, *(operand(0, offset) for offset in (0, 16, 32, 48, 56)))
    for (result,) in run_on_both_machines(builder.finish(), memory):
        assert result[:4].view(np.float32)[0] == 4.0
        assert result[24:32].view(np.float64)[0] == 3.5
        assert result[40:48].view(np.int64)[0] == 5
        assert result[52:56].view(np.int32)[0] == 90000
        assert result[57] == 255


def test_a_family_closes_over_different_helpers() -> None:
    builder = TableBuilder()
    for member in FAMILY:
        builder.add(member, operand(0, 0))
    for (result,) in run_on_both_machines(builder.finish(), [np.array([3.0], np.float32).view(np.uint8)]):
        assert result.view(np.float32)[0] == 37.0  # (3 + 3 + 0)**2 + 1


@pytest.mark.parametrize(
    ("y_offset", "x_offset", "n"), [(4, 0, 32), (0, 4, 17), (128, 0, 1), (0, 1 << 20, 1)]
)
def test_python_refuses_to_leave_a_region(y_offset: int, x_offset: int, n: int) -> None:
    row = [0, 6, operand(1, y_offset), operand(0, x_offset), n, real_bits(1.0)]
    with pytest.raises(IndexError):
        infra_axpy.python(row, regions(17 if x_offset else 32, 32))


def test_python_refuses_misaligned_and_missing_operands() -> None:
    with pytest.raises(ValueError, match="not aligned to 4"):
        infra_axpy.python([0, 6, operand(0, 2), operand(0, 0), 1, 0], regions(4))
    with pytest.raises(IndexError):
        infra_axpy.python([0, 3, operand(0, 0)], regions(4))
    with pytest.raises(ValueError, match="region 8"):
        operand(8, 0)


def test_the_machine_flushes_denormals_and_restores_the_mode() -> None:
    tiny = np.float32(1e-38)
    memory = [np.array([0, tiny], np.float32).view(np.uint8)]
    builder = TableBuilder()
    builder.add(infra_scale, operand(0, 0), operand(0, 4), real_bits(0.1))
    table = builder.finish()
    machine.run_python(table, memory)
    denormal = memory[0].view(np.float32)[0]
    assert 0 < denormal < np.finfo(np.float32).tiny
    run_compiled(table, memory)
    assert memory[0].view(np.float32)[0] == 0.0
    memory[0].view(np.float32)[:] = (1, denormal)
    table[-1] = real_bits(1e10)
    run_compiled(table, memory)
    assert memory[0].view(np.float32)[0] == 0.0
    assert np.array([denormal]) * np.float32(1.0) > 0


def test_a_profiled_run_counts_ticks_and_computes_the_same() -> None:
    n = 20000
    builder = TableBuilder()
    builder.add(infra_axpy, operand(0, 0), operand(0, 4 * n), 1, real_bits(0.0))
    builder.add(infra_axpy, operand(0, 0), operand(0, 4 * n), n, real_bits(1.0))
    memory = regions(2 * n)
    plain = [memory[0].copy()]
    run_compiled(builder.finish(), plain)
    ticks = run_compiled(builder.finish(), memory, profiled=True)
    np.testing.assert_array_equal(memory[0], plain[0])
    assert ticks[1] > 0
    assert machine.ticks_per_second() > 1e5


def test_several_threads_run_one_table_at_once() -> None:
    builder = TableBuilder()
    builder.add(infra_axpy, operand(1, 0), operand(0, 0), 1000, real_bits(0.5))
    table = builder.finish()
    memories = [regions(1000, 1000) for _ in range(3)]
    expected = memories[0][1].view(np.float32) + memories[0][0].view(np.float32)
    threads = [threading.Thread(target=run_compiled, args=(table, memory)) for memory in memories]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for memory in memories:
        np.testing.assert_allclose(memory[1].view(np.float32), expected, rtol=1e-6, atol=1e-6)


def test_kernels_that_are_named_twice_are_compiled_once() -> None:
    assert compile_kernels(["infra_axpy", "infra_scale", "infra_axpy"]) == [infra_axpy, infra_scale]


def test_kernels_are_registered_by_name_and_number() -> None:
    assert KERNELS["infra_axpy"] is infra_axpy
    assert kernel_of(infra_axpy.number) is infra_axpy

    def other(row: AxpyRow):
        pass

    with pytest.raises(ValueError, match="infra_axpy: the name is already used"):
        named_kernel("infra_axpy")(other)
    with pytest.raises(TypeError, match="its parameter must have an Instruction as its type"):
        kernel(lambda row: None)


def test_a_linked_table_has_addresses_in_place_of_numbers() -> None:
    builder = TableBuilder()
    builder.add(infra_scale, 1, 2, 3)
    builder.add(infra_types, *range(5))
    table = builder.finish()
    assert kernels_of(table) == [infra_scale, infra_types]
    linked = link(table)
    assert linked[0] == infra_scale.address
    assert linked[5] == infra_types.address
    assert table[0] == infra_scale.number


def test_fast_mathematics_keeps_nan_and_infinities() -> None:
    assert "nnan" not in FASTMATH
    assert "ninf" not in FASTMATH


def test_lanes_are_one_register_on_avx512() -> None:
    if "+avx512f" not in processor().features.split(","):
        pytest.skip("needs AVX-512")
    assembly = target_machine().emit_assembly(llvm_code(infra_axpy))
    assert "zmm" in assembly
    assert any("vfmadd" in line and "zmm" in line for line in assembly.splitlines())
