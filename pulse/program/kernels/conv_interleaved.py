"""Depthwise windows of sixteen streams whose memories are interleaved; see ``matmul_interleaved``."""

from collections.abc import Iterator

from pulse.jit.language.simd import LANES, vfma, vload, vsplat, vstore
from pulse.jit.registry import device, kernel
from pulse.jit.rows.pointer import Pointer
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


@device
def two_channels(
    x0: Pointer, x1: Pointer, x2: Pointer, x3: Pointer, taps: Pointer, T: int, w: Pointer, C: int, bias: Pointer,
    y0: Pointer, y1: Pointer, y2: Pointer, y3: Pointer, other: int,
) -> None:  # fmt: skip
    """Sum the windows of four rows for the first channel and for channel ``other``: eight sums that do not wait."""
    first, second = vsplat(bias[0]), vsplat(bias[other])
    a0, a1, a2, a3 = first, first, first, first
    b0, b1, b2, b3 = second, second, second, second
    for t in range(T):
        near = taps[t] * LANES
        far = near + other * LANES
        v, u = vsplat(w[0]), vsplat(w[other])
        a0, b0 = vfma(vload(x0, near), v, a0), vfma(vload(x0, far), u, b0)
        a1, b1 = vfma(vload(x1, near), v, a1), vfma(vload(x1, far), u, b1)
        a2, b2 = vfma(vload(x2, near), v, a2), vfma(vload(x2, far), u, b2)
        a3, b3 = vfma(vload(x3, near), v, a3), vfma(vload(x3, far), u, b3)
        w = w + C
    at = other * LANES
    vstore(y0, 0, a0)
    vstore(y0, at, b0)
    vstore(y1, 0, a1)
    vstore(y1, at, b1)
    vstore(y2, 0, a2)
    vstore(y2, at, b2)
    vstore(y3, 0, a3)
    vstore(y3, at, b3)


@kernel
def interleaved_depthwise(row: InterleavedDepthwise) -> None:
    """Compute four rows at a time, two channels of each."""
    x, weights, bias, y = row.x, row.W, row.bias, row.y
    M, rows_x, rows_y, T, taps, C = row.M, row.rows_x, row.rows_y, row.T, row.taps, row.C
    for m in range(0, M, 4):
        m1, m2, m3 = min(m + 1, M - 1), min(m + 2, M - 1), min(m + 3, M - 1)  # repeat the last row
        x0, x1, x2, x3 = rows_x[m] * LANES, rows_x[m1] * LANES, rows_x[m2] * LANES, rows_x[m3] * LANES
        y0, y1, y2, y3 = rows_y[m] * LANES, rows_y[m1] * LANES, rows_y[m2] * LANES, rows_y[m3] * LANES
        for c in range(0, C, 2):
            p, q = x + c * LANES, y + c * LANES
            two_channels(
                p + x0, p + x1, p + x2, p + x3, taps, T, weights + c, C, bias + c,
                q + y0, q + y1, q + y2, q + y3, min(1, C - 1 - c),
            )  # fmt: skip
    finish_rows(row.finish, y, rows_y, 0, M, C)
