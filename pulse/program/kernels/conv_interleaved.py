"""Depthwise windows of sixteen streams whose memories are interleaved; see ``matmul_interleaved``."""

from collections.abc import Iterator

from pulse.jit.language.simd import LANES, vfma, vload, vsplat, vstore
from pulse.jit.registry import kernel
from pulse.jit.rows.span import Reach
from pulse.program.kernels.conv_depthwise import DepthwiseRows
from pulse.program.kernels.matmul_finish import Finish
from pulse.program.kernels.matmul_interleaved import finish_rows, interleaved_reaches


class InterleavedDepthwise(DepthwiseRows):
    """y[rows_y[m] + c] = bias[c] + sum_t x[rows_x[m] + taps[t] + c] * W[t*C + c] of 16 streams, then ``finish``."""

    finish: Finish

    def multiply_adds(self) -> int:
        return LANES * super().multiply_adds()

    def reaches(self) -> Iterator[Reach]:
        yield from self.window_reaches(self.C, self.C, LANES)
        yield from interleaved_reaches(self.finish, self.y, self.rows_y, self.M, self.C)


@kernel
def interleaved_depthwise(row: InterleavedDepthwise) -> None:
    """Compute four rows at a time, channel by channel."""
    x, weights, bias, y = row.x, row.W, row.bias, row.y
    M, rows_x, rows_y, T, taps, C = row.M, row.rows_x, row.rows_y, row.T, row.taps, row.C
    for m in range(0, M, 4):
        m1, m2, m3 = min(m + 1, M - 1), min(m + 2, M - 1), min(m + 3, M - 1)  # repeat the last row
        x0, x1, x2, x3 = rows_x[m], rows_x[m1], rows_x[m2], rows_x[m3]
        y0, y1, y2, y3 = rows_y[m], rows_y[m1], rows_y[m2], rows_y[m3]
        for c in range(C):
            first, w = vsplat(bias[c]), weights + c
            sum0, sum1, sum2, sum3 = first, first, first, first
            for t in range(T):
                at, v = taps[t] + c, vsplat(w[0])
                sum0, sum1 = (
                    vfma(vload(x, (x0 + at) * LANES), v, sum0),
                    vfma(vload(x, (x1 + at) * LANES), v, sum1),
                )
                sum2, sum3 = (
                    vfma(vload(x, (x2 + at) * LANES), v, sum2),
                    vfma(vload(x, (x3 + at) * LANES), v, sum3),
                )
                w = w + C
            vstore(y, (y0 + c) * LANES, sum0)
            vstore(y, (y1 + c) * LANES, sum1)
            vstore(y, (y2 + c) * LANES, sum2)
            vstore(y, (y3 + c) * LANES, sum3)
    finish_rows(row.finish, y, rows_y, M, C)
