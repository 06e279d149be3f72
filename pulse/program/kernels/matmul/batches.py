"""Batched products of two run-time operands."""

from collections.abc import Iterator
from operator import add, getitem, mul, setitem
from typing import Any

import numpy as np

from pulse.jit.language.simd import LANES, vfma, vload, vload_part, vstore_part, vsum, vzero
from pulse.jit.language.tuples import copies, each
from pulse.jit.registry import device, kernel
from pulse.jit.rows.cut import Cut
from pulse.jit.rows.instruction import Instruction, Operand, reads, writes
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, run, table
from pulse.program.kernels.row_tuples import FOUR, first_four


@device
def multiply_row_by_columns(
    p: Pointer, q: Pointer, z: Pointer, K: int, rest: int, ak: int, bk: int, scale: Any
) -> None:
    """Multiply one row by 16 columns, of which ``rest`` are loaded and stored."""
    sums, left, right, k = copies(vzero(), FOUR), each(mul, FOUR, ak), each(mul, FOUR, bk), 0
    while k + 4 <= K:
        sums = each(vfma, each(getitem, p, left), each(vload_part, q, right, rest), sums)
        p, q = p + 4 * ak, q + 4 * bk
        k += 4
    sum0, sum1, sum2, sum3 = sums
    for _ in range(K & 3):
        sum0 = vfma(p[0], vload_part(q, 0, rest), sum0)
        p, q = p + ak, q + bk
    vstore_part(z, 0, rest, ((sum0 + sum1) + (sum2 + sum3)) * scale)


@device
def multiply_columns(
    a: Pointer, b: Pointer, y: Pointer, M: int, K: int, N: int, am: int, ak: int, bk: int, ym: int, scale: Any
) -> None:
    """Multiply matrices whose columns are contiguous in b and y: vectors over n, four rows at a time."""
    n = 0
    while n < N:
        rest, z = N - n, y + n
        m = 0
        while m + 2 <= M:
            rows = first_four(M - 1 - m)  # repeat the last row
            p, q, steps, sums = a + m * am, b + n, each(mul, rows, am), copies(vzero(), FOUR)
            for _ in range(K):
                sums = each(vfma, each(getitem, p, steps), vload_part(q, 0, rest), sums)
                p, q = p + ak, q + bk
            each(vstore_part, z + m * ym, each(mul, rows, ym), rest, each(mul, sums, scale))
            m += 4
        if m < M:
            multiply_row_by_columns(a + m * am, b + n, z + m * ym, K, rest, ak, bk, scale)
        n += LANES


@device
def multiply_depth(
    a: Pointer, b: Pointer, y: Pointer, M: int, K: int, N: int, am: int, bn: int, ym: int, yn: int, scale: Any
) -> None:
    """Multiply matrices whose terms are contiguous in a and b: vectors over k, four columns at a time."""
    for m in range(M):
        p, z = a + m * am, y + m * ym
        n = 0
        while n < N:
            columns = first_four(N - 1 - n)
            q, sums, k = each(add, b + n * bn, each(mul, columns, bn)), copies(vzero(), FOUR), 0
            while k + LANES <= K:
                sums = each(vfma, vload(p, k), each(vload, q, k), sums)
                k += LANES
            if k < K:
                rest = K - k
                sums = each(vfma, vload_part(p, k, rest), each(vload_part, q, k, rest), sums)
            each(setitem, z + n * yn, each(mul, columns, yn), each(mul, each(vsum, sums), scale))
            n += 4


class MatmulRow(Instruction):
    """y[b_y + m*ym + n*yn] = scale * sum_k a[b_a + m*am + k*ak] * b[b_b + k*bk + n*bn] for each of B batches, f32."""

    a: Operand = reads("f32")
    b: Operand = reads("f32")
    y: Operand = writes("f32")
    B: int
    batch_a: Operand = reads("i64", "B")
    batch_b: Operand = reads("i64", "B")
    batch_y: Operand = reads("i64", "B")
    M: int
    K: int
    N: int
    am: int
    ak: int
    bk: int
    bn: int
    ym: int
    yn: int
    scale: float

    def multiply_adds(self) -> int:
        return self.B * self.M * self.K * self.N

    def cuts(self) -> Iterator[Cut]:
        left, right = self.B * self.M * self.K, self.B * self.K * self.N
        yield Cut("B", 1, {"batch_a": 1, "batch_b": 1, "batch_y": 1})
        yield Cut("M", 4, {"a": self.am, "y": self.ym}, shared=right)
        yield Cut("N", LANES, {"b": self.bn, "y": self.yn}, shared=left)

    def reaches(self) -> Iterator[Reach]:
        yield self.a, table(self.batch_a, self.B) + run(self.M, self.am) + run(self.K, self.ak)
        yield self.b, table(self.batch_b, self.B) + run(self.K, self.bk) + run(self.N, self.bn)
        yield self.y, table(self.batch_y, self.B) + run(self.M, self.ym) + run(self.N, self.yn)


@kernel
def matmul(row: MatmulRow) -> None:
    """Use vectors if bn = yn = 1 or ak = bk = 1, else one product at a time."""
    left, right, result = row.a, row.b, row.y
    batch_a, batch_b, batch_y, M, K, N = row.batch_a, row.batch_b, row.batch_y, row.M, row.K, row.N
    am, ak, bk, bn, ym, yn = row.am, row.ak, row.bk, row.bn, row.ym, row.yn
    scale = np.float32(row.scale)
    for batch in range(row.B):
        a, b, y = left + batch_a[batch], right + batch_b[batch], result + batch_y[batch]
        if bn == 1 and yn == 1:
            multiply_columns(a, b, y, M, K, N, am, ak, bk, ym, scale)
        elif ak == 1 and bk == 1:
            multiply_depth(a, b, y, M, K, N, am, bn, ym, yn, scale)
        else:
            for m in range(M):
                for n in range(N):
                    total = np.float32(0)
                    for k in range(K):
                        total += a[m * am + k * ak] * b[k * bk + n * bn]
                    y[m * ym + n * yn] = total * scale
