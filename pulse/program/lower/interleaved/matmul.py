"""Products for sixteen streams with interleaved memories."""

from collections.abc import Callable, Iterator

import numpy as np

from pulse.facts import Array
from pulse.jit.language.simd import LANES
from pulse.jit.rows.instruction import Instruction
from pulse.program.kernels.matmul.batches import MatmulRow
from pulse.program.kernels.matmul.batches_interleaved import InterleavedMatmulRow
from pulse.program.kernels.matmul.product import ProductRow
from pulse.program.kernels.matmul.product_banded import Bands, ProductBandedRow
from pulse.program.kernels.matmul.product_banded_interleaved import InterleavedProductBandedRow
from pulse.program.kernels.matmul.product_few import ProductFewRow
from pulse.program.kernels.matmul.product_interleaved import (
    COLUMNS,
    InterleavedProductRow,
    few_weights,
    interleaved_weights,
)
from pulse.program.lower.interleaved.lowering import (
    InterleavedLowering,
    NotInterleavedError,
    interleaves,
    interleaves_alike,
)


@interleaves(ProductRow)
def interleave_product(lowering: InterleavedLowering, row: ProductRow) -> Iterator[Instruction]:
    """Emit tiles of four columns."""
    yield _product_row(lowering, row, lambda packed: interleaved_weights(packed, row.T * row.K, row.N))


@interleaves(ProductFewRow)
def interleave_product_few(lowering: InterleavedLowering, row: ProductFewRow) -> Iterator[Instruction]:
    """Emit tiles of four columns, from weights in another order."""
    yield _product_row(lowering, row, lambda packed: few_weights(packed, row.width, row.N))


def _product_row(
    lowering: InterleavedLowering, row: ProductRow | ProductFewRow, unpack: Callable[[Array], Array]
) -> Instruction:
    """Return the interleaved product; ``unpack`` makes tiles of the packed weights."""
    if row.form != "f32":
        raise NotInterleavedError("weights that are not f32")
    return InterleavedProductRow(
        **lowering.window_fields(row),
        K=row.K,
        N=row.N,
        accumulate=row.accumulate,
        W=lowering.add_table(unpack(lowering.read_constant(row.W).ravel())),
        bias=lowering.add_table(_padded_bias(lowering, row)),
        epilogue=lowering.convert_epilogue(row.epilogue),
    )


def _padded_bias(lowering: InterleavedLowering, row: ProductRow | ProductFewRow | ProductBandedRow) -> Array:
    """Return the bias, padded to whole tiles of columns."""
    bias = lowering.read_constant(row.bias).ravel()[: row.N]
    return np.pad(bias, (0, -row.N % COLUMNS))


@interleaves(ProductBandedRow)
def interleave_product_banded(lowering: InterleavedLowering, row: ProductBandedRow) -> Iterator[Instruction]:
    """Emit the bands of tiles of four columns, which are narrower than those of sixteen."""
    starts, counts = (lowering.read_constant(table) for table in (row.starts, row.counts))
    weights = lowering.read_constant(row.W).reshape(row.inputs, LANES)
    bands = Bands.of(Bands(starts, counts, weights).matrix(row.K, row.N), COLUMNS)
    yield InterleavedProductBandedRow(
        **lowering.window_fields(row),
        K=row.K,
        N=row.N,
        inputs=len(bands.weights),
        starts=lowering.add_table(bands.starts),
        counts=lowering.add_table(bands.counts),
        W=lowering.add_table(bands.weights.ravel()),
        bias=lowering.add_table(_padded_bias(lowering, row)),
        epilogue=lowering.convert_epilogue(row.epilogue),
    )


interleaves_alike(MatmulRow, InterleavedMatmulRow, "batch_a", "batch_b", "batch_y")
