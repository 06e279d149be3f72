"""Reductions for sixteen streams with interleaved memories."""

from collections.abc import Iterator

from pulse.jit.rows.instruction import Instruction
from pulse.program.interleaving import InterleavedLowering, interleaves
from pulse.program.kernels.reduce import ReduceRow
from pulse.program.kernels.reduce_interleaved import InterleavedReduceRow


@interleaves(ReduceRow)
def interleave_reduce_rows(cx: InterleavedLowering, row: ReduceRow) -> Iterator[Instruction]:
    """Reduce the rows of all streams at once."""
    yield InterleavedReduceRow(
        x=cx.data(row.x),
        y=cx.data(row.y),
        M=row.M,
        rows_x=cx.share(row.rows_x),
        rows_y=cx.share(row.rows_y),
        R=row.R,
        stride=row.stride,
        kind=row.kind,
        scale=row.scale,
    )
