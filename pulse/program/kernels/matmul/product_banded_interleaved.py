"""Products with banded weights for sixteen streams with interleaved memories."""

from collections.abc import Iterator
from operator import add

from pulse.jit.language.simd import LANES
from pulse.jit.language.tuples import each
from pulse.jit.registry import kernel
from pulse.jit.rows.instruction import Operand, reads
from pulse.jit.rows.span import Reach, run
from pulse.program.kernels.matmul.epilogue import Epilogue
from pulse.program.kernels.matmul.product_banded import BandedFields
from pulse.program.kernels.matmul.product_interleaved import COLUMNS, finish_rows, multiply_rows, row_offset


class InterleavedProductBandedRow(BandedFields):
    """A ``ProductBandedRow`` of sixteen streams.

    W has the weights of ``Bands`` of four columns; the bias is padded to whole blocks of columns.
    """

    W: Operand = reads("f32", "inputs", COLUMNS)
    bias: Operand = reads("f32")
    epilogue: Epilogue

    def multiply_adds(self) -> int:
        return self.M * self.inputs * COLUMNS * LANES

    def reaches(self) -> Iterator[Reach]:
        yield from self.band_reaches(COLUMNS, LANES)
        yield self.bias, run(-(-self.N // COLUMNS) * COLUMNS)
        yield from self.epilogue.reaches_on(self.y, self.rows_y, self.M, self.N, LANES)


@kernel
def interleaved_product_banded(row: InterleavedProductBandedRow) -> None:
    """Compute two rows at a time, four columns of each; a single row is computed twice."""
    M, N, rows_x, rows_y, taps = row.M, row.N, row.rows_x, row.rows_y, row.taps
    starts, counts, bias, w = row.starts, row.counts, row.bias, row.W
    for block in range((N + COLUMNS - 1) // COLUMNS):
        n = block * COLUMNS
        x, y, count = row.x + starts[block] * LANES, row.y + n * LANES, counts[block]
        for m in range(0, M, 2):
            rows = m, min(m + 1, M - 1)
            source, target = (
                each(add, x, each(row_offset, rows_x, rows)),
                each(add, y, each(row_offset, rows_y, rows)),
            )
            multiply_rows(source, target, (taps, 1, count, w, bias + n, N - n, False, False, bias))
        w = w + count * COLUMNS
    finish_rows(row.epilogue, row.y, rows_y, 0, M, N, 0)
