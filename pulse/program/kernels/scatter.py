"""Rows written to places that are computed while running."""

from pulse.jit.instruction import Instruction, Operand, reads, writes
from pulse.jit.raw import move_bytes
from pulse.jit.registry import kernel


class ScatterRows(Instruction):
    """``dst[indices[j]] = src[j]``, j < count, one after the other; an index out of range writes nothing.

    Rows are of ``size`` bytes, dst has ``rows`` of them. ``count_faults`` counts indices out of range.
    """

    dst: Operand = writes(None)
    indices: Operand = reads("i64", "count")
    src: Operand = reads(None)
    size: int
    count: int
    rows: int

    def touched_bytes(self) -> dict[str, int]:
        return {"dst": self.size * self.count, "src": self.size * self.count}


@kernel
def scatter_rows(row: ScatterRows) -> None:
    """Row by row."""
    dst, indices, src, size, rows = row.dst, row.indices, row.src, row.size, row.rows
    for j in range(row.count):
        at = indices[j]
        if 0 <= at < rows:
            move_bytes(dst + at * size, src + j * size, size)
