"""Rows written to places that are computed while running."""

from pulse.program.kernels.pointer import Bases, Row, i64, number, u8
from pulse.program.kernels.raw import move_bytes
from pulse.program.kernels.registry import kernel


@kernel
def scatter_rows(row: Row, bases: Bases) -> None:
    """``dst[indices[j]] = src[j]``, j < count, one after the other; an index out of range writes nothing.

    ``count_faults`` counts those.

    Arguments: dst, indices (i64), src (operands), bytes of a row, count, rows of dst.
    """
    dst, indices, src = u8(row, bases, 0), i64(row, bases, 1), u8(row, bases, 2)
    size, count, rows = number(row, 3), number(row, 4), number(row, 5)
    for j in range(count):
        at = indices[j]
        if 0 <= at < rows:
            move_bytes(dst + at * size, src + j * size, size)
