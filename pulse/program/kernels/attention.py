"""Attention of each frame to a band of frames around it."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from pulse.jit.cut import Cut
from pulse.jit.instruction import Instruction, Operand, reads, updates, writes
from pulse.jit.pointer import Pointer
from pulse.jit.registry import device, kernel
from pulse.jit.simd import (
    LANES,
    vfma,
    vgt,
    vindex,
    vload,
    vload_part,
    vlt,
    vmax_across,
    vselect,
    vsplat,
    vstore,
    vstore_part,
    vsum,
    vzero,
)
from pulse.jit.span import Reach, require, run, table
from pulse.program.kernels.norm import exp_below
from pulse.program.kernels.vmath import INFINITY


@device
def band_scores(
    q: Pointer, k: Pointer, step: int, frames: int, depth: int, scale: Any, bias: Pointer, s: Pointer
) -> None:
    """Compute ``s[c] = scale * sum_d q[d] k[c*step + d] + bias[c]``, c < frames."""
    c = 0
    while c + 4 <= frames:
        k0 = k + c * step
        k1, k2, k3 = k0 + step, k0 + 2 * step, k0 + 3 * step
        r0, r1, r2, r3 = vzero(), vzero(), vzero(), vzero()
        d = 0
        while d + LANES <= depth:
            x = vload(q, d)
            r0, r1 = vfma(x, vload(k0, d), r0), vfma(x, vload(k1, d), r1)
            r2, r3 = vfma(x, vload(k2, d), r2), vfma(x, vload(k3, d), r3)
            d += LANES
        if d < depth:
            rest = depth - d
            x = vload_part(q, d, rest)
            r0, r1 = vfma(x, vload_part(k0, d, rest), r0), vfma(x, vload_part(k1, d, rest), r1)
            r2, r3 = vfma(x, vload_part(k2, d, rest), r2), vfma(x, vload_part(k3, d, rest), r3)
        s[c] = scale * vsum(r0) + bias[c]
        s[c + 1] = scale * vsum(r1) + bias[c + 1]
        s[c + 2] = scale * vsum(r2) + bias[c + 2]
        s[c + 3] = scale * vsum(r3) + bias[c + 3]
        c += 4
    while c < frames:
        k0 = k + c * step
        r0 = vzero()
        d = 0
        while d < depth:
            r0 = vfma(vload_part(q, d, depth - d), vload_part(k0, d, depth - d), r0)
            d += LANES
        s[c] = scale * vsum(r0) + bias[c]
        c += 1


@device
def exponentials(s: Pointer, frames: int) -> float:
    """Replace s by ``exp(s - max(s))`` and return its sum; if all are -inf, return 0 and leave s unchanged."""
    top = vsplat(-INFINITY)
    for c in range(0, frames, LANES):
        rest = frames - c
        v = vselect(vlt(vindex(), vsplat(float(rest))), vload_part(s, c, rest), -INFINITY)
        top = vselect(vgt(v, top), v, top)
    largest = float(vmax_across(top))
    if largest == -INFINITY:
        return 0.0
    shift = vsplat(largest)
    total = vzero()
    for c in range(0, frames, LANES):
        rest = frames - c
        v = vload_part(s, c, rest) - shift
        e = vselect(vlt(vindex(), vsplat(float(rest))), exp_below(v), vzero())
        total += e
        vstore_part(s, c, rest, e)
    return float(vsum(total))


@device
def weighted_sum(s: Pointer, v: Pointer, step: int, frames: int, width: int, factor: Any, y: Pointer) -> None:
    """Compute ``y[e] = factor * sum_c s[c] v[c*step + e]``, e < width."""
    e = 0
    while e + 4 * LANES <= width:
        r0, r1, r2, r3 = vzero(), vzero(), vzero(), vzero()
        for c in range(frames):
            p, x = vsplat(s[c]), v + (c * step + e)
            r0, r1 = vfma(p, vload(x, 0), r0), vfma(p, vload(x, LANES), r1)
            r2, r3 = vfma(p, vload(x, 2 * LANES), r2), vfma(p, vload(x, 3 * LANES), r3)
        vstore(y, e, r0 * factor)
        vstore(y, e + LANES, r1 * factor)
        vstore(y, e + 2 * LANES, r2 * factor)
        vstore(y, e + 3 * LANES, r3 * factor)
        e += 4 * LANES
    while e < width:
        rest = width - e
        r0, r1 = vzero(), vzero()
        c = 0
        while c + 2 <= frames:
            r0 = vfma(vsplat(s[c]), vload_part(v, c * step + e, rest), r0)
            r1 = vfma(vsplat(s[c + 1]), vload_part(v, (c + 1) * step + e, rest), r1)
            c += 2
        if c < frames:
            r0 = vfma(vsplat(s[c]), vload_part(v, c * step + e, rest), r0)
        vstore_part(y, e, rest, (r0 + r1) * factor)
        e += LANES


@device
def fill_row(y: Pointer, width: int, value: Any) -> None:
    """Set ``y[e] = value``, e < width."""
    for e in range(width):
        y[e] = value


class BandAttention(Instruction):
    """``y[r] = sum_c softmax_c(scale * q[r].k[r + c] + bias[i mod C, c]) v[r + c]``, c < W, of M batches.

    Row r is frame ``i = clock*P + r - offset`` of a stream of ``end`` frames, and column r + c is frame
    ``i + c - back``. Columns outside of the stream are not read; rows outside of it become zeros.
    Batches begin at ``at``, rows are ``step`` apart; the elements of a row without columns become ``empty``.
    """

    q: Operand = reads("f32")
    k: Operand = reads("f32")
    v: Operand = reads("f32")
    bias: Operand = reads("f32")
    y: Operand = writes("f32")
    scratch: Operand = updates("f32", "W")
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
    depth: int
    width: int
    W: int
    back: int
    C: int
    offset: int
    scale: float
    empty: float

    def multiply_adds(self) -> int:
        return self.M * self.P * self.W * (self.depth + self.width)

    def work(self) -> int:
        return 3 * self.multiply_adds()

    def cuts(self) -> Iterator[Cut]:
        batches = {f"at_{name}": 1 for name in ("q", "k", "v", "bias", "y")}
        yield Cut("M", 1, batches, scratch={"scratch": self.W})

    def reaches(self) -> Iterator[Reach]:
        require(self.C > 0, "biases of no frame")
        width, keys = run(self.width), self.P + self.W - 1 if self.P and self.W else 0
        yield self.q, table(self.at_q, self.M) + run(self.P, self.step_q) + run(self.depth)
        yield self.k, table(self.at_k, self.M) + run(keys, self.step_k) + run(self.depth)
        yield self.v, table(self.at_v, self.M) + run(keys, self.step_v) + width
        yield self.y, table(self.at_y, self.M) + run(self.P, self.step_y) + width
        yield self.bias, table(self.at_bias, self.M) + run(self.C * self.W)


@kernel
def band_attention(row: BandAttention) -> None:
    """Compute row by row, each for all batches."""
    q, k, v, bias, y, s = row.q, row.k, row.v, row.bias, row.y, row.scratch
    at_q, at_k, at_v, at_bias, at_y = row.at_q, row.at_k, row.at_v, row.at_bias, row.at_y
    step_q, step_k, step_v, step_y = row.step_q, row.step_k, row.step_v, row.step_y
    pulse, batches, length, depth, width = row.P, row.M, row.end[0], row.depth, row.width
    band, back, period, first = row.W, row.back, row.C, row.clock[0] * row.P - row.offset
    scale, empty = np.float32(row.scale), np.float32(row.empty)
    for r in range(pulse):
        i = first + r
        low = max(0, back - i)
        high = min(band, length - i + back)
        frames = high - low
        for m in range(batches):
            target = y + (at_y[m] + r * step_y)
            if i < 0 or i >= length:
                fill_row(target, width, np.float32(0))
                continue
            total = 0.0
            if frames > 0:
                table = bias + (at_bias[m] + (i % period) * band + low)
                keys = k + (at_k[m] + (r + low) * step_k)
                band_scores(q + (at_q[m] + r * step_q), keys, step_k, frames, depth, scale, table, s)
                total = exponentials(s, frames)
            if total == 0.0:
                fill_row(target, width, empty)
                continue
            factor = vsplat(1 / total)
            weighted_sum(s, v + (at_v[m] + (r + low) * step_v), step_v, frames, width, factor, target)
