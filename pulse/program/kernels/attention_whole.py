"""Attention of every row to all rows at hand: scores, softmax and means in one instruction.

Sixteen queries are the lanes of a vector, so that neither the largest score nor the sum of a row crosses lanes.
"""

from collections.abc import Iterator
from operator import getitem, mul
from typing import Any

import numpy as np

from pulse.jit.language.simd import LANES, Vector, vfma, vload, vload_part, vsplat, vstore, vstore_part, vzero
from pulse.jit.language.tuples import copies, each
from pulse.jit.registry import device, kernel
from pulse.jit.rows.cut import Cut
from pulse.jit.rows.instruction import Instruction, Operand, reads, updates, writes
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, run, table
from pulse.program.kernels.norm import exp_below, larger_or_second
from pulse.program.kernels.row_tuples import EIGHT, first_eight
from pulse.program.kernels.vmath import INFINITY

KEYS_PER_SUM = 8
"""The keys whose products with sixteen queries are summed together; also the queries whose means are."""


def scratch_size(batches: int, queries: int, keys: int) -> int:
    """Return the numbers in scratch memory: scores and divisors of a block, or the scores of all batches."""
    return max(batches * queries * keys, LANES * (keys + KEYS_PER_SUM + 1))


class WholeAttentionRow(Instruction):
    """``y[m] = sum_n softmax_n(scale * q[m].k[n]) v[n]``, n < N, for the M rows of each of B batches, f32.

    Rows have K elements in q and k, and D in v and y. Element k of all rows of q is contiguous, as is each row of v
    and y; ``qk``, ``kn`` … are the other steps. A row whose largest score is infinite becomes NaN. ``scratch`` has
    ``scratch_size`` numbers.
    """

    q: Operand = reads("f32")
    k: Operand = reads("f32")
    v: Operand = reads("f32")
    y: Operand = writes("f32")
    scratch: Operand = updates("f32")
    B: int
    batch_q: Operand = reads("i64", "B")
    batch_k: Operand = reads("i64", "B")
    batch_v: Operand = reads("i64", "B")
    batch_y: Operand = reads("i64", "B")
    M: int
    N: int
    K: int
    D: int
    qk: int
    kn: int
    kk: int
    vn: int
    ym: int
    scale: float

    def multiply_adds(self) -> int:
        return self.B * self.M * self.N * (self.K + self.D)

    def work(self) -> int:
        return 2 * self.multiply_adds()

    def cuts(self) -> Iterator[Cut]:
        batches = {f"batch_{name}": 1 for name in ("q", "k", "v", "y")}
        yield Cut("B", 1, batches, scratch={"scratch": scratch_size(self.B, self.M, self.N)})

    def reaches(self) -> Iterator[Reach]:
        yield self.q, table(self.batch_q, self.B) + run(self.M) + run(self.K, self.qk)
        yield self.k, table(self.batch_k, self.B) + run(self.N, self.kn) + run(self.K, self.kk)
        yield self.v, table(self.batch_v, self.B) + run(self.N, self.vn) + run(self.D)
        yield self.y, table(self.batch_y, self.B) + run(self.M, self.ym) + run(self.D)
        yield self.scratch, run(scratch_size(self.B, self.M, self.N))


@device
def put_scores(
    q: Pointer,
    rest: int,
    qk: int,
    k: Pointer,
    keys: int,
    depth: int,
    kn: int,
    kk: int,
    scale: Any,
    scores: Pointer,
) -> Vector:
    """Set vector n of the scores to the products of the queries with key n; return the largest of each lane.

    ``rest`` of the queries exist. Eight keys are read at a time. Past the last key it is repeated, so up to seven
    vectors more are written.
    """
    top = vsplat(-INFINITY)
    for n in range(0, keys, KEYS_PER_SUM):
        left, p, s = q, k + n * kn, scores + n * LANES
        steps, sums = each(mul, first_eight(keys - 1 - n), kn), copies(vzero(), EIGHT)
        for _ in range(depth):
            sums = each(vfma, each(getitem, p, steps), vload_part(left, 0, rest), sums)
            left, p = left + qk, p + kk
        sums = each(mul, sums, scale)
        each(vstore, s, each(mul, EIGHT, LANES), sums)
        a0, a1, a2, a3, a4, a5, a6, a7 = sums
        low = larger_or_second(larger_or_second(a0, a1), larger_or_second(a2, a3))
        high = larger_or_second(larger_or_second(a4, a5), larger_or_second(a6, a7))
        top = larger_or_second(larger_or_second(low, high), top)
    return top


@device
def put_powers(scores: Pointer, keys: int, top: Vector) -> Vector:
    """Replace the scores by ``exp(score - top)``; return the sums."""
    total = vzero()
    for n in range(0, keys * LANES, LANES):
        e = exp_below(vload(scores, n) - top)
        total += e
        vstore(scores, n, e)
    return total


@device
def put_means(
    powers: Pointer,
    factors: Pointer,
    rows: int,
    v: Pointer,
    keys: int,
    width: int,
    vn: int,
    y: Pointer,
    ym: int,
) -> None:
    """Set ``y[m*ym + e] = factors[m] * sum_n powers[n*16 + m] v[n*vn + e]``, m < rows; past the last, repeat it."""
    for e in range(0, width, LANES):
        rest = width - e
        for m in range(0, rows, KEYS_PER_SUM):
            p, right, here = powers + m, v + e, first_eight(rows - 1 - m)
            sums, f, z = copies(vzero(), EIGHT), factors + m, y + (m * ym + e)
            for _ in range(keys):
                sums = each(vfma, each(getitem, p, here), vload_part(right, 0, rest), sums)
                p, right = p + LANES, right + vn
            each(vstore_part, z, each(mul, here, ym), rest, each(mul, sums, each(getitem, f, here)))


@kernel
def whole_attention(row: WholeAttentionRow) -> None:
    """Compute sixteen queries of a batch at a time."""
    left, right, values, result = row.q, row.k, row.v, row.y
    batch_q, batch_k, batch_v, batch_y = row.batch_q, row.batch_k, row.batch_v, row.batch_y
    M, N, K, D, qk, kn, kk, vn, ym = row.M, row.N, row.K, row.D, row.qk, row.kn, row.kk, row.vn, row.ym
    scale, factors = np.float32(row.scale), row.scratch
    scores = factors + LANES
    for b in range(row.B):
        q, k, v, y = left + batch_q[b], right + batch_k[b], values + batch_v[b], result + batch_y[b]
        for m in range(0, M, LANES):
            rows = min(LANES, M - m)
            top = put_scores(q + m, rows, qk, k, N, K, kn, kk, scale, scores)
            vstore(factors, 0, 1.0 / put_powers(scores, N, top))
            put_means(scores, factors, rows, v, N, D, vn, y + m * ym, ym)
