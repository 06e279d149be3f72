"""Gather elements by index."""

from collections.abc import Iterator

from pulse.jit.language.raw import as_i32, as_i64
from pulse.jit.registry import device, kernel
from pulse.jit.rows.instruction import Instruction, Operand, reads, writes
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, require_element_size, run
from pulse.program.kernels.copy import SHORT_RUN, copy_rows


@device
def copy_short_rows(src: Pointer, dst: Pointer, rows: int, count: int, a: int, b: int) -> None:
    """Set ``dst[i*b + j] = src[i*a + j]``, i < rows, j < a small count."""
    for i in range(rows):
        for j in range(count):
            dst[i * b + j] = src[i * a + j]


class GatherRow(Instruction):
    """``dst[o*dst_outer + j*dst_axis + r] = src[o*src_outer + indices[j]*src_axis + r]``.

    For o < outer, j < count, r < run; strides in elements of ``size`` bytes (1, 2, 4, 8), an index has ``index_size``
    bytes (4, 8). A negative index counts from the end of the axis, whose size is ``axis``. An index out of range is
    clamped; ``count_faults`` counts it.
    """

    src: Operand = reads(None)
    indices: Operand = reads(None)
    dst: Operand = writes(None)
    size: int
    index_size: int
    outer: int
    count: int
    run: int
    src_outer: int
    src_axis: int
    dst_outer: int
    dst_axis: int
    axis: int

    def touched_bytes(self) -> dict[str, int]:
        moved = self.size * self.outer * self.count * self.run
        return {"src": moved, "dst": moved}

    def reaches(self) -> Iterator[Reach]:
        require_element_size(self.size)
        row = run(self.outer, self.src_outer) + run(max(self.axis, 0), self.src_axis) + run(self.run)
        yield self.src, row * self.size
        yield self.indices, run(self.count) * (8 if self.index_size == 8 else 4)
        row = run(self.outer, self.dst_outer) + run(self.count, self.dst_axis) + run(self.run)
        yield self.dst, row * self.size


@kernel
def gather(row: GatherRow) -> None:
    """Copy index by index, each for all outer positions."""
    src, dst, size, axis = row.src, row.dst, row.size, row.axis
    wide, narrow, is_wide = as_i64(row.indices), as_i32(row.indices), row.index_size == 8
    outer, count, run = row.outer, row.count, row.run
    src_outer, src_axis, dst_outer, dst_axis = row.src_outer, row.src_axis, row.dst_outer, row.dst_axis
    if axis <= 0:
        return
    for j in range(count):
        index = wide[j] if is_wide else int(narrow[j])
        if index < 0:
            index += axis
        index = min(max(index, 0), axis - 1)
        source, target = src + index * src_axis * size, dst + j * dst_axis * size
        if run * size >= SHORT_RUN:
            copy_rows(source, target, size, outer, run, src_outer, dst_outer)
        elif size >= 4:
            words = size // 4
            a, b = src_outer * words, dst_outer * words
            copy_short_rows(as_i32(source), as_i32(target), outer, run * words, a, b)
        else:
            copy_short_rows(source, target, outer, run * size, src_outer * size, dst_outer * size)
