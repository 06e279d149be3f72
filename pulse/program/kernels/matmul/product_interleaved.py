"""Window products for sixteen streams with interleaved memories: a vector holds one element of each stream.

Element i of x, y and the operands of steps is the 16 floats from ``16 * i`` on. All streams share weights, biases and
tables.
"""

from collections.abc import Iterator
from operator import add, getitem
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pulse.jit.language.simd import LANES, Vector, vfma, vload, vsplat, vstore, vzero
from pulse.jit.language.tuples import copies, each
from pulse.jit.registry import device, kernel
from pulse.jit.rows.instruction import Operand, reads
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, run
from pulse.program.kernels.elementwise_microops import vector_form
from pulse.program.kernels.matmul.epilogue import (
    ADD,
    BY_COLUMN_CODES,
    PRELU,
    Epilogue,
    EpilogueStep,
    GateEpilogue,
    apply_gate,
    apply_step,
    apply_to_run,
)
from pulse.program.kernels.matmul.product_blocks import panel_width
from pulse.program.kernels.matmul.windows import ProductFields
from pulse.program.kernels.row_tuples import FOUR, Pointers, Vectors, element, first_four

COLUMNS = 4
"""The columns of a tile."""
ProductTile: TypeAlias = tuple[Pointer, int, int, Pointer, Pointer, int, int, int, Pointer]
"""The taps, their number and their inputs; a tile's weights, bias, columns, whether y is added, and its PReLU."""
prelu = device(vector_form("prelu"))


def interleaved_weights(packed: NDArray[np.float32], rows: int, columns: int) -> NDArray[np.float32]:
    """Repack the weights of ``pack_product`` as [ceil(columns / 4), rows, 4], padded by zeros."""
    matrix, first = np.zeros((rows, columns), np.float32), 0
    while first < columns:
        width = panel_width(columns - first)
        panel = packed[first * rows : (first + width) * rows].reshape(rows, width)
        matrix[:, first : first + width] = panel[:, : columns - first]
        first += width
    return pack_tiles(matrix)


def pack_tiles(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """Pack weights [rows, columns] as [ceil(columns / 4), rows, 4], padded by zeros."""
    rows, columns = matrix.shape
    tiles = -(-columns // COLUMNS)
    padded = np.zeros((rows, tiles * COLUMNS), np.float32)
    padded[:, :columns] = matrix
    return np.ascontiguousarray(padded.reshape(rows, tiles, COLUMNS).transpose(1, 0, 2)).ravel()


def few_weights(packed: NDArray[np.float32], width: int, columns: int) -> NDArray[np.float32]:
    """Repack the weights of ``pack_few`` as ``interleaved_weights`` does; up to 8 columns."""
    matrix = packed.reshape(-1, width, LANES // width).transpose(0, 2, 1).reshape(-1, width)[:, :columns]
    return pack_tiles(matrix)


class InterleavedProductRow(ProductFields):
    """y[rows_y[m] + n] = bias[n] + sum_t sum_k x[rows_x[m] + taps[t] + k] * W[t*K + k, n] of sixteen streams.

    W is from ``interleaved_weights``; the bias is padded to whole tiles. ``accumulate`` adds the values in y; then the
    steps of ``epilogue`` follow.
    """

    W: Operand = reads("f32")
    bias: Operand = reads("f32")
    epilogue: Epilogue

    def multiply_adds(self) -> int:
        return LANES * super().multiply_adds()

    def reaches(self) -> Iterator[Reach]:
        yield from self.window_reaches(self.K, self.N, LANES)
        yield self.W, run(-(-self.N // COLUMNS) * COLUMNS * self.T * self.K)
        yield self.bias, run(-(-self.N // COLUMNS) * COLUMNS)
        yield from self.epilogue.reaches_on(self.y, self.rows_y, self.M, self.N, LANES)


@device
def load_column(y: Pointer, n: int, rest: int) -> Vector:
    """Load column n of a row of which ``rest`` exist; else 0."""
    return vload(y, n * LANES) if n < rest else vzero()


@device
def first_sums(bias: Pointer, y: Pointer, rest: int, accumulate: int) -> Vectors:
    """Return the initial sums of four columns of a row, of which ``rest`` exist."""
    sums = each(element, bias, FOUR)
    if accumulate:
        return each(add, sums, each(load_column, y, FOUR, rest))
    return sums


@device
def store_columns(y: Pointer, rest: int, has_prelu: int, slopes: Pointer, columns: Vectors) -> None:
    """Store four columns, of which ``rest`` exist; if ``has_prelu``, after the PReLU with their slopes."""
    if has_prelu:
        columns = each(prelu, columns, each(getitem, slopes, first_four(rest - 1)))
    a, b, c, d = columns
    vstore(y, 0, a)
    if rest >= COLUMNS:
        vstore(y, LANES, b)
        vstore(y, 2 * LANES, c)
        vstore(y, 3 * LANES, d)
        return
    if rest > 1:
        vstore(y, LANES, b)
    if rest > 2:
        vstore(y, 2 * LANES, c)


@device
def add_to_columns(sums: Vectors, x: Vector, weights: Vectors) -> Vectors:
    """Add the products of an input with the weights of four columns."""
    return each(vfma, x, weights, sums)


@device
def multiply_rows(x: Pointers, y: Pointers, tile: ProductTile) -> None:
    """Compute four columns of two or four rows."""
    taps, T, K, w, bias, rest, accumulate, has_prelu, slopes = tile
    sums = each(first_sums, bias, y, rest, accumulate)
    for t in range(T):
        p = each(add, x, taps[t] * LANES)
        for k in range(K):
            inputs, weights = (
                each(vload, p, k * LANES),
                each(vsplat, each(getitem, w, FOUR)),
            )  # all loads first
            sums = each(add_to_columns, sums, inputs, copies(weights, p))
            w = w + COLUMNS
    each(store_columns, y, rest, has_prelu, slopes, sums)


@device
def multiply_row_by_two_tiles(x: Pointer, y: Pointer, tile: ProductTile) -> None:
    """Compute one row of two tiles of columns."""
    taps, T, K, w, bias, rest, accumulate, has_prelu, slopes = tile
    first = first_sums(bias, y, rest, accumulate)
    second = first_sums(bias + COLUMNS, y + COLUMNS * LANES, rest - COLUMNS, accumulate)
    z = w + COLUMNS * T * K
    for t in range(T):
        p = x + taps[t] * LANES
        for k in range(K):
            v = vload(p, k * LANES)
            first = add_to_columns(first, v, each(vsplat, each(getitem, w, FOUR)))
            second = add_to_columns(second, v, each(vsplat, each(getitem, z, FOUR)))
            w, z = w + COLUMNS, z + COLUMNS
    store_columns(y, rest, has_prelu, slopes, first)
    store_columns(y + COLUMNS * LANES, rest - COLUMNS, has_prelu, slopes + COLUMNS, second)


@device
def row_offset(rows: Pointer, i: int) -> int:
    """Return the offset of row i, in floats."""
    return rows[i] * LANES


@device
def apply_step_to_rows(
    step: EpilogueStep, y: Pointer, rows_y: Pointer, first: int, last: int, N: int
) -> None:
    """Apply one step to the rows from ``first`` up to ``last``."""
    code, p, limit = step.code, step.parameter, step.limit
    for m in range(first, last if N > 0 else first):
        q = y + rows_y[m] * LANES
        if code in BY_COLUMN_CODES:
            for n in range(N):
                v = apply_step(code, vload(q, n * LANES), step.operand[n], p, limit)
                vstore(q, n * LANES, v)
        else:
            added = step.operand + step.rows[m] * LANES if code == ADD else q
            apply_to_run(code, q, q, added, q, N * LANES, p, limit)


@device
def combine_gates(gate: GateEpilogue, y: Pointer, rows_y: Pointer, first: int, last: int, N: int) -> None:
    """Combine the two halves of each row to a row of half the width."""
    left, right, z, rows_z, half = gate.left, gate.right, gate.gated, gate.rows, N // 2 * LANES
    for m in range(first, last):
        v, target = y + rows_y[m] * LANES, z + rows_z[m] * LANES
        for n in range(0, half, LANES):
            vstore(target, n, apply_gate(left, vload(v, n)) * apply_gate(right, vload(v, half + n)))


@device
def begins_with_prelu(row: Epilogue) -> int:
    """Return 1 if the first step is a PReLU, which the kernels apply before they store; else 0."""
    steps: Any = row.steps
    if row.gate_count > 0 or row.step_count == 0:
        return 0
    return 1 if steps[0].code == PRELU else 0


@device
def finish_rows(row: Epilogue, y: Pointer, rows_y: Pointer, first: int, last: int, N: int, done: int) -> None:
    """Run the gate or the steps in order, on the rows from ``first`` up to ``last``; the first ``done`` have run."""
    gates: Any = row.gates
    steps: Any = row.steps
    if row.gate_count > 0:
        combine_gates(gates[0], y, rows_y, first, last, N)
    for i in range(done, row.step_count):
        apply_step_to_rows(steps[i], y, rows_y, first, last, N)


@kernel
def interleaved_product(row: InterleavedProductRow) -> None:
    """Compute four rows at a time, four columns of each; at the end two rows, and eight columns of a single row."""
    M, rows_x, rows_y, T, taps, K, N = row.M, row.rows_x, row.rows_y, row.T, row.taps, row.K, row.N
    weights, bias, x, y, accumulate = row.W, row.bias, row.x, row.y, row.accumulate
    has_prelu, steps, m = begins_with_prelu(row.epilogue), row.epilogue.steps, 0
    all_slopes = steps[0].operand if has_prelu else bias
    while m < M:
        count = 4 if M - m >= 4 else 2 if M - m >= 2 else 1
        numbers = m, min(m + 1, M - 1), min(m + 2, M - 1), min(m + 3, M - 1)
        all_x, all_y = each(row_offset, rows_x, numbers), each(row_offset, rows_y, numbers)
        x0, x1, _, _ = all_x
        y0, y1, _, _ = all_y
        n = 0
        while n < N:
            w, rest, q = weights + n * T * K, N - n, y + n * LANES
            tile = taps, T, K, w, bias + n, rest, accumulate, has_prelu, all_slopes + n
            if count == 4:
                multiply_rows(each(add, x, all_x), each(add, q, all_y), tile)
                n += COLUMNS
            elif count == 1 and rest > COLUMNS:
                multiply_row_by_two_tiles(x + x0, q + y0, tile)
                n += 2 * COLUMNS
            else:  # a single row is computed twice
                multiply_rows((x + x0, x + x1), (q + y0, q + y1), tile)
                n += COLUMNS
        finish_rows(row.epilogue, y, rows_y, m, m + count, N, has_prelu)
        m += count
