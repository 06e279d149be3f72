"""The largest or smallest f32 elements of rows, in order."""

from collections.abc import Iterator

from pulse.jit.registry import device, kernel
from pulse.jit.rows.instruction import Instruction, Operand, reads, writes
from pulse.jit.rows.span import Reach, run, table


@device
def goes_before(a: float, b: float, largest: int) -> bool:
    """Return whether a is strictly before b in the order; NaN counts as larger than any number."""
    if largest != 0:
        return bool(a > b or (a != a and b == b))
    return bool(a < b or (b != b and a == a))


class TopKRow(Instruction):
    """``values[rows_y[m] + j*step]``, j < K: the K first of ``x[rows_x[m] + r*stride]``, r < R, in order; m < M.

    Of equal ones the lower r comes first; indices (int64) get r, at the same places as values. The kernel inserts into
    a sorted run of K elements, so K should be small; it is at most R. ``largest``: from the largest down, else from
    the smallest up.
    """

    x: Operand = reads("f32")
    values: Operand = writes("f32")
    indices: Operand = writes("i64")
    M: int
    rows_x: Operand = reads("i64", "M")
    rows_y: Operand = reads("i64", "M")
    R: int
    stride: int
    K: int
    step: int
    largest: bool

    def reaches(self) -> Iterator[Reach]:
        yield self.x, table(self.rows_x, self.M) + run(self.R, self.stride)
        best = table(self.rows_y, self.M) + run(max(self.K, 0), self.step)
        yield self.values, best
        yield self.indices, best


@kernel
def top_k(row: TopKRow) -> None:
    x, values, indices, rows, rows_x, rows_y = row.x, row.values, row.indices, row.M, row.rows_x, row.rows_y
    size, stride, count, step, largest = row.R, row.stride, row.K, row.step, row.largest
    if count <= 0:
        return
    for m in range(rows):
        source, best, best_indices = x + rows_x[m], values + rows_y[m], indices + rows_y[m]
        for r in range(size):
            v = source[r * stride]
            if r >= count and not goes_before(v, best[(count - 1) * step], largest):
                continue
            j = min(r, count - 1)
            while j > 0 and goes_before(v, best[(j - 1) * step], largest):
                best[j * step] = best[(j - 1) * step]
                best_indices[j * step] = best_indices[(j - 1) * step]
                j -= 1
            best[j * step] = v
            best_indices[j * step] = r
