"""Sums of products of bytes: as plain Python, by the instruction, and by shifts if the machine has none."""

import numpy as np
import pytest

from pulse.facts import Array
from pulse.jit.codegen import dots
from pulse.jit.language.dots import (
    columns_of,
    has_byte_dots,
    vdot_bytes,
    vstore_bytes,
)
from pulse.jit.language.raw import as_f32, as_u8
from pulse.jit.language.simd import Vector, vfrombits, vstore, vtoint, vzero
from pulse.jit.registry import Kernel, device, named_kernel
from pulse.jit.rows.instruction import Instruction, Operand, reads, writes
from pulse.jit.rows.pointer import Pointer, operand
from pulse.program.kernels.row_tuples import FOUR, ONE, THREE, TWO
from pulse.program.machine import machine
from pulse.program.table.table import TableBuilder, link

ROWS, BLOCK = 4, 16


class ByteRows(Instruction):
    """The columns of ten blocks of four rows, their sums with the words of ``x``, and bytes of these."""

    w: Operand = reads("i8")
    x: Operand = reads("i32", 1)
    y: Operand = writes("i32")


@device
def keep(y: Pointer, x: int, index: int, columns: Vector) -> None:
    """The lanes, and their sums with a word of bytes on either side."""
    ones = vtoint(vzero())
    vstore(as_f32(y), index, vfrombits(columns))
    vstore(as_f32(y), index + 160, vfrombits(vdot_bytes(ones, x, columns)))
    vstore(as_f32(y), index + 320, vfrombits(vdot_bytes(ones, columns, x)))


def read_bytes(row: ByteRows) -> None:
    w, y, x = row.w, row.y, row.x[0]
    (a,) = columns_of(w, 1, ONE)
    keep(y, x, 0, a)
    a, b = columns_of(w, 65, TWO)
    keep(y, x, 16, a)
    keep(y, x, 32, b)
    a, b, c = columns_of(w, 193, THREE)
    keep(y, x, 48, a)
    keep(y, x, 64, b)
    keep(y, x, 80, c)
    a, b, c, d = columns_of(w, 385, FOUR)
    keep(y, x, 96, a)
    keep(y, x, 112, b)
    keep(y, x, 128, c)
    keep(y, x, 144, d)
    vstore_bytes(as_u8(y), 1920, d)


instruction = named_kernel("infra_bytes")(read_bytes)
shifts = named_kernel("infra_bytes_by_shifts")(read_bytes)


def outputs(kernel: Kernel, w: np.ndarray, x: np.ndarray) -> list[np.ndarray]:
    """Python's output and the compiled one."""
    builder = TableBuilder()
    builder.add(kernel, operand(0, 0), operand(1, 0), operand(2, 0))
    table = builder.finish()
    python, compiled = np.zeros(484, np.int32), np.zeros(484, np.int32)
    machine.run_python(table, [array.view(np.uint8) for array in (w, x, python)])
    linked = link(table)
    bases = np.array([w.ctypes.data, x.ctypes.data, compiled.ctypes.data], np.int64)
    machine.run(linked.ctypes.data, 1, bases.ctypes.data)
    return [python, compiled]


@pytest.mark.parametrize("fast", [True, False])
def test_sums_of_bytes_are_exact(
    rng: np.random.Generator, fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums of the smallest and the largest bytes do not saturate."""
    w = rng.integers(-128, 128, 641).astype(np.int8)
    w[1:9], w[49:57] = 127, -128
    x = np.array([0x80FF7F00 - (1 << 32)], np.int32)
    lanes: list[Array] = []
    start = 1
    for blocks in (1, 2, 3, 4):
        rows = w[start : start + ROWS * blocks * BLOCK].reshape(ROWS, blocks, BLOCK)
        lanes.append(rows.transpose(1, 2, 0).reshape(-1, ROWS))
        start += rows.size
    columns = np.concatenate(lanes)
    signed, natural = x.view(np.int8).astype(np.int32), x.view(np.uint8).astype(np.int32)
    if not fast:
        monkeypatch.setattr(dots, "is_fast", lambda: False)
    for y in outputs(instruction if fast else shifts, w, x):
        np.testing.assert_array_equal(y[:160], np.ascontiguousarray(columns).view(np.int32).ravel())
        np.testing.assert_array_equal(y[160:320], columns.astype(np.int32) @ natural)
        np.testing.assert_array_equal(y[320:480], columns.view(np.uint8).astype(np.int32) @ signed)
        np.testing.assert_array_equal(y[480:].view(np.int8), columns[-16:, 0])


def test_python_takes_whole_numbers_only() -> None:
    assert has_byte_dots()
    with pytest.raises(TypeError, match="expected int32 lanes, got float32"):
        vdot_bytes(vtoint(vzero()), 1, vzero())
