"""Reductions for sixteen streams with interleaved memories."""

from collections.abc import Iterator

from pulse.jit.rows.instruction import Instruction
from pulse.program.kernels.reduce import ReduceRow
from pulse.program.kernels.reduce_interleaved import InterleavedReduceRow
from pulse.program.lower.interleaved.lowering import InterleavedLowering, interleaves


@interleaves(ReduceRow)
def interleave_reduce(lowering: InterleavedLowering, row: ReduceRow) -> Iterator[Instruction]:
    """Reduce the rows of all streams at once."""
    yield lowering.row_like(row, InterleavedReduceRow, ("rows_x", "rows_y"))
