"""Functions of codes, computed by tables."""

from collections.abc import Iterator

from pulse.jit.registry import kernel
from pulse.jit.rows.instruction import Instruction, Operand, reads, writes
from pulse.jit.rows.span import Reach, require


class LookUpCodesRow(Instruction):
    """``y[i] = table[rint(x[i]) - first]``, i < count; the first entry below it and for NaN, the last one above it."""

    x: Operand = reads("f32", "count")
    table: Operand = reads("f32", "size")
    y: Operand = writes("f32", "count")
    count: int
    first: int
    size: int

    def reaches(self) -> Iterator[Reach]:
        require(self.size > 0 or self.count == 0, "an empty table")
        return iter(())


@kernel
def look_up_codes(row: LookUpCodesRow) -> None:
    x, table, y = row.x, row.table, row.y
    count, first, last = row.count, row.first, float(row.size - 1)
    for i in range(count):
        offset = x[i] - first
        if not offset > 0.0:
            offset = 0.0
        y[i] = table[int(min(offset, last) + 0.5)]
