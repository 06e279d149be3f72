"""Softmax and layer normalisation for sixteen streams with interleaved memories."""

from collections.abc import Iterator

from pulse.jit.rows.instruction import Instruction
from pulse.program.interleaving import InterleavedLowering, interleaves
from pulse.program.kernels.norm import LayerNormRow, SoftmaxRow
from pulse.program.kernels.norm_interleaved import InterleavedLayerNormRow, InterleavedSoftmaxRow


@interleaves(LayerNormRow)
def interleave_layernorm(cx: InterleavedLowering, row: LayerNormRow) -> Iterator[Instruction]:
    """Normalise the rows of all streams at once."""
    yield InterleavedLayerNormRow(
        x=cx.data(row.x),
        scale=cx.share(row.scale),
        bias=cx.share(row.bias),
        y=cx.data(row.y),
        M=row.M,
        rows_x=cx.share(row.rows_x),
        rows_y=cx.share(row.rows_y),
        R=row.R,
        eps=row.eps,
    )


@interleaves(SoftmaxRow)
def interleave_softmax(cx: InterleavedLowering, row: SoftmaxRow) -> Iterator[Instruction]:
    """Compute the softmax of the rows of all streams at once."""
    yield InterleavedSoftmaxRow(
        x=cx.data(row.x),
        y=cx.data(row.y),
        M=row.M,
        rows_x=cx.share(row.rows_x),
        rows_y=cx.share(row.rows_y),
        R=row.R,
        log=row.log,
    )
