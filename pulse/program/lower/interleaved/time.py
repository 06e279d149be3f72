"""Filled ends for sixteen streams with interleaved memories."""

from collections.abc import Iterable

from pulse.jit.language.simd import LANES
from pulse.jit.rows.instruction import Instruction
from pulse.program.kernels.time import FillEndsRow
from pulse.program.lower.interleaved.lowering import (
    LANE_WORD,
    InterleavedLowering,
    NotInterleavedError,
    advance,
    interleaves,
)
from pulse.program.table.loops import Loops


@interleaves(FillEndsRow)
def interleave_fill_ends(lowering: InterleavedLowering, row: FillEndsRow) -> Iterable[Instruction]:
    """Emit only the copy: in the middle of a stream no frames need filling."""
    if not lowering.is_clock(row.clock):
        raise NotInterleavedError("ends of every pulse")
    lowering.require_endless(row.end)
    lowering.require_past(row.shift + row.keep, row.P)
    overlap = row.overlap - row.keep
    ahead = row.offset + overlap - row.shift
    if row.in_place and ahead == 0:
        return ()
    if not 0 <= ahead <= overlap or row.size % LANE_WORD:
        raise NotInterleavedError("frames that do not exist yet")
    words = row.size // LANE_WORD
    sizes = (row.P + row.keep, row.run * words)
    strides = ((row.step_x * words, 1), (row.step_y * words, 1))
    source = advance(lowering.data(row.x), ahead * row.step_x * words * LANES)
    return lowering.copy(source, lowering.data(row.y), Loops(sizes, strides))
