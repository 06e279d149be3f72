"""The states of scans for sixteen streams with interleaved memories."""

from collections.abc import Iterator
from typing import Any

from pulse.jit.rows.instruction import Instruction
from pulse.program.kernels.scan import KeepFrameRow
from pulse.program.lower.interleaved.copy import move_words
from pulse.program.lower.interleaved.lowering import InterleavedLowering, count_words, interleaves
from pulse.program.table.memory import Region
from pulse.support.bounds import FAR_FRAMES


@interleaves(KeepFrameRow)
def interleave_keep_frame(lowering: InterleavedLowering, row: KeepFrameRow) -> Iterator[Instruction]:
    """Emit a copy, since streams are in their middle; nothing if only the first frames of a stream are kept."""
    words = count_words(row.bytes)
    first, end = row.offset - row.i, _clock_at_end(lowering, row)
    if not lowering.is_clock(row.clock):
        if not first <= 0 < end:
            return
    elif end < FAR_FRAMES:
        lowering.require_past(end, row.P)
        return
    else:
        lowering.require_past(first, row.P)
    yield move_words(lowering, row.new, row.state, words)


def _clock_at_end(lowering: InterleavedLowering, row: KeepFrameRow) -> int:
    """Return the value of ``clock*P`` from which on the frame is after the wire's end; FAR_FRAMES if it never is."""
    end: Any = row.end
    if end.buffer.region is not Region.WEIGHTS:
        return FAR_FRAMES
    frames = int(lowering.read_constant(end).ravel()[0])
    return FAR_FRAMES if frames >= FAR_FRAMES else frames + row.offset - row.i
