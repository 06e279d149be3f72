"""Reductions for sixteen streams with interleaved memories."""

from collections.abc import Iterator

from pulse.jit.rows.instruction import Instruction
from pulse.program.interleaved_lowering import InterleavedLowering, interleaves
from pulse.program.kernels.reduce import ReduceRow
from pulse.program.kernels.reduce_interleaved import InterleavedReduceRow


@interleaves(ReduceRow)
def interleave_reduce(lowering: InterleavedLowering, row: ReduceRow) -> Iterator[Instruction]:
    """Reduce the rows of all streams at once."""
    yield InterleavedReduceRow(
        x=lowering.data(row.x),
        y=lowering.data(row.y),
        M=row.M,
        rows_x=lowering.share(row.rows_x),
        rows_y=lowering.share(row.rows_y),
        R=row.R,
        stride=row.stride,
        kind=row.kind,
        scale=row.scale,
    )
