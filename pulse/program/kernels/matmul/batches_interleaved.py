"""Batched products of two run-time operands for sixteen streams; see ``matmul.product_interleaved``."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from pulse.jit.language.simd import LANES, Vector, vfma, vload, vstore, vzero
from pulse.jit.registry import device, kernel
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, run, table
from pulse.program.kernels.matmul.batches import MatmulRow


class InterleavedMatmulRow(MatmulRow):
    """``y[b_y + m*ym + n*yn] = scale * sum_k a[b_a + m*am + k*ak] * b[b_b + k*bk + n*bn]``, sixteen streams."""

    def multiply_adds(self) -> int:
        return LANES * super().multiply_adds()

    def reaches(self) -> Iterator[Reach]:
        a = table(self.batch_a, self.B) + run(self.M, self.am) + run(self.K, self.ak)
        b = table(self.batch_b, self.B) + run(self.K, self.bk) + run(self.N, self.bn)
        y = table(self.batch_y, self.B) + run(self.M, self.ym) + run(self.N, self.yn)
        yield self.a, a * LANES
        yield self.b, b * LANES
        yield self.y, y * LANES


@device
def multiply_four_by_four(
    a: Pointer, b: Pointer, y: Pointer, K: int, ak: int, bk: int,
    a1: int, a2: int, a3: int, b1: int, b2: int, b3: int, y1: int, y2: int, y3: int, z1: int, z2: int, z3: int,
    scale: Any,
) -> None:  # fmt: skip
    """Multiply four rows of a by four columns of b, and the products by a scale; all strides in floats."""
    c00, c01, c02, c03 = vzero(), vzero(), vzero(), vzero()
    c10, c11, c12, c13 = vzero(), vzero(), vzero(), vzero()
    c20, c21, c22, c23 = vzero(), vzero(), vzero(), vzero()
    c30, c31, c32, c33 = vzero(), vzero(), vzero(), vzero()
    for _ in range(K):
        p, q, r, s = vload(b, 0), vload(b, b1), vload(b, b2), vload(b, b3)
        v = vload(a, 0)
        c00, c01, c02, c03 = vfma(v, p, c00), vfma(v, q, c01), vfma(v, r, c02), vfma(v, s, c03)
        v = vload(a, a1)
        c10, c11, c12, c13 = vfma(v, p, c10), vfma(v, q, c11), vfma(v, r, c12), vfma(v, s, c13)
        v = vload(a, a2)
        c20, c21, c22, c23 = vfma(v, p, c20), vfma(v, q, c21), vfma(v, r, c22), vfma(v, s, c23)
        v = vload(a, a3)
        c30, c31, c32, c33 = vfma(v, p, c30), vfma(v, q, c31), vfma(v, r, c32), vfma(v, s, c33)
        a, b = a + ak, b + bk
    store_row(y, 0, z1, z2, z3, c00 * scale, c01 * scale, c02 * scale, c03 * scale)
    store_row(y, y1, z1, z2, z3, c10 * scale, c11 * scale, c12 * scale, c13 * scale)
    store_row(y, y2, z1, z2, z3, c20 * scale, c21 * scale, c22 * scale, c23 * scale)
    store_row(y, y3, z1, z2, z3, c30 * scale, c31 * scale, c32 * scale, c33 * scale)


@device
def store_row(
    y: Pointer, start: int, z1: int, z2: int, z3: int, a: Vector, b: Vector, c: Vector, d: Vector
) -> None:
    """Store four columns of the row at ``start``."""
    vstore(y, start, a)
    vstore(y, start + z1, b)
    vstore(y, start + z2, c)
    vstore(y, start + z3, d)


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
            m1, m2, m3 = min(1, M - 1 - m), min(2, M - 1 - m), min(3, M - 1 - m)
            for n in range(0, N, 4):
                n1, n2, n3 = min(1, N - 1 - n), min(2, N - 1 - n), min(3, N - 1 - n)
                multiply_four_by_four(
                    a + m * am, b + n * bn, y + (m * ym + n * yn), K, ak, bk,
                    m1 * am, m2 * am, m3 * am, n1 * bn, n2 * bn, n3 * bn,
                    m1 * ym, m2 * ym, m3 * ym, n1 * yn, n2 * yn, n3 * yn, scale,
                )  # fmt: skip
