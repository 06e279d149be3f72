"""Write rows to indices that are computed at run time."""

from collections.abc import Iterator

from pulse.jit.language.raw import move_bytes
from pulse.jit.registry import kernel
from pulse.jit.rows.instruction import Instruction, Operand, reads, writes
from pulse.jit.rows.span import Reach, run


class ScatterRow(Instruction):
    """``dst[indices[j]] = src[j]``, j < count, one after the other; an index out of range writes nothing.

    Rows have ``size`` bytes, dst has ``rows`` rows. ``count_faults`` counts indices out of range.
    """

    dst: Operand = writes(None)
    indices: Operand = reads("i64", "count")
    src: Operand = reads(None)
    size: int
    count: int
    rows: int

    def touched_bytes(self) -> dict[str, int]:
        return {"dst": self.size * self.count, "src": self.size * self.count}

    def reaches(self) -> Iterator[Reach]:
        row = run(self.size)
        yield self.dst, run(self.rows, self.size) + row
        yield self.src, run(self.count, self.size) + row


@kernel
def scatter(row: ScatterRow) -> None:
    dst, indices, src, size, rows = row.dst, row.indices, row.src, row.size, row.rows
    for j in range(row.count):
        index = indices[j]
        if 0 <= index < rows:
            move_bytes(dst + index * size, src + j * size, size)
