"""Attention of each frame to a band of frames around it, in one pass over its keys and one over its values.

Heads of 4 or 8 channels are neighbours in a vector: one load has a key of all of them.
"""

from collections.abc import Callable, Iterator
from operator import add, mul
from typing import Any

import numpy as np

from pulse.jit.language.simd import (
    LANES,
    Vector,
    vadd_pairs,
    vduplicate_fours,
    vduplicate_twos,
    veq,
    vfma,
    vload,
    vload_part,
    vrotate_by_eight,
    vrotate_by_four,
    vrotate_by_two,
    vrotate_eights,
    vselect,
    vsplat,
    vstore,
    vstore_part,
    vzero,
)
from pulse.jit.language.tuples import copies, each
from pulse.jit.registry import device, kernel
from pulse.jit.rows.cut import Cut
from pulse.jit.rows.instruction import Instruction, Operand, reads, updates, writes
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, require, run, table
from pulse.program.kernels.copy import fill_elements
from pulse.program.kernels.norm import exp_below, larger_or_second, largest_of_heads, mask_of_lanes_below
from pulse.program.kernels.row_tuples import FOUR, Indices, Vectors, element, first_four
from pulse.program.kernels.vmath import INFINITY

COLUMNS = (0, 16, 32, 48)
"""The first elements of four vectors."""
GROUP_HEADS = (1, 2, 4)
"""The numbers of heads in a group: one, or as many as fill a vector."""
PAGE_FLOATS = 1024
"""The numbers in a page of memory; more than four keys that are whole pages apart evict each other from the cache."""
MAX_HEAD_GROUPS = 64
"""Maximum number of groups of heads that are computed together; more are computed in turn."""
BLOCK_FRAMES = LANES
"""The frames whose keys or values are read for one group of heads before the next group."""


@device
def sum_of_heads(v: Vector, heads: int) -> Vector:
    """Return the sum of the lanes of each head; lane i belongs to head ``i mod heads``."""
    v = v + vrotate_by_eight(v)
    v = v + vrotate_by_four(v)
    if heads <= 2:
        v = v + vrotate_by_two(v)
    if heads == 1:
        v = v + vrotate_eights(v)
    return v


@device
def put_scores(sums: Vector, scale: Any, bias: Pointer, s: Pointer, count: int, top: Vector) -> Vector:
    """Set ``s = scale * sums + bias``, the first ``count`` lanes; return the larger of them and of top."""
    v = vfma(sums, scale, vload_part(bias, 0, count))
    vstore_part(s, 0, count, v)
    return larger_or_second(vselect(mask_of_lanes_below(count), v, -INFINITY), top)


@device
def add_keys(sums: Vectors, x: Vector, keys: Pointer, steps: Indices, rest: int) -> Vectors:
    """Add the products of a part of q with that of the keys at these steps; ``rest`` elements exist."""
    return each(vfma, x, each(vload_part, keys, steps, rest), sums)


@device
def join_four(sums: Vectors) -> Vector:
    """Return the sums of groups of four lanes, of four vectors in turn."""
    a, b, c, d = sums
    return vadd_pairs(vadd_pairs(a, b), vadd_pairs(c, d))


@device
def four_dot_products(q: Pointer, keys: Pointer, step: int, last: int, depth: int) -> Vector:
    """Return the products of q with keys 0 … 3, the last key again past it; each is the sum of four lanes."""
    steps, sums = each(mul, first_four(last), step), copies(vzero(), FOUR)
    for d in range(0, depth, LANES):
        sums = add_keys(sums, vload_part(q, d, depth - d), keys + d, steps, depth - d)
    return join_four(sums)


@device
def sixteen_sums(q: Pointer, keys: Pointer, step: int, depth: int) -> Vector:
    """Return the products of q with keys 0 … 15."""
    steps, fours = copies(each(mul, FOUR, step), FOUR), each(add, keys, each(mul, FOUR, 4 * step))
    sums = copies(copies(vzero(), FOUR), FOUR)
    for d in range(0, depth, LANES):
        rest = depth - d
        sums, fours = (
            each(add_keys, sums, vload_part(q, d, rest), fours, steps, rest),
            each(add, fours, LANES),
        )
    return join_four(each(join_four, sums))


@device
def put_head_scores(
    q: Pointer, keys: Pointer, step: int, frames: int, depth: int, scale: Any, bias: Pointer, s: Pointer
) -> Vector:
    """Set ``s[c] = scale * sum_d q[d] keys[c*step + d] + bias[c]``, c < frames; return the largest of each lane."""
    top, c = vsplat(-INFINITY), 0
    while step % PAGE_FLOATS != 0 and c + LANES <= frames:
        sums = sixteen_sums(q, keys + c * step, step, depth)
        top = put_scores(sums, scale, bias + c, s + c, LANES, top)
        c += LANES
    while c < frames:
        sums = four_dot_products(q, keys + c * step, step, frames - 1 - c, depth)
        sums = vadd_pairs(sums, sums)
        top = put_scores(vadd_pairs(sums, sums), scale, bias + c, s + c, min(4, frames - c), top)
        c += 4
    return top


@device
def exponentiate(s: Pointer, count: int, top: Vector, heads: int) -> Vector:
    """Set ``s = exp(s - top)``, top the largest of each lane; return the sums of the heads, 0 where all are -inf."""
    total, top = vzero(), largest_of_heads(top, heads)
    shift = vselect(veq(top, -INFINITY), 0.0, top)
    for c in range(0, count, LANES):
        rest = count - c
        e = vselect(mask_of_lanes_below(rest), exp_below(vload_part(s, c, rest) - shift), vzero())
        total += e
        vstore_part(s, c, rest, e)
    return sum_of_heads(total, heads)


@device
def mean_of(sums: Vector, divisor: Vector, empty: Any) -> Vector:
    """Return ``sums / divisor``, ``empty`` where the divisor is 0."""
    return vselect(veq(divisor, 0.0), empty, sums * (1 / divisor))


@device
def put_head_means(
    s: Pointer, v: Pointer, step: int, frames: int, width: int, divisor: Vector, empty: Any, y: Pointer
) -> None:
    """Set ``y[e] = sum_c s[c] v[c*step + e] / divisor``, e < width; ``empty`` where the divisor is 0."""
    e = 0
    while e + 4 * LANES <= width:
        sums, x = copies(vzero(), FOUR), v + e
        for c in range(frames):
            sums = each(vfma, vsplat(s[c]), each(vload, x, COLUMNS), sums)
            x = x + step
        each(vstore, y + e, COLUMNS, each(mean_of, sums, divisor, empty))
        e += 4 * LANES
    while e + 2 * LANES <= width:
        r0, r1, r2, r3 = vzero(), vzero(), vzero(), vzero()
        x, c = v + e, 0
        while c + 2 <= frames:
            p0, p1 = vsplat(s[c]), vsplat(s[c + 1])
            r0, r1 = vfma(p0, vload(x, 0), r0), vfma(p0, vload(x, LANES), r1)
            r2, r3 = vfma(p1, vload(x, step), r2), vfma(p1, vload(x, step + LANES), r3)
            x = x + 2 * step
            c += 2
        if c < frames:
            p0 = vsplat(s[c])
            r0, r1 = vfma(p0, vload(x, 0), r0), vfma(p0, vload(x, LANES), r1)
        vstore(y, e, mean_of(r0 + r2, divisor, empty))
        vstore(y, e + LANES, mean_of(r1 + r3, divisor, empty))
        e += 2 * LANES
    steps = each(mul, FOUR, step)
    while e < width:
        rest, sums, x, c = width - e, copies(vzero(), FOUR), v + e, 0
        while c + 4 <= frames:
            inputs = each(element, s + c, FOUR)
            sums = each(vfma, inputs, each(vload_part, x, steps, rest), sums)
            x = x + 4 * step
            c += 4
        r0, r1, r2, r3 = sums
        while c < frames:
            r0 = vfma(vsplat(s[c]), vload_part(x, 0, rest), r0)
            x = x + step
            c += 1
        vstore_part(y, e, rest, mean_of((r0 + r1) + (r2 + r3), divisor, empty))
        e += LANES


@device
def products_of_four(x: Vector, keys: Pointer, step: int, last: int) -> Vector:
    """Return the products of x with keys 0 … 3, the last key again past it; each is the sum of four lanes, in order."""
    return join_four(each(mul, x, each(vload, keys, each(mul, first_four(last), step))))


@device
def put_scores_of_heads(
    heads: int,
    q: Pointer,
    keys: Pointer,
    step: int,
    frames: int,
    scale: Any,
    bias: Pointer,
    s: Pointer,
    top: Vector,
) -> Vector:
    """Compute the scores of all heads of a frame, then of the next, up to 16; return the larger of them and top."""
    x, count = vload(q, 0), frames * heads
    if heads == 4:
        for c in range(0, frames, 4):
            sums = products_of_four(x, keys + c * step, step, frames - 1 - c)
            top = put_scores(sums, scale, bias + 4 * c, s + 4 * c, count - 4 * c, top)
        return top
    for c in range(0, frames, 8):
        last = frames - 1 - c
        low = products_of_four(x, keys + c * step, step, last)
        high = products_of_four(x, keys + (c + min(4, last)) * step, step, max(0, last - 4))
        top = put_scores(vadd_pairs(low, high), scale, bias + 2 * c, s + 2 * c, count - 2 * c, top)
    return top


def make_head_sums(heads: int, spread: Callable[[Pointer, int], Vector]) -> Callable[..., Vector]:
    """Make the function that adds ``sum_c s[c] v[c*step]`` of heads that fill a vector.

    ``spread`` repeats a number of each head.
    """

    @device
    def sums(s: Pointer, v: Pointer, step: int, frames: int, total: Vector) -> Vector:
        """Add the values to a total; the exponentials of all heads of a frame are neighbours."""
        r1, r2, r3, c = vzero(), vzero(), vzero(), 0
        while c + 4 <= frames:
            total, r1 = vfma(spread(s, 0), vload(v, 0), total), vfma(spread(s, heads), vload(v, step), r1)
            r2 = vfma(spread(s, 2 * heads), vload(v, 2 * step), r2)
            r3 = vfma(spread(s, 3 * heads), vload(v, 3 * step), r3)
            s, v = s + 4 * heads, v + 4 * step
            c += 4
        while c < frames:
            total = vfma(spread(s, 0), vload(v, 0), total)
            s, v = s + heads, v + step
            c += 1
        return (total + r1) + (r2 + r3)

    return sums


two_heads_sums, four_heads_sums = make_head_sums(2, vduplicate_twos), make_head_sums(4, vduplicate_fours)


def scratch_size(groups: int, heads: int, band: int) -> int:
    """Return the number of f32 elements of scratch memory that a row needs."""
    return band if heads == 1 else min(groups, MAX_HEAD_GROUPS) * (heads * band + LANES)


class BandAttentionRow(Instruction):
    """``y[r] = sum_c softmax_c(scale * q[r].k[r + c] + bias[i mod C, c]) v[r + c]``, c < W, of M groups of heads.

    Row r is frame ``i = clock*P + r - offset`` of a stream of ``end`` frames, and column r + c is frame
    ``i + c - back``. Columns outside the stream and from ``span`` on are not read; rows outside it become zeros.
    Groups begin at ``at``, rows are ``step`` apart; the elements of a row without columns become ``empty``.

    heads  1; or 2 or 4 that fill a vector: their channels, ``depth`` of each, are neighbours in q, k, v and y, and
           the biases of one column too
    """

    q: Operand = reads("f32")
    k: Operand = reads("f32")
    v: Operand = reads("f32")
    bias: Operand = reads("f32")
    y: Operand = writes("f32")
    scratch: Operand = updates("f32")
    clock: Operand = reads("i64", 1)
    end: Operand = reads("i64", 1)
    M: int
    at_q: Operand = reads("i64", "M")
    at_k: Operand = reads("i64", "M")
    at_v: Operand = reads("i64", "M")
    at_bias: Operand = reads("i64", "M")
    at_y: Operand = reads("i64", "M")
    P: int
    step_q: int
    step_k: int
    step_v: int
    step_y: int
    heads: int
    depth: int
    width: int
    W: int
    back: int
    span: int
    C: int
    offset: int
    scale: float
    empty: float

    def multiply_adds(self) -> int:
        return self.M * self.heads * self.P * self.W * (self.depth + self.width)

    def work(self) -> int:
        return 3 * self.multiply_adds()

    def cuts(self) -> Iterator[Cut]:
        batches = {f"at_{name}": 1 for name in ("q", "k", "v", "bias", "y")}
        yield Cut("M", 1, batches, scratch={"scratch": scratch_size(self.M, self.heads, self.W)})

    def reaches(self) -> Iterator[Reach]:
        require(self.C > 0, "biases without frames")
        require(self.heads in GROUP_HEADS, "heads that do not fill a vector")
        together = self.heads == 1 or self.depth == self.width == LANES // self.heads
        require(together, "heads whose channels do not fill a vector")
        depth, width = run(self.heads * self.depth), run(self.heads * self.width)
        require(self.span >= 0, "a negative number of keys")
        keys, scores = min(self.span, self.P + self.W - 1) if self.P and self.W else 0, self.heads * self.W
        yield self.q, table(self.at_q, self.M) + run(self.P, self.step_q) + depth
        yield self.k, table(self.at_k, self.M) + run(keys, self.step_k) + depth
        yield self.v, table(self.at_v, self.M) + run(keys, self.step_v) + width
        yield self.y, table(self.at_y, self.M) + run(self.P, self.step_y) + width
        yield self.bias, table(self.at_bias, self.M) + run(self.C * scores)
        yield self.scratch, run(scratch_size(self.M, self.heads, self.W))


@device
def seen_frames(i: int, back: int, band: int, length: int) -> tuple[int, int]:
    """Return the first of ``band`` columns that frame i sees, and how many; none outside the stream."""
    low = max(0, back - i)
    frames = max(0, min(band, length - i + back) - low)
    if i < 0 or i >= length:
        frames = 0
    return low, frames


@device
def attend_by_group(row: BandAttentionRow) -> None:
    """Compute each group of all rows, whose keys are then in the nearest cache."""
    q, k, v, bias, y, s = row.q, row.k, row.v, row.bias, row.y, row.scratch
    at_q, at_k, at_v, at_bias, at_y = row.at_q, row.at_k, row.at_v, row.at_bias, row.at_y
    step_q, step_k, step_v, step_y = row.step_q, row.step_k, row.step_v, row.step_y
    pulse, groups, length, depth, width = row.P, row.M, row.end[0], row.depth, row.width
    band, back, period, first = row.W, row.back, row.C, row.clock[0] * row.P - row.offset
    scale, empty = np.float32(row.scale), np.float32(row.empty)
    for m in range(groups):
        for r in range(pulse):
            i, target = first + r, y + (at_y[m] + r * step_y)
            low, frames = seen_frames(i, back, min(band, row.span - r), length)
            if frames == 0:
                fill_elements(target, width, empty if 0 <= i < length else np.float32(0))
                continue
            table, query = bias + (at_bias[m] + (i % period) * band + low), q + (at_q[m] + r * step_q)
            keys, values = k + (at_k[m] + (r + low) * step_k), v + (at_v[m] + (r + low) * step_v)
            top = put_head_scores(query, keys, step_k, frames, depth, scale, table, s)
            total = exponentiate(s, frames, top, 1)
            put_head_means(s, values, step_v, frames, width, total, empty, target)


@device
def attend_by_row(row: BandAttentionRow) -> None:
    """Compute the scores of all groups, block by block of keys, then their exponentials, then the sums of values."""
    q, k, v, bias, y, scratch = row.q, row.k, row.v, row.bias, row.y, row.scratch
    at_q, at_k, at_v, at_bias, at_y = row.at_q, row.at_k, row.at_v, row.at_bias, row.at_y
    step_q, step_k, step_v, step_y = row.step_q, row.step_k, row.step_v, row.step_y
    pulse, length, heads = row.P, row.end[0], row.heads
    band, back, period, first = row.W, row.back, row.C, row.clock[0] * row.P - row.offset
    scale, empty = np.float32(row.scale), np.float32(row.empty)
    size = band * heads + LANES
    for n in range(pulse * -(-row.M // MAX_HEAD_GROUPS)):
        r, begin = n % pulse, n // pulse * MAX_HEAD_GROUPS
        groups = min(MAX_HEAD_GROUPS, row.M - begin)
        i, tops = first + r, scratch + band * heads
        low, frames = seen_frames(i, back, min(band, row.span - r), length)
        if frames == 0:
            for m in range(begin, begin + groups):
                fill_elements(y + (at_y[m] + r * step_y), LANES, empty if 0 <= i < length else np.float32(0))
        for c in range(0, frames, BLOCK_FRAMES):
            count, row_k = min(BLOCK_FRAMES, frames - c), (r + low + c) * step_k
            column = ((i % period) * band + low + c) * heads
            for m in range(groups):
                query, keys = q + (at_q[begin + m] + r * step_q), k + (at_k[begin + m] + row_k)
                table, s, top = bias + (at_bias[begin + m] + column), scratch + m * size, vsplat(-INFINITY)
                if c > 0:
                    top = vload(tops, m * size)
                top = put_scores_of_heads(heads, query, keys, step_k, count, scale, table, s + c * heads, top)
                vstore(tops, m * size, top)
        for m in range(groups if frames > 0 else 0):
            top = vload(tops, m * size)
            vstore(tops, m * size, exponentiate(scratch + m * size, frames * heads, top, heads))
        for c in range(0, frames, BLOCK_FRAMES):
            count, row_v = min(BLOCK_FRAMES, frames - c), (r + low + c) * step_v
            for m in range(groups):
                s, values = scratch + (m * size + c * heads), v + (at_v[begin + m] + row_v)
                target, total = y + (at_y[begin + m] + r * step_y), vzero()
                if c > 0:
                    total = vload(target, 0)
                if heads == 2:
                    total = two_heads_sums(s, values, step_v, count, total)
                else:
                    total = four_heads_sums(s, values, step_v, count, total)
                if c + BLOCK_FRAMES >= frames:
                    divisor = tops + m * size
                    if heads == 2:
                        total = mean_of(total, vduplicate_twos(divisor, 0), empty)
                    else:
                        total = mean_of(total, vduplicate_fours(divisor, 0), empty)
                vstore(target, 0, total)


@kernel
def band_attention(row: BandAttentionRow) -> None:
    """Compute heads by themselves group by group, and heads that fill a vector row by row, each step of all groups."""
    if row.heads == 1:
        attend_by_group(row)
    else:
        attend_by_row(row)
