"""Softmax and layer normalisation for sixteen streams with interleaved memories."""

from collections.abc import Iterator

from pulse.jit.rows.instruction import Instruction
from pulse.program.kernels.norm import LayerNormRow, SoftmaxRow
from pulse.program.kernels.norm_interleaved import InterleavedLayerNormRow, InterleavedSoftmaxRow
from pulse.program.lower.interleaved.lowering import InterleavedLowering, interleaves


@interleaves(LayerNormRow)
def interleave_layer_norm(lowering: InterleavedLowering, row: LayerNormRow) -> Iterator[Instruction]:
    """Normalise the rows of all streams at once."""
    yield lowering.row_like(row, InterleavedLayerNormRow, ("scale", "bias", "rows_x", "rows_y"))


@interleaves(SoftmaxRow)
def interleave_softmax(lowering: InterleavedLowering, row: SoftmaxRow) -> Iterator[Instruction]:
    """Compute the softmax of the rows of all streams at once."""
    yield lowering.row_like(row, InterleavedSoftmaxRow, ("rows_x", "rows_y"))
