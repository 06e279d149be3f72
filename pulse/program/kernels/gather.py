"""Elements picked by index."""

from pulse.program.kernels.copy import copy_plane
from pulse.program.kernels.pointer import Bases, Pointer, Row, i32, i64, number, u8
from pulse.program.kernels.registry import device, kernel


@device
def gather_runs(
    src: Pointer,
    indices: Pointer,
    dst: Pointer,
    size: int,
    outer: int,
    count: int,
    run: int,
    src_outer: int,
    src_axis: int,
    dst_outer: int,
    dst_axis: int,
    axis: int,
) -> None:
    """``gather`` with a typed pointer to the indices."""
    for j in range(count):
        index = indices[j]
        if index < 0:
            index += axis
        index = min(max(index, 0), axis - 1)
        source, target = src + index * src_axis * size, dst + j * dst_axis * size
        copy_plane(source, target, size, outer, run, src_outer, 1, dst_outer, 1)


@kernel
def gather(row: Row, bases: Bases) -> None:
    """``dst[o*dst_outer + j*dst_axis + r] = src[o*src_outer + indices[j]*src_axis + r]``.

    For o < outer, j < count, r < run.  An index below 0 counts from the end of the axis; one out of range is
    clamped.  Arguments: src, indices, dst (operands), bytes of an element (1, 2, 4, 8), bytes of an index
    (4, 8), outer, count, run, src_outer, src_axis, dst_outer, dst_axis (in elements), size of the axis.
    """
    src, dst, size, index_size = u8(row, bases, 0), u8(row, bases, 2), number(row, 3), number(row, 4)
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
    if index_size == 8:
        gather_runs(
            src,
            i64(row, bases, 1),
            dst,
            size,
            outer,
            count,
            run,
            src_outer,
            src_axis,
            dst_outer,
            dst_axis,
            axis,
        )
    else:
        gather_runs(
            src,
            i32(row, bases, 1),
            dst,
            size,
            outer,
            count,
            run,
            src_outer,
            src_axis,
            dst_outer,
            dst_axis,
            axis,
        )
