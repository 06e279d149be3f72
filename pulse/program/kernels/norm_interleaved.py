"""Softmax and layer normalisation for sixteen streams with interleaved memories; see ``matmul.product_interleaved``."""

from collections.abc import Iterator

from pulse.jit.language.simd import LANES, Vector, vfma, vgt, vload, vselect, vsplat, vsqrt, vstore, vzero
from pulse.jit.registry import device, kernel
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, run, table
from pulse.program.kernels.norm import LayerNormRow, NormFields, SoftmaxRow, exp_below
from pulse.program.kernels.vmath import vlog

PARTIAL_SUMS = 4
"""The number of independent sums."""


class InterleavedNormFields(NormFields):
    """M rows of sixteen streams, each of R contiguous elements, from x to y; x may be y."""

    def reaches(self) -> Iterator[Reach]:
        yield self.x, (table(self.rows_x, self.M) + run(self.R)) * LANES
        yield self.y, (table(self.rows_y, self.M) + run(self.R)) * LANES


class InterleavedLayerNormRow(InterleavedNormFields, LayerNormRow):
    """``y[r] = (x[r] - mean) / sqrt(variance + eps) * scale[r] + bias[r]``, r < R, for M rows of sixteen streams.

    Rows are contiguous; x may be y.
    """


@device
def mean_of(x: Pointer, count: int) -> Vector:
    a, b, c, d = vzero(), vzero(), vzero(), vzero()
    i = 0
    while i + PARTIAL_SUMS <= count:
        p = x + i * LANES
        a, b = a + vload(p, 0), b + vload(p, LANES)
        c, d = c + vload(p, 2 * LANES), d + vload(p, 3 * LANES)
        i += PARTIAL_SUMS
    while i < count:
        a = a + vload(x, i * LANES)
        i += 1
    return ((a + b) + (c + d)) / vsplat(count)


@device
def variance_of(x: Pointer, count: int, mean: Vector) -> Vector:
    a, b, c, d = vzero(), vzero(), vzero(), vzero()
    i = 0
    while i + PARTIAL_SUMS <= count:
        p = x + i * LANES
        e, f = vload(p, 0) - mean, vload(p, LANES) - mean
        g, h = vload(p, 2 * LANES) - mean, vload(p, 3 * LANES) - mean
        a, b, c, d = vfma(e, e, a), vfma(f, f, b), vfma(g, g, c), vfma(h, h, d)
        i += PARTIAL_SUMS
    while i < count:
        e = vload(x, i * LANES) - mean
        a = vfma(e, e, a)
        i += 1
    return ((a + b) + (c + d)) / vsplat(count)


@kernel
def interleaved_layer_norm(row: InterleavedLayerNormRow) -> None:
    x, scale, bias, y, rows, rows_x, rows_y = row.x, row.scale, row.bias, row.y, row.M, row.rows_x, row.rows_y
    count, eps = row.R, row.eps
    for m in range(rows):
        source, target = x + rows_x[m] * LANES, y + rows_y[m] * LANES
        mean = mean_of(source, count)
        factor = 1.0 / vsqrt(variance_of(source, count, mean) + eps)
        for i in range(count):
            v = (vload(source, i * LANES) - mean) * factor
            vstore(target, i * LANES, vfma(v, vsplat(scale[i]), vsplat(bias[i])))


class InterleavedSoftmaxRow(InterleavedNormFields, SoftmaxRow):
    """``y = exp(x - max) / sum(exp(x - max))`` of each row, or its logarithm, for sixteen streams.

    The result is NaN for a row whose largest element is infinite.
    """


@kernel
def interleaved_softmax(row: InterleavedSoftmaxRow) -> None:
    x, y, rows, rows_x, rows_y, count, log = row.x, row.y, row.M, row.rows_x, row.rows_y, row.R, row.log
    if count == 0:
        return
    for m in range(rows):
        source, target = x + rows_x[m] * LANES, y + rows_y[m] * LANES
        top = vload(source, 0)
        for i in range(LANES, count * LANES, LANES):
            v = vload(source, i)
            top = vselect(vgt(v, top), v, top)
        total = vzero()
        for i in range(0, count * LANES, LANES):
            v = vload(source, i) - top
            e = exp_below(v)
            total = total + e
            vstore(target, i, v if log else e)
        if log:
            shift = vlog(total)
            for i in range(0, count * LANES, LANES):
                vstore(target, i, vload(target, i) - shift)
        else:
            factor = 1.0 / total
            for i in range(0, count * LANES, LANES):
                vstore(target, i, vload(target, i) * factor)
