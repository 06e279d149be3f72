"""The largest or smallest float32 of rows, in order."""

from typing import Any

from pulse.program.kernels.pointer import Bases, Row, f32, i64, number
from pulse.program.kernels.registry import device, kernel


@device
def goes_before(a: Any, b: Any, largest: int) -> bool:
    """Whether a is strictly before b in the order; NaN counts as larger than any number."""
    if largest != 0:
        return bool(a > b or (a != a and b == b))
    return bool(a < b or (b != b and a == a))


@kernel
def top_rows(row: Row, bases: Bases) -> None:
    """``values[rows_y[m] + j*step]``, j < K: the K first of ``x[rows_x[m] + r*stride]``, r < R, in order; m < M.

    Of equal ones the lower r goes first; indices (int64) get r, at the same places as values. Inserts into a
    sorted run of K, so it is meant for small K; K is at most R.
    Arguments: x, values, indices (operands), M, rows_x, rows_y (operands, int64), R, stride, K, step, largest
    (1: from the largest down, 0: from the smallest up).
    """
    x, values, indices, rows = f32(row, bases, 0), f32(row, bases, 1), i64(row, bases, 2), number(row, 3)
    rows_x, rows_y, size, stride = i64(row, bases, 4), i64(row, bases, 5), number(row, 6), number(row, 7)
    count, step, largest = number(row, 8), number(row, 9), number(row, 10)
    if count <= 0:
        return
    for m in range(rows):
        source, best, places = x + rows_x[m], values + rows_y[m], indices + rows_y[m]
        for r in range(size):
            v = source[r * stride]
            if r >= count and not goes_before(v, best[(count - 1) * step], largest):
                continue
            j = min(r, count - 1)
            while j > 0 and goes_before(v, best[(j - 1) * step], largest):
                best[j * step] = best[(j - 1) * step]
                places[j * step] = places[(j - 1) * step]
                j -= 1
            best[j * step] = v
            places[j * step] = r
