"""Depthwise windows of sixteen streams whose memories are interleaved; see ``matmul.product_interleaved``."""

from collections.abc import Iterator

from pulse.jit.language.simd import LANES, vfma, vload, vsplat
from pulse.jit.registry import device, kernel
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach
from pulse.program.kernels.conv_depthwise import DepthwiseFields
from pulse.program.kernels.matmul.finish import Finish
from pulse.program.kernels.matmul.product_interleaved import (
    begins_with_prelu,
    finish_rows,
    interleaved_reaches,
    store_columns,
)


class InterleavedDepthwiseRow(DepthwiseFields):
    """y[rows_y[m] + c] = bias[c] + sum_t x[rows_x[m] + taps[t] + c] * W[t*C + c] of 16 streams, then ``finish``."""

    finish: Finish

    def multiply_adds(self) -> int:
        return LANES * super().multiply_adds()

    def reaches(self) -> Iterator[Reach]:
        yield from self.window_reaches(self.C, self.C, LANES)
        yield from interleaved_reaches(self.finish, self.y, self.rows_y, self.M, self.C)


@device
def sum_four_channels(
    x0: Pointer, x1: Pointer, x2: Pointer, x3: Pointer, taps: Pointer, T: int, w: Pointer, C: int, bias: Pointer,
    y0: Pointer, y1: Pointer, y2: Pointer, y3: Pointer, rest: int,
    has_prelu: int, slopes: Pointer,
) -> None:  # fmt: skip
    """Sum the windows of four rows for four channels, of which ``rest`` exist; the last one stands for the others."""
    i, j, k = min(1, rest - 1), min(2, rest - 1), min(3, rest - 1)
    a0, b0, c0, d0 = vsplat(bias[0]), vsplat(bias[i]), vsplat(bias[j]), vsplat(bias[k])
    a1, b1, c1, d1 = a0, b0, c0, d0
    a2, b2, c2, d2 = a0, b0, c0, d0
    a3, b3, c3, d3 = a0, b0, c0, d0
    for t in range(T):
        p = taps[t] * LANES
        q, r, s = p + i * LANES, p + j * LANES, p + k * LANES
        v = vsplat(w[0])
        a0, a1, a2, a3 = (
            vfma(vload(x0, p), v, a0), vfma(vload(x1, p), v, a1), vfma(vload(x2, p), v, a2), vfma(vload(x3, p), v, a3)
        )  # fmt: skip
        v = vsplat(w[i])
        b0, b1, b2, b3 = (
            vfma(vload(x0, q), v, b0), vfma(vload(x1, q), v, b1), vfma(vload(x2, q), v, b2), vfma(vload(x3, q), v, b3)
        )  # fmt: skip
        v = vsplat(w[j])
        c0, c1, c2, c3 = (
            vfma(vload(x0, r), v, c0), vfma(vload(x1, r), v, c1), vfma(vload(x2, r), v, c2), vfma(vload(x3, r), v, c3)
        )  # fmt: skip
        v = vsplat(w[k])
        d0, d1, d2, d3 = (
            vfma(vload(x0, s), v, d0), vfma(vload(x1, s), v, d1), vfma(vload(x2, s), v, d2), vfma(vload(x3, s), v, d3)
        )  # fmt: skip
        w = w + C
    store_columns(y0, rest, has_prelu, slopes, a0, b0, c0, d0)
    store_columns(y1, rest, has_prelu, slopes, a1, b1, c1, d1)
    store_columns(y2, rest, has_prelu, slopes, a2, b2, c2, d2)
    store_columns(y3, rest, has_prelu, slopes, a3, b3, c3, d3)


@kernel
def interleaved_depthwise(row: InterleavedDepthwiseRow) -> None:
    """Compute four rows at a time, four channels of each."""
    x, weights, bias, y = row.x, row.W, row.bias, row.y
    M, rows_x, rows_y, T, taps, C = row.M, row.rows_x, row.rows_y, row.T, row.taps, row.C
    has_prelu, steps = begins_with_prelu(row.finish), row.finish.steps
    slopes = steps[0].operand if has_prelu else bias
    for m in range(0, M, 4):
        m1, m2, m3 = min(m + 1, M - 1), min(m + 2, M - 1), min(m + 3, M - 1)  # repeat the last row
        x0, x1, x2, x3 = rows_x[m] * LANES, rows_x[m1] * LANES, rows_x[m2] * LANES, rows_x[m3] * LANES
        y0, y1, y2, y3 = rows_y[m] * LANES, rows_y[m1] * LANES, rows_y[m2] * LANES, rows_y[m3] * LANES
        for c in range(0, C, 4):
            p, q = x + c * LANES, y + c * LANES
            sum_four_channels(
                p + x0, p + x1, p + x2, p + x3, taps, T, weights + c, C, bias + c,
                q + y0, q + y1, q + y2, q + y3, C - c,
                has_prelu, slopes + c,
            )  # fmt: skip
        finish_rows(row.finish, y, rows_y, m, min(m + 4, M), C, has_prelu)
