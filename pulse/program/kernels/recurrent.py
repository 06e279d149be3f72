"""Recurrent layers: one instruction runs all frames of a pulse, or whole sequences, of a batch.

The rows of the three kernels begin alike (``HEAD`` arguments): projected (f32 [T, B, G*H], dense: the frames times
the input weights, plus all biases that are simply added), weights (``pack_gates``), y, h (operands; h is [B, H],
dense), h0 (operand), clock, end (operands, int64), offset, T, B, H, elements from row to row of h0, elements of y
from frame to frame and from row to row (rows are contiguous), reverse, reload (0, 1), clip (real, 0: none).

Frame j is at index j + offset of the concatenated pulses and there are ``end`` of them: frames outside give zeros
and leave the state alone. Where the clock is 0 and ``reload`` is set, the state is taken from h0 first; so a
constant clock of 0 makes every run a sequence of its own. An activation is its code, alpha and beta (reals).
"""

from pulse.program.kernels.gates import (
    GROUP,
    SUMS,
    activated,
    finish_gru,
    finish_lstm,
    four_sums,
    four_sums_of_four,
    one_sum,
    three_sums,
    three_sums_of_four,
    two_sums,
)
from pulse.program.kernels.pointer import Bases, Pointer, Row, f32, i64, number, real
from pulse.program.kernels.registry import device, kernel
from pulse.program.kernels.simd import LANES, vfma, vload, vload_part, vstore_part, vzero
from pulse.program.kernels.stack import stack_f32

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
    x: Pointer, old: Pointer, w: Pointer, y: Pointer, H: int, code: int, alpha: float, beta: float, clip: float
) -> None:  # fmt: skip
    """One frame of one sequence."""
    for n in range(0, H, LANES):
        rest = H - n
        v = vload_part(x, n, rest) + one_sum(old, w + n * H, H)
        vstore_part(y, n, rest, activated(v, code, alpha, beta, clip))


@kernel
def rnn(row: Row, bases: Bases) -> None:
    """``y[t] = f(projected[t] + y[t-1] @ R)``.  Arguments: HEAD, f."""
    x, w, y, h = f32(row, bases, 0), f32(row, bases, 1), f32(row, bases, 2), f32(row, bases, 3)
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
            rnn_row(x + (t * B + b) * H, old, w, new, H, code, alpha, beta, clip)
    if start < stop:
        take_rows(h, y + (T - stop if reverse else stop - 1) * frame, B, H, step)


@device
def gru_row(
    x: Pointer, old: Pointer, w: Pointer, bias: Pointer, y: Pointer, H: int,
    code0: int, alpha0: float, beta0: float, code1: int, alpha1: float, beta1: float, clip: float,
) -> None:  # fmt: skip
    """One frame of one sequence, the reset gate behind the product."""
    for n in range(0, H, LANES):
        z, r, own = three_sums(old, w + 3 * n * H, H)
        finish_gru(
            x, old, bias, y, n, H, z, r, own, code0, alpha0, beta0, code1, alpha1, beta1, clip
        )  # fmt: skip


@device
def gru_rows(
    x: Pointer, old: Pointer, w: Pointer, bias: Pointer, y: Pointer, H: int, rows: int, old_step: int, step: int,
    sums: Pointer,
    code0: int, alpha0: float, beta0: float, code1: int, alpha1: float, beta1: float, clip: float,
) -> None:  # fmt: skip
    """One frame of two to four sequences, which share one reading of the weights."""
    h2, h3 = old + min(2, rows - 1) * old_step, old + min(3, rows - 1) * old_step
    for n in range(0, H, LANES):
        three_sums_of_four(old, old + old_step, h2, h3, w + 3 * n * H, H, sums)
        for j in range(rows):
            z, r, own = vload(sums, 64 * j), vload(sums, 64 * j + 16), vload(sums, 64 * j + 32)
            finish_gru(
                x + j * 3 * H, old + j * old_step, bias, y + j * step, n, H, z, r, own,
                code0, alpha0, beta0, code1, alpha1, beta1, clip,
            )  # fmt: skip


@kernel
def gru(row: Row, bases: Bases) -> None:
    """A GRU whose reset gate multiplies the recurrent product (linear_before_reset = 1).

    ``z r = f(...); c = g(projected + r * (h @ R + bias)); y = (1 - z) * c + z * h``.
    Arguments: HEAD, f, g, bias (operand, f32 [H]: the recurrent one of the last gate).
    """
    x, w, y, h = f32(row, bases, 0), f32(row, bases, 1), f32(row, bases, 2), f32(row, bases, 3)
    T, B, H, frame, step = number(row, 8), number(row, 9), number(row, 10), number(row, 12), number(row, 13)
    reverse, clip = number(row, 14), real(row, 16)
    code0, alpha0, beta0 = number(row, 17), real(row, 18), real(row, 19)
    code1, alpha1, beta1 = number(row, 20), real(row, 21), real(row, 22)
    bias, sums = f32(row, bases, 23), stack_f32(SUMS)
    start, stop = begun(row, bases)
    back = frame if reverse else -frame
    for i in range(start, stop):
        t = T - 1 - i if reverse else i
        for b in range(0, B, GROUP):
            new, x_t, rows = y + (t * frame + b * step), x + (t * B + b) * 3 * H, min(GROUP, B - b)
            old, old_step = (new + back, step) if i > start else (h + b * H, H)
            if rows > 1:
                gru_rows(
                    x_t, old, w, bias, new, H, rows, old_step, step, sums,
                    code0, alpha0, beta0, code1, alpha1, beta1, clip,
                )  # fmt: skip
            else:
                gru_row(x_t, old, w, bias, new, H, code0, alpha0, beta0, code1, alpha1, beta1, clip)
    if start < stop:
        take_rows(h, y + (T - stop if reverse else stop - 1) * frame, B, H, step)


@device
def gru_reset_row(
    x: Pointer, old: Pointer, w: Pointer, last: Pointer, y: Pointer, z: Pointer, q: Pointer, H: int,
    code0: int, alpha0: float, beta0: float, code1: int, alpha1: float, beta1: float, clip: float,
) -> None:  # fmt: skip
    """One frame of one sequence, the reset gate in front of the product; z and q are scratch [H]."""
    for n in range(0, H, LANES):
        rest = H - n
        update, r = two_sums(old, w + 2 * n * H, H)
        update = activated(vload_part(x, n, rest) + update, code0, alpha0, beta0, clip)
        r = activated(vload_part(x, H + n, rest) + r, code0, alpha0, beta0, clip)
        vstore_part(z, n, rest, update)
        vstore_part(q, n, rest, r * vload_part(old, n, rest))
    for n in range(0, H, LANES):
        rest = H - n
        own = vload_part(x, 2 * H + n, rest) + one_sum(q, last + n * H, H)
        fresh = activated(own, code1, alpha1, beta1, clip)
        kept = vload_part(z, n, rest)
        vstore_part(y, n, rest, vfma(kept, vload_part(old, n, rest) - fresh, fresh))


@kernel
def gru_reset(row: Row, bases: Bases) -> None:
    """A GRU whose reset gate multiplies the state (linear_before_reset = 0).

    ``z r = f(...); c = g(projected + (r * h) @ R); y = (1 - z) * c + z * h``. The weights are those of z and r.
    Arguments: HEAD, f, g, weights of the last gate (operand), scratch (operand, f32 [2, H]).
    """
    x, w, y, h = f32(row, bases, 0), f32(row, bases, 1), f32(row, bases, 2), f32(row, bases, 3)
    T, B, H, frame, step = number(row, 8), number(row, 9), number(row, 10), number(row, 12), number(row, 13)
    reverse, clip = number(row, 14), real(row, 16)
    code0, alpha0, beta0 = number(row, 17), real(row, 18), real(row, 19)
    code1, alpha1, beta1 = number(row, 20), real(row, 21), real(row, 22)
    last, scratch = f32(row, bases, 23), f32(row, bases, 24)
    start, stop = begun(row, bases)
    back = frame if reverse else -frame
    for i in range(start, stop):
        t = T - 1 - i if reverse else i
        for b in range(B):
            new = y + (t * frame + b * step)
            old = new + back if i > start else h + b * H
            gru_reset_row(
                x + (t * B + b) * 3 * H, old, w, last, new, scratch, scratch + H, H,
                code0, alpha0, beta0, code1, alpha1, beta1, clip,
            )  # fmt: skip
    if start < stop:
        take_rows(h, y + (T - stop if reverse else stop - 1) * frame, B, H, step)


@device
def lstm_row(
    x: Pointer, old: Pointer, w: Pointer, c: Pointer, peepholes: Pointer, y: Pointer, H: int, couples: int,
    code0: int, alpha0: float, beta0: float, code1: int, alpha1: float, beta1: float,
    code2: int, alpha2: float, beta2: float, clip: float,
) -> None:  # fmt: skip
    """One frame of one sequence; c is replaced."""
    for n in range(0, H, LANES):
        i, o, f, fresh = four_sums(old, w + 4 * n * H, H)
        finish_lstm(
            x, c, peepholes, y, n, H, couples, i, o, f, fresh,
            code0, alpha0, beta0, code1, alpha1, beta1, code2, alpha2, beta2, clip,
        )  # fmt: skip


@device
def lstm_rows(
    x: Pointer, old: Pointer, w: Pointer, c: Pointer, peepholes: Pointer, y: Pointer, H: int, couples: int,
    rows: int, old_step: int, step: int, sums: Pointer,
    code0: int, alpha0: float, beta0: float, code1: int, alpha1: float, beta1: float,
    code2: int, alpha2: float, beta2: float, clip: float,
) -> None:  # fmt: skip
    """One frame of two to four sequences, which share one reading of the weights; c is replaced."""
    h2, h3 = old + min(2, rows - 1) * old_step, old + min(3, rows - 1) * old_step
    for n in range(0, H, LANES):
        four_sums_of_four(old, old + old_step, h2, h3, w + 4 * n * H, H, sums)
        for j in range(rows):
            i, o = vload(sums, 64 * j), vload(sums, 64 * j + 16)
            f, fresh = vload(sums, 64 * j + 32), vload(sums, 64 * j + 48)
            finish_lstm(
                x + j * 4 * H, c + j * H, peepholes, y + j * step, n, H, couples, i, o, f, fresh,
                code0, alpha0, beta0, code1, alpha1, beta1, code2, alpha2, beta2, clip,
            )  # fmt: skip


@kernel
def lstm(row: Row, bases: Bases) -> None:
    """``i o f = s(...); c = f * c + i * g(...); y = o * h(c)``, the gates i, o, f with peepholes to c.

    Arguments: HEAD, s, g, h, c (operand, f32 [B, H], dense), c0 (operand), elements from row to row of c0,
    peepholes (operand, f32 [3, H], zeros for none), input_forget (0, 1: f = 1 - i).
    """
    x, w, y, h = f32(row, bases, 0), f32(row, bases, 1), f32(row, bases, 2), f32(row, bases, 3)
    T, B, H, frame, step = number(row, 8), number(row, 9), number(row, 10), number(row, 12), number(row, 13)
    reverse, clip = number(row, 14), real(row, 16)
    code0, alpha0, beta0 = number(row, 17), real(row, 18), real(row, 19)
    code1, alpha1, beta1 = number(row, 20), real(row, 21), real(row, 22)
    code2, alpha2, beta2 = number(row, 23), real(row, 24), real(row, 25)
    c, peepholes, couples = f32(row, bases, 26), f32(row, bases, 29), number(row, 30)
    if number(row, 15) and i64(row, bases, 5)[0] == 0:
        take_rows(c, f32(row, bases, 27), B, H, number(row, 28))
    start, stop = begun(row, bases)
    back, sums = frame if reverse else -frame, stack_f32(SUMS)
    for i in range(start, stop):
        t = T - 1 - i if reverse else i
        for b in range(0, B, GROUP):
            new, x_t, rows = y + (t * frame + b * step), x + (t * B + b) * 4 * H, min(GROUP, B - b)
            old, old_step = (new + back, step) if i > start else (h + b * H, H)
            if rows > 1:
                lstm_rows(
                    x_t, old, w, c + b * H, peepholes, new, H, couples, rows, old_step, step, sums,
                    code0, alpha0, beta0, code1, alpha1, beta1, code2, alpha2, beta2, clip,
                )  # fmt: skip
            else:
                lstm_row(
                    x_t, old, w, c + b * H, peepholes, new, H, couples,
                    code0, alpha0, beta0, code1, alpha1, beta1, code2, alpha2, beta2, clip,
                )  # fmt: skip
    if start < stop:
        take_rows(h, y + (T - stop if reverse else stop - 1) * frame, B, H, step)
