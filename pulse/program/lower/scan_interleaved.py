"""The states of scans for sixteen streams with interleaved memories."""

from collections.abc import Iterator
from typing import Any

from pulse.jit.language.simd import LANES
from pulse.jit.rows.instruction import Instruction
from pulse.program.interleaving import WORD, InterleavedLowering, NotInterleavedError, interleaves
from pulse.program.kernels.copy import MoveRow
from pulse.program.kernels.scan import KeepFrameRow
from pulse.program.table.memory import Region
from pulse.support.bounds import FAR_FRAMES


@interleaves(KeepFrameRow)
def interleave_keep_frame(cx: InterleavedLowering, row: KeepFrameRow) -> Iterator[Instruction]:
    """Emit a copy, since streams are in their middle; nothing if only the first frames of a stream are kept."""
    if row.bytes % WORD:
        raise NotInterleavedError("elements of less than a word")
    first, last = row.offset - row.i, _last(cx, row)
    if not cx.is_clock(row.clock):
        if not first <= 0 < last:
            return
    elif last < FAR_FRAMES:
        cx.require_past(last, row.P)
        return
    else:
        cx.require_past(first, row.P)
    yield MoveRow(dst=cx.data(row.state), src=cx.data(row.new), bytes=row.bytes * LANES)


def _last(cx: InterleavedLowering, row: KeepFrameRow) -> int:
    """Return the value of ``clock*P`` from which on the frame is after the wire's end; FAR_FRAMES if it never is."""
    end: Any = row.end
    if end.buffer.region is not Region.WEIGHTS:
        return FAR_FRAMES
    frames = int(cx.constant(end).ravel()[0])
    return FAR_FRAMES if frames >= FAR_FRAMES else frames + row.offset - row.i
