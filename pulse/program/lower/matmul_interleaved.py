"""Products for sixteen streams with interleaved memories."""

from collections.abc import Callable, Iterator

import numpy as np

from pulse.facts import Array
from pulse.jit.rows.instruction import Instruction
from pulse.program.interleaved_lowering import InterleavedLowering, NotInterleavedError, interleaves
from pulse.program.kernels.matmul.batches import MatmulRow
from pulse.program.kernels.matmul.batches_interleaved import InterleavedMatmulRow
from pulse.program.kernels.matmul.product import ProductRow
from pulse.program.kernels.matmul.product_few import ProductFewRow
from pulse.program.kernels.matmul.product_interleaved import (
    COLUMNS,
    InterleavedProductRow,
    few_weights,
    interleaved_weights,
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
    padded = np.zeros(-(-row.N // COLUMNS) * COLUMNS, np.float32)
    padded[: row.N] = lowering.read_constant(row.bias).ravel()[: row.N]
    return InterleavedProductRow(
        **lowering.window_fields(row),
        K=row.K,
        N=row.N,
        accumulate=row.accumulate,
        W=lowering.add_table(unpack(lowering.read_constant(row.W).ravel())),
        bias=lowering.add_table(padded),
        finish=lowering.convert_finish(row.finish),
    )


@interleaves(MatmulRow)
def interleave_matmul(lowering: InterleavedLowering, row: MatmulRow) -> Iterator[Instruction]:
    """Emit the batched product of two interleaved operands."""
    yield InterleavedMatmulRow(
        a=lowering.data(row.a),
        b=lowering.data(row.b),
        y=lowering.data(row.y),
        B=row.B,
        batch_a=lowering.share(row.batch_a),
        batch_b=lowering.share(row.batch_b),
        batch_y=lowering.share(row.batch_y),
        M=row.M,
        K=row.K,
        N=row.N,
        am=row.am,
        ak=row.ak,
        bk=row.bk,
        bn=row.bn,
        ym=row.ym,
        yn=row.yn,
        scale=row.scale,
    )
