"""Pools for sixteen streams with interleaved memories."""

from collections.abc import Iterator

from pulse.jit.language.simd import LANES
from pulse.jit.rows.instruction import Instruction
from pulse.program.kernels.pool import PoolRow
from pulse.program.lower.interleaved.lowering import InterleavedLowering, interleaves


@interleaves(PoolRow)
def interleave_pool(lowering: InterleavedLowering, row: PoolRow) -> Iterator[Instruction]:
    """Emit the same pool with rows that are sixteen times as long."""
    yield PoolRow(**lowering.window_fields(row, LANES), C=row.C * LANES, kind=row.kind, scale=row.scale)
