"""Reductions for sixteen streams with interleaved memories."""

from pulse.program.kernels.reduce import ReduceRow
from pulse.program.kernels.reduce_interleaved import InterleavedReduceRow
from pulse.program.lower.interleaved.lowering import interleaves_alike

interleaves_alike(ReduceRow, InterleavedReduceRow, "rows_x", "rows_y")
