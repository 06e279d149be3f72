"""Batched products of two run-time operands for sixteen streams; see ``matmul.product_interleaved``."""

from collections.abc import Iterator
from operator import add, mul
from typing import Any

import numpy as np

from pulse.jit.language.simd import LANES, vfma, vload, vstore, vzero
from pulse.jit.language.tuples import copies, each
from pulse.jit.registry import device, kernel
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach
from pulse.program.kernels.matmul.batches import MatmulRow
from pulse.program.kernels.row_tuples import FOUR, Indices, Vectors, first_four


class InterleavedMatmulRow(MatmulRow):
    """``y[b_y + m*ym + n*yn] = scale * sum_k a[b_a + m*am + k*ak] * b[b_b + k*bk + n*bn]``, sixteen streams."""

    def multiply_adds(self) -> int:
        return LANES * super().multiply_adds()

    def reaches(self) -> Iterator[Reach]:
        for operand, span in super().reaches():
            yield operand, span * LANES


@device
def multiply_row(sums: Vectors, a: Pointer, i: int, columns: Vectors) -> Vectors:
    """Add the products of ``a[i]`` with four columns."""
    return each(vfma, vload(a, i), columns, sums)


@device
def store_row(y: Pointer, start: int, columns: Indices, sums: Vectors, scale: Any) -> None:
    """Store the products of the row at ``start``, times a scale, at the offsets of the columns."""
    each(vstore, y, each(add, start, columns), each(mul, sums, scale))


@device
def multiply_four_by_four(
    a: Pointer, b: Pointer, y: Pointer, K: int, ak: int, bk: int,
    rows_a: Indices, columns_b: Indices, rows_y: Indices, columns_y: Indices, scale: Any,
) -> None:  # fmt: skip
    """Multiply four rows of a by four columns of b, and the products by a scale; all strides in floats."""
    sums = copies(copies(vzero(), FOUR), FOUR)
    for _ in range(K):
        sums = each(multiply_row, sums, a, rows_a, copies(each(vload, b, columns_b), FOUR))
        a, b = a + ak, b + bk
    each(store_row, y, rows_y, copies(columns_y, FOUR), sums, scale)


@kernel
def interleaved_matmul(row: InterleavedMatmulRow) -> None:
    """Compute four rows and four columns at a time; after the last one, repeat it."""
    left, right, result, batch_a, batch_b = row.a, row.b, row.y, row.batch_a, row.batch_b
    batch_y = row.batch_y
    M, K, N, am, ak, bk, bn = (
        row.M,
        row.K,
        row.N,
        row.am * LANES,
        row.ak * LANES,
        row.bk * LANES,
        row.bn * LANES,
    )
    ym, yn, scale = row.ym * LANES, row.yn * LANES, np.float32(row.scale)
    for batch in range(row.B):
        a, b = left + batch_a[batch] * LANES, right + batch_b[batch] * LANES
        y = result + batch_y[batch] * LANES
        for m in range(0, M, 4):
            rows = first_four(M - 1 - m)
            for n in range(0, N, 4):
                columns, here = first_four(N - 1 - n), y + (m * ym + n * yn)
                multiply_four_by_four(
                    a + m * am, b + n * bn, here, K, ak, bk, each(mul, rows, am), each(mul, columns, bn),
                    each(mul, rows, ym), each(mul, columns, yn), scale,
                )  # fmt: skip
