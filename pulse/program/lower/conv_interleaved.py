"""Depthwise windows for sixteen streams with interleaved memories."""

from collections.abc import Iterator

from pulse.jit.rows.instruction import Instruction
from pulse.program.interleaving import InterleavedLowering, interleaves
from pulse.program.kernels.conv_depthwise import DepthwiseRow
from pulse.program.kernels.conv_interleaved import InterleavedDepthwiseRow


@interleaves(DepthwiseRow)
def interleave_depthwise(cx: InterleavedLowering, row: DepthwiseRow) -> Iterator[Instruction]:
    """Sum vectors that hold one element of each stream."""
    weights, bias = cx.share(row.W), cx.share(row.bias)
    yield InterleavedDepthwiseRow(
        **cx.windows(row), W=weights, bias=bias, C=row.C, finish=cx.finish(row.finish)
    )
