"""Sums, products and extremes for sixteen streams with interleaved memories; see ``matmul.product_interleaved``."""

from collections.abc import Iterator

from pulse.jit.language.simd import LANES, Vector, vload, vmax, vmin, vsplat, vstore
from pulse.jit.registry import device, kernel
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, run, table
from pulse.program.kernels.reduce import MAX, MIN, SUM, ReduceRow
from pulse.program.kernels.vmath import INFINITY


class InterleavedReduceRow(ReduceRow):
    """``y[rows_y[m]] = scale * reduce_{r<R} x[rows_x[m] + r*stride]``, m < M, for sixteen streams."""

    def reaches(self) -> Iterator[Reach]:
        yield self.x, (table(self.rows_x, self.M) + run(self.R, self.stride)) * LANES
        yield self.y, table(self.rows_y, self.M) * LANES


@device
def combine(a: Vector, b: Vector, kind: int) -> Vector:
    if kind == SUM:
        return a + b
    if kind == MAX:
        return vmax(a, b)
    if kind == MIN:
        return vmin(a, b)
    return a * b


@device
def neutral_element(kind: int) -> Vector:
    if kind == SUM:
        return vsplat(0.0)
    if kind == MAX:
        return vsplat(-INFINITY)
    if kind == MIN:
        return vsplat(INFINITY)
    return vsplat(1.0)


@device
def reduce_vectors(x: Pointer, count: int, step: int, kind: int) -> Vector:
    """Reduce ``count`` vectors that are ``step`` floats apart, in four independent chains."""
    a, b, c, d = neutral_element(kind), neutral_element(kind), neutral_element(kind), neutral_element(kind)
    for _ in range(count // 4):
        a, b = combine(a, vload(x, 0), kind), combine(b, vload(x + step, 0), kind)
        x = x + 2 * step
        c, d = combine(c, vload(x, 0), kind), combine(d, vload(x + step, 0), kind)
        x = x + 2 * step
    for _ in range(count & 3):
        a = combine(a, vload(x, 0), kind)
        x = x + step
    return combine(combine(a, b, kind), combine(c, d, kind), kind)


@kernel
def interleaved_reduce(row: InterleavedReduceRow) -> None:
    x, y, rows, rows_x, rows_y = row.x, row.y, row.M, row.rows_x, row.rows_y
    count, step, kind, scale = row.R, row.stride * LANES, row.kind, row.scale
    for m in range(rows):
        v = reduce_vectors(x + rows_x[m] * LANES, count, step, kind)
        vstore(y, rows_y[m] * LANES, v * vsplat(scale))
