"""Layer normalisation for sixteen streams with interleaved memories."""

from collections.abc import Iterator

from pulse.jit.instruction import Instruction
from pulse.program.interleaving import Interleaving, interleaves
from pulse.program.kernels.norm import LayerNormRows
from pulse.program.kernels.norm_interleaved import InterleavedLayerNorm


@interleaves(LayerNormRows)
def interleave_layernorm(cx: Interleaving, row: LayerNormRows) -> Iterator[Instruction]:
    """Normalise the rows of all streams at once."""
    yield InterleavedLayerNorm(
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
