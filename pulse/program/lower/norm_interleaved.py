"""Softmax and layer normalisation for sixteen streams with interleaved memories."""

from collections.abc import Iterator

from pulse.jit.rows.instruction import Instruction
from pulse.program.interleaved_lowering import InterleavedLowering, interleaves
from pulse.program.kernels.norm import LayerNormRow, SoftmaxRow
from pulse.program.kernels.norm_interleaved import InterleavedLayerNormRow, InterleavedSoftmaxRow


@interleaves(LayerNormRow)
def interleave_layer_norm(lowering: InterleavedLowering, row: LayerNormRow) -> Iterator[Instruction]:
    """Normalise the rows of all streams at once."""
    yield InterleavedLayerNormRow(
        x=lowering.data(row.x),
        scale=lowering.share(row.scale),
        bias=lowering.share(row.bias),
        y=lowering.data(row.y),
        M=row.M,
        rows_x=lowering.share(row.rows_x),
        rows_y=lowering.share(row.rows_y),
        R=row.R,
        eps=row.eps,
    )


@interleaves(SoftmaxRow)
def interleave_softmax(lowering: InterleavedLowering, row: SoftmaxRow) -> Iterator[Instruction]:
    """Compute the softmax of the rows of all streams at once."""
    yield InterleavedSoftmaxRow(
        x=lowering.data(row.x),
        y=lowering.data(row.y),
        M=row.M,
        rows_x=lowering.share(row.rows_x),
        rows_y=lowering.share(row.rows_y),
        R=row.R,
        log=row.log,
    )
