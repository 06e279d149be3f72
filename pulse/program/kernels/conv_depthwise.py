"""Depthwise windows: every channel has its own weights."""

from collections.abc import Iterator

from pulse.jit.language.simd import LANES, vfma, vload_part
from pulse.jit.language.tuples import copies, each
from pulse.jit.registry import device, kernel
from pulse.jit.rows.cut import Cut
from pulse.jit.rows.instruction import Operand, reads
from pulse.jit.rows.span import Reach
from pulse.program.kernels.matmul.epilogue import Epilogue, epilogue
from pulse.program.kernels.matmul.product_blocks import store_columns
from pulse.program.kernels.matmul.windows import WindowFields
from pulse.program.kernels.row_tuples import FOUR, row_at


class DepthwiseFields(WindowFields):
    """y[rows_y[m] + c] = bias[c] + sum_t x[rows_x[m] + taps[t] + c] * W[t*C + c], f32."""

    W: Operand = reads("f32", "T", "C")
    bias: Operand = reads("f32", "C")
    C: int

    def multiply_adds(self) -> int:
        return self.M * self.T * self.C


class DepthwiseRow(DepthwiseFields):
    """y[rows_y[m] + c] = bias[c] + sum_t x[rows_x[m] + taps[t] + c] * W[t*C + c], f32; then the steps of ``epilogue``.

    Weights are read once per four rows.
    """

    epilogue: Epilogue

    def work(self) -> int:
        return 2 * self.multiply_adds()

    def cuts(self) -> Iterator[Cut]:
        yield Cut("M", 4, {"rows_x": 1, "rows_y": 1, **self.epilogue.row_moves()}, shared=self.T * self.C)

    def reaches(self) -> Iterator[Reach]:
        yield from self.window_reaches(self.C, self.C)
        yield from self.epilogue.reaches_on(self.y, self.rows_y, self.M, self.C)


@device
def multiply_channels(row: DepthwiseRow, c: int, rest: int) -> None:
    """Compute the 16 channels from c, of which ``rest`` exist: four rows at a time."""
    x, weights, y = row.x, row.W + c, row.y
    M, rows_x, rows_y, T, taps, C = row.M, row.rows_x, row.rows_y, row.T, row.taps, row.C
    first = vload_part(row.bias, c, rest)
    m = 0
    while m + 2 <= M:
        rows = m, m + 1, min(m + 2, M - 1), min(m + 3, M - 1)  # repeat the last row
        p, sums, w = each(row_at, x, rows_x, rows), copies(first, FOUR), weights
        for t in range(T):
            sums = each(vfma, each(vload_part, p, taps[t] + c, rest), vload_part(w, 0, rest), sums)
            w = w + C
        each(store_columns, each(row_at, y + c, rows_y, rows), rest, sums)
        m += 4
    if m < M:
        p0, sum0, w = x + rows_x[m], first, weights
        for t in range(T):
            sum0 = vfma(vload_part(p0, taps[t] + c, rest), vload_part(w, 0, rest), sum0)
            w = w + C
        store_columns(y + (rows_y[m] + c), rest, sum0)


@kernel
def depthwise(row: DepthwiseRow) -> None:
    """Compute 16 channels at a time; the loads of whole vectors have no masks."""
    C, c = row.C, 0
    while c + LANES <= C:
        multiply_channels(row, c, LANES)
        c += LANES
    if c < C:
        multiply_channels(row, c, C - c)
    epilogue(row.epilogue, row.y, row.rows_y, row.M, C)
