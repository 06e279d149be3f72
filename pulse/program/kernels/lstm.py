"""LSTM layers; how their rows begin is in ``recurrent``."""

from pulse.program.kernels.gates import GROUP, SUMS, finish_lstm, four_sums, four_sums_of_four
from pulse.program.kernels.pointer import Bases, Pointer, Row, bf16, f32, i8, i64, number, real
from pulse.program.kernels.recurrent import begun, take_rows
from pulse.program.kernels.registry import device, kernel
from pulse.program.kernels.scales import Scales, further
from pulse.program.kernels.simd import LANES, vload
from pulse.program.kernels.stack import stack_f32


@device
def lstm_row(
    x: Pointer, old: Pointer, w: Pointer, scales: Scales, c: Pointer, peepholes: Pointer, y: Pointer,
    H: int, couples: int,
    code0: int, alpha0: float, beta0: float, code1: int, alpha1: float, beta1: float,
    code2: int, alpha2: float, beta2: float, clip: float,
) -> None:  # fmt: skip
    """One frame of one sequence; c is replaced."""
    for n in range(0, H, LANES):
        i, o, f, fresh = four_sums(old, w + 4 * n * H, H, further(scales, 4 * n))
        finish_lstm(
            x, c, peepholes, y, n, H, couples, i, o, f, fresh,
            code0, alpha0, beta0, code1, alpha1, beta1, code2, alpha2, beta2, clip,
        )  # fmt: skip


@device
def lstm_rows(
    x: Pointer, old: Pointer, w: Pointer, scales: Scales, c: Pointer, peepholes: Pointer, y: Pointer,
    H: int, couples: int, rows: int, old_step: int, step: int, sums: Pointer,
    code0: int, alpha0: float, beta0: float, code1: int, alpha1: float, beta1: float,
    code2: int, alpha2: float, beta2: float, clip: float,
) -> None:  # fmt: skip
    """One frame of two to four sequences, which share one reading of the weights; c is replaced."""
    h2, h3 = old + min(2, rows - 1) * old_step, old + min(3, rows - 1) * old_step
    for n in range(0, H, LANES):
        four_sums_of_four(old, old + old_step, h2, h3, w + 4 * n * H, H, further(scales, 4 * n), sums)
        for j in range(rows):
            i, o = vload(sums, 64 * j), vload(sums, 64 * j + 16)
            f, fresh = vload(sums, 64 * j + 32), vload(sums, 64 * j + 48)
            finish_lstm(
                x + j * 4 * H, c + j * H, peepholes, y + j * step, n, H, couples, i, o, f, fresh,
                code0, alpha0, beta0, code1, alpha1, beta1, code2, alpha2, beta2, clip,
            )  # fmt: skip


@device
def run_lstm(row: Row, bases: Bases, w: Pointer, scales: Scales) -> None:
    """All frames of one stream."""
    x, y, h = f32(row, bases, 0), f32(row, bases, 2), f32(row, bases, 3)
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
                    x_t, old, w, scales, c + b * H, peepholes, new, H, couples, rows, old_step, step, sums,
                    code0, alpha0, beta0, code1, alpha1, beta1, code2, alpha2, beta2, clip,
                )  # fmt: skip
            else:
                lstm_row(
                    x_t, old, w, scales, c + b * H, peepholes, new, H, couples,
                    code0, alpha0, beta0, code1, alpha1, beta1, code2, alpha2, beta2, clip,
                )  # fmt: skip
    if start < stop:
        take_rows(h, y + (T - stop if reverse else stop - 1) * frame, B, H, step)


@kernel
def lstm(row: Row, bases: Bases) -> None:
    """``i o f = s(...); c = f * c + i * g(...); y = o * h(c)``, the gates i, o, f with peepholes to c.

    Arguments: HEAD, s, g, h, c (operand, f32 [B, H], dense), c0 (operand), elements from row to row of c0,
    peepholes (operand, f32 [3, H], zeros for none), input_forget (0, 1: f = 1 - i).
    """
    run_lstm(row, bases, f32(row, bases, 1), None)


@kernel
def lstm_bf16(row: Row, bases: Bases) -> None:
    """``lstm`` with weights of bf16."""
    run_lstm(row, bases, bf16(row, bases, 1), None)


@kernel
def lstm_int8(row: Row, bases: Bases) -> None:
    """``lstm`` with weights of int8. One more argument: scales (operand, f32, from ``pack_gates``)."""
    run_lstm(row, bases, i8(row, bases, 1), f32(row, bases, 31))
