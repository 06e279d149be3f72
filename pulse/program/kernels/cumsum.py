"""Running sums."""

from pulse.program.kernels.pointer import Bases, Pointer, Row, f32, f64, i32, i64, number
from pulse.program.kernels.registry import device, kernel


@device
def running_sums(
    x: Pointer, y: Pointer, total: Pointer, T: int, M: int, columns_x: Pointer, columns_y: Pointer,
    step_x: int, step_y: int, exclusive: int, reverse: int, start: int, stop: int,
) -> None:  # fmt: skip
    """The frames ``start .. stop - 1`` of M columns; zeros in the others."""
    for i in range(T):
        t = T - 1 - i if reverse else i
        source, target = x + t * step_x, y + t * step_y
        if start <= i < stop:
            for m in range(M):
                before = total[m]
                after = before + source[columns_x[m]]
                total[m] = after
                target[columns_y[m]] = before if exclusive else after
        else:
            for m in range(M):
                target[columns_y[m]] = 0


@kernel
def cumsum(row: Row, bases: Bases) -> None:
    """``y[t] = x[0] + … + x[t]`` of M columns, or without x[t] itself; frames outside of the stream are zeros.

    Frame j is at index j + offset of the concatenated pulses and there are ``end`` of them. The sums so far are
    wide: f64 for floats, int64 for integers; they begin with zeros where the clock is 0 and ``reload`` is set.
    Arguments: x, y, sums (operands), dtype code (0 f32, 1 f64, 2 i64, 3 i32), T, M, columns_x, columns_y
    (operands, int64: where columns begin), elements from frame to frame of x, of y, exclusive, reverse (0, 1),
    clock, end (operands, int64), offset, reload (0, 1).
    """
    dtype, T, M = number(row, 3), number(row, 4), number(row, 5)
    columns_x, columns_y, step_x, step_y = (
        i64(row, bases, 6),
        i64(row, bases, 7),
        number(row, 8),
        number(row, 9),
    )
    exclusive, reverse, pulses, end = (
        number(row, 10),
        number(row, 11),
        i64(row, bases, 12)[0],
        i64(row, bases, 13)[0],
    )
    first = pulses * T - number(row, 14)
    start = min(T, max(0, -first))
    stop = max(start, min(T, end - first))
    if number(row, 15) and pulses == 0:
        for m in range(M):
            i64(row, bases, 2)[m] = 0
    if dtype == 0:
        running_sums(
            f32(row, bases, 0), f32(row, bases, 1), f64(row, bases, 2), T, M, columns_x, columns_y,
            step_x, step_y, exclusive, reverse, start, stop,
        )  # fmt: skip
    elif dtype == 1:
        running_sums(
            f64(row, bases, 0), f64(row, bases, 1), f64(row, bases, 2), T, M, columns_x, columns_y,
            step_x, step_y, exclusive, reverse, start, stop,
        )  # fmt: skip
    elif dtype == 2:
        running_sums(
            i64(row, bases, 0), i64(row, bases, 1), i64(row, bases, 2), T, M, columns_x, columns_y,
            step_x, step_y, exclusive, reverse, start, stop,
        )  # fmt: skip
    else:
        running_sums(
            i32(row, bases, 0), i32(row, bases, 1), i64(row, bases, 2), T, M, columns_x, columns_y,
            step_x, step_y, exclusive, reverse, start, stop,
        )  # fmt: skip
