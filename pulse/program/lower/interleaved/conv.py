"""Depthwise windows for sixteen streams with interleaved memories."""

from collections.abc import Iterator

from pulse.jit.rows.instruction import Instruction
from pulse.program.kernels.conv_depthwise import DepthwiseRow
from pulse.program.kernels.conv_interleaved import InterleavedDepthwiseRow
from pulse.program.lower.interleaved.lowering import InterleavedLowering, interleaves


@interleaves(DepthwiseRow)
def interleave_depthwise(lowering: InterleavedLowering, row: DepthwiseRow) -> Iterator[Instruction]:
    """Sum vectors that hold one element of each stream."""
    weights, bias = lowering.share(row.W), lowering.share(row.bias)
    yield InterleavedDepthwiseRow(
        **lowering.window_fields(row),
        W=weights,
        bias=bias,
        C=row.C,
        epilogue=lowering.convert_epilogue(row.epilogue),
    )
