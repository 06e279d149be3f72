"""Elements picked by index."""

from pulse.program.kernels.copy import SHORT_RUN, copy_rows
from pulse.program.kernels.pointer import Bases, Pointer, Row, f32, i32, i64, number, u8
from pulse.program.kernels.raw import as_i32
from pulse.program.kernels.registry import device, kernel


@device
def copy_short_rows(src: Pointer, dst: Pointer, rows: int, count: int, a: int, b: int) -> None:
    """``dst[i*b + j] = src[i*a + j]``, i < rows, j < a small count."""
    for i in range(rows):
        for j in range(count):
            dst[i * b + j] = src[i * a + j]


@kernel
def gather(row: Row, bases: Bases) -> None:
    """``dst[o*dst_outer + j*dst_axis + r] = src[o*src_outer + indices[j]*src_axis + r]``.

    For o < outer, j < count, r < run.  An index below 0 counts from the end of the axis; one out of range is
    clamped, and counted by ``count_faults``.  Arguments: src, indices, dst (operands), bytes of an element
    (1, 2, 4, 8), bytes of an index (4, 8), outer, count, run, src_outer, src_axis, dst_outer, dst_axis (in
    elements), size of the axis.
    """
    src, dst, size = u8(row, bases, 0), u8(row, bases, 2), number(row, 3)
    wide, narrow, is_wide = i64(row, bases, 1), i32(row, bases, 1), number(row, 4) == 8
    outer, count, run = number(row, 5), number(row, 6), number(row, 7)
    src_outer, src_axis, dst_outer, dst_axis = (
        number(row, 8),
        number(row, 9),
        number(row, 10),
        number(row, 11),
    )
    axis = number(row, 12)
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


@kernel
def look_up_codes(row: Row, bases: Bases) -> None:
    """``y[i] = table[rint(x[i]) - first]``, i < count; the first entry below it and for NaN, the last one behind it.

    Arguments: x, table, y (operands, f32), count, first, size of the table.
    """
    x, table, y = f32(row, bases, 0), f32(row, bases, 1), f32(row, bases, 2)
    count, first, last = number(row, 3), number(row, 4), number(row, 5) - 1
    for i in range(count):
        place = x[i] - first
        if not place > 0.0:
            place = 0.0
        y[i] = table[int(min(place, float(last)) + 0.5)]
