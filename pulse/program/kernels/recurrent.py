"""Recurrent layers: one instruction runs all frames of a pulse, or whole sequences, of a batch.

The rows of ``rnn``, ``gru``, ``gru_reset`` and ``lstm`` begin alike (``HEAD`` arguments): projected (f32 [T, B, G*H],
dense: the frames times the input weights, plus all biases that are simply added), weights (``pack_gates``), y, h
(operands; h is [B, H], dense), h0 (operand), clock, end (operands, int64), offset, T, B, H, elements from row to row
of h0, elements of y from frame to frame and from row to row (rows are contiguous), reverse, reload (0, 1), clip
(real, 0: none).

Frame j is at index j + offset of the concatenated pulses and there are ``end`` of them: frames outside give zeros
and leave the state alone. Where the clock is 0 and ``reload`` is set, the state is taken from h0 first; so a
constant clock of 0 makes every run a sequence of its own. An activation is its code, alpha and beta (reals).
Each kernel has a form for weights of f32, of bf16, and of int8 with a scale for each unit of a gate.
"""

from pulse.program.kernels.gates import activated, one_sum
from pulse.program.kernels.pointer import Bases, Pointer, Row, bf16, f32, i8, i64, number, real
from pulse.program.kernels.registry import device, kernel
from pulse.program.kernels.scales import Scales, further
from pulse.program.kernels.simd import LANES, vload_part, vstore_part, vzero

HEAD = 17


@device
def copy_row(target: Pointer, source: Pointer, count: int) -> None:
    """``target[:count] = source[:count]``."""
    for n in range(0, count, LANES):
        vstore_part(target, n, count - n, vload_part(source, n, count - n))


@device
def take_rows(target: Pointer, source: Pointer, rows: int, count: int, step: int) -> None:
    """Rows of ``count`` elements, ``step`` apart in the source and dense in the target."""
    for b in range(rows):
        copy_row(target + b * count, source + b * step, count)


@device
def clear_frames(y: Pointer, first: int, last: int, rows: int, count: int, frame: int, step: int) -> None:
    """Zeros in the frames ``first .. last - 1``."""
    for t in range(first, last):
        for b in range(rows):
            for n in range(0, count, LANES):
                vstore_part(y + t * frame + b * step, n, count - n, vzero())


@device
def begun(row: Row, bases: Bases) -> tuple[int, int]:
    """Prepare h and the frames outside of the stream; the first frame inside of it and the one behind the last."""
    pulses, end = i64(row, bases, 5)[0], i64(row, bases, 6)[0]
    T, B, H = number(row, 8), number(row, 9), number(row, 10)
    first = pulses * T - number(row, 7)
    start = min(T, max(0, -first))
    stop = max(start, min(T, end - first))
    if number(row, 15) and pulses == 0:
        take_rows(f32(row, bases, 3), f32(row, bases, 4), B, H, number(row, 11))
    y, frame, step = f32(row, bases, 2), number(row, 12), number(row, 13)
    clear_frames(y, 0, start, B, H, frame, step)
    clear_frames(y, stop, T, B, H, frame, step)
    return start, stop


@device
def rnn_row(
    x: Pointer, old: Pointer, w: Pointer, scales: Scales, y: Pointer, H: int,
    code: int, alpha: float, beta: float, clip: float,
) -> None:  # fmt: skip
    """One frame of one sequence."""
    for n in range(0, H, LANES):
        rest = H - n
        v = vload_part(x, n, rest) + one_sum(old, w + n * H, H, further(scales, n))
        vstore_part(y, n, rest, activated(v, code, alpha, beta, clip))


@device
def run_rnn(row: Row, bases: Bases, w: Pointer, scales: Scales) -> None:
    """All frames of one stream."""
    x, y, h = f32(row, bases, 0), f32(row, bases, 2), f32(row, bases, 3)
    T, B, H, frame, step = number(row, 8), number(row, 9), number(row, 10), number(row, 12), number(row, 13)
    reverse, clip = number(row, 14), real(row, 16)
    code, alpha, beta = number(row, 17), real(row, 18), real(row, 19)
    start, stop = begun(row, bases)
    back = frame if reverse else -frame
    for i in range(start, stop):
        t = T - 1 - i if reverse else i
        for b in range(B):
            new = y + (t * frame + b * step)
            old = new + back if i > start else h + b * H
            rnn_row(x + (t * B + b) * H, old, w, scales, new, H, code, alpha, beta, clip)
    if start < stop:
        take_rows(h, y + (T - stop if reverse else stop - 1) * frame, B, H, step)


@kernel
def rnn(row: Row, bases: Bases) -> None:
    """``y[t] = f(projected[t] + y[t-1] @ R)``.  Arguments: HEAD, f."""
    run_rnn(row, bases, f32(row, bases, 1), None)


@kernel
def rnn_bf16(row: Row, bases: Bases) -> None:
    """``rnn`` with weights of bf16."""
    run_rnn(row, bases, bf16(row, bases, 1), None)


@kernel
def rnn_int8(row: Row, bases: Bases) -> None:
    """``rnn`` with weights of int8. One more argument: scales (operand, f32, from ``pack_gates``)."""
    run_rnn(row, bases, i8(row, bases, 1), f32(row, bases, 20))
