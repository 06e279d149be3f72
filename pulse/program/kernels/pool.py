"""Pools: windows of rows reduced to one row by sums, products or extremes, element by element."""

from collections.abc import Callable, Iterator
from operator import add, mul
from typing import Any

import numpy as np

from pulse.jit.language.simd import (
    LANES,
    Vector,
    vfma,
    vload,
    vload_part,
    vmax,
    vmin,
    vsplat,
    vstore,
    vstore_part,
)
from pulse.jit.registry import device, kernel
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach
from pulse.program.kernels.matmul.windows import WindowFields
from pulse.program.kernels.reduce import INFINITY, MAX, MIN, SQUARES, SUM, Combine


def make_pooling_loops(combine: Combine, neutral: Any, join: Combine) -> Callable[..., None]:
    """Make the loops of ``pool`` for one kind; ``join`` combines the results of some of the taps."""
    many = 4 * LANES

    @device
    def loops(
        x: Pointer,
        y: Pointer,
        rows: int,
        rows_x: Pointer,
        rows_y: Pointer,
        taps_count: int,
        taps: Pointer,
        channels: int,
        scale: Any,
    ) -> None:
        """Reduce the windows of all rows, four taps at a time."""
        for m in range(rows):
            source, target = x + rows_x[m], y + rows_y[m]
            c = 0
            while c + many <= channels:
                r0, r1, r2, r3 = vsplat(neutral), vsplat(neutral), vsplat(neutral), vsplat(neutral)
                for t in range(taps_count):
                    p = source + (taps[t] + c)
                    r0 = combine(r0, vload(p, 0))
                    r1 = combine(r1, vload(p, LANES))
                    r2 = combine(r2, vload(p, 2 * LANES))
                    r3 = combine(r3, vload(p, 3 * LANES))
                vstore(target, c, r0 * scale)
                vstore(target, c + LANES, r1 * scale)
                vstore(target, c + 2 * LANES, r2 * scale)
                vstore(target, c + 3 * LANES, r3 * scale)
                c += many
            while c < channels:
                rest = channels - c
                p = source + c
                r0, r1, r2, r3 = vsplat(neutral), vsplat(neutral), vsplat(neutral), vsplat(neutral)
                t = 0
                while t + 4 <= taps_count:
                    r0 = combine(r0, vload_part(p, taps[t], rest))
                    r1 = combine(r1, vload_part(p, taps[t + 1], rest))
                    r2 = combine(r2, vload_part(p, taps[t + 2], rest))
                    r3 = combine(r3, vload_part(p, taps[t + 3], rest))
                    t += 4
                while t < taps_count:
                    r0 = combine(r0, vload_part(p, taps[t], rest))
                    t += 1
                vstore_part(target, c, rest, join(join(r0, r1), join(r2, r3)) * scale)
                c += LANES

    return loops


@device
def add_square(total: Vector, v: Vector) -> Vector:
    return vfma(v, v, total)


pool_sum = make_pooling_loops(add, np.float32(0), add)
pool_squares = make_pooling_loops(add_square, np.float32(0), add)
pool_max = make_pooling_loops(vmax, -INFINITY, vmax)
pool_min = make_pooling_loops(vmin, INFINITY, vmin)
pool_prod = make_pooling_loops(mul, np.float32(1), mul)


class PoolRow(WindowFields):
    """``y[rows_y[m] + c] = scale * reduce_{t<T} x[rows_x[m] + taps[t] + c]``, m < M, c < C.

    The kind is 0 (sum), 1 (max), 2 (min), 3 (product) or 4 (sum of squares). Without taps the results are 0, -inf, inf,
    1 and 0 (times scale).
    """

    C: int
    kind: int
    scale: float

    def reaches(self) -> Iterator[Reach]:
        yield from self.window_reaches(self.C, self.C)


@kernel
def pool(row: PoolRow) -> None:
    """Run the loops of the row's kind."""
    x, y, rows, rows_x, rows_y, taps_count = row.x, row.y, row.M, row.rows_x, row.rows_y, row.T
    taps, channels, kind, scale = row.taps, row.C, row.kind, row.scale
    if kind == SUM:
        pool_sum(x, y, rows, rows_x, rows_y, taps_count, taps, channels, scale)
    elif kind == MAX:
        pool_max(x, y, rows, rows_x, rows_y, taps_count, taps, channels, scale)
    elif kind == MIN:
        pool_min(x, y, rows, rows_x, rows_y, taps_count, taps, channels, scale)
    elif kind == SQUARES:
        pool_squares(x, y, rows, rows_x, rows_y, taps_count, taps, channels, scale)
    else:
        pool_prod(x, y, rows, rows_x, rows_y, taps_count, taps, channels, scale)
