"""Batched products of two run-time operands."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from pulse.jit.language.simd import LANES, vfma, vload, vload_part, vstore_part, vsum, vzero
from pulse.jit.registry import device, kernel
from pulse.jit.rows.cut import Cut
from pulse.jit.rows.instruction import Instruction, Operand, reads, writes
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, run, table


@device
def multiply_row_by_columns(
    p: Pointer, q: Pointer, z: Pointer, K: int, rest: int, ak: int, bk: int, scale: Any
) -> None:
    """Multiply one row by 16 columns, of which ``rest`` are loaded and stored."""
    sum0, sum1, sum2, sum3 = vzero(), vzero(), vzero(), vzero()
    k = 0
    while k + 4 <= K:
        sum0 = vfma(p[0], vload_part(q, 0, rest), sum0)
        sum1 = vfma(p[ak], vload_part(q, bk, rest), sum1)
        sum2 = vfma(p[2 * ak], vload_part(q, 2 * bk, rest), sum2)
        sum3 = vfma(p[3 * ak], vload_part(q, 3 * bk, rest), sum3)
        p, q = p + 4 * ak, q + 4 * bk
        k += 4
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
            m2, m3 = min(m + 2, M - 1), min(m + 3, M - 1)  # repeat the last row
            p, q, d1, d2, d3 = a + m * am, b + n, am, (m2 - m) * am, (m3 - m) * am
            sum0, sum1, sum2, sum3 = vzero(), vzero(), vzero(), vzero()
            for _ in range(K):
                right = vload_part(q, 0, rest)
                sum0, sum1 = vfma(p[0], right, sum0), vfma(p[d1], right, sum1)
                sum2, sum3 = vfma(p[d2], right, sum2), vfma(p[d3], right, sum3)
                p, q = p + ak, q + bk
            vstore_part(z, m * ym, rest, sum0 * scale)
            vstore_part(z, (m + 1) * ym, rest, sum1 * scale)
            vstore_part(z, m2 * ym, rest, sum2 * scale)
            vstore_part(z, m3 * ym, rest, sum3 * scale)
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
            n1, n2, n3 = min(n + 1, N - 1), min(n + 2, N - 1), min(n + 3, N - 1)
            q0, q1, q2, q3 = b + n * bn, b + n1 * bn, b + n2 * bn, b + n3 * bn
            sum0, sum1, sum2, sum3 = vzero(), vzero(), vzero(), vzero()
            k = 0
            while k + LANES <= K:
                left = vload(p, k)
                sum0, sum1 = vfma(left, vload(q0, k), sum0), vfma(left, vload(q1, k), sum1)
                sum2, sum3 = vfma(left, vload(q2, k), sum2), vfma(left, vload(q3, k), sum3)
                k += LANES
            if k < K:
                rest = K - k
                left = vload_part(p, k, rest)
                sum0, sum1 = (
                    vfma(left, vload_part(q0, k, rest), sum0),
                    vfma(left, vload_part(q1, k, rest), sum1),
                )
                sum2, sum3 = (
                    vfma(left, vload_part(q2, k, rest), sum2),
                    vfma(left, vload_part(q3, k, rest), sum3),
                )
            z[n * yn], z[n1 * yn] = vsum(sum0) * scale, vsum(sum1) * scale
            z[n2 * yn], z[n3 * yn] = vsum(sum2) * scale, vsum(sum3) * scale
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
