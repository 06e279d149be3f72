"""GRU layers; how their rows begin is in ``recurrent``."""

from pulse.program.kernels.gates import (
    GROUP,
    SUMS,
    activated,
    finish_gru,
    one_sum,
    three_sums,
    three_sums_of_four,
    two_sums,
)
from pulse.program.kernels.pointer import Bases, Pointer, Row, bf16, f32, i8, number, real
from pulse.program.kernels.recurrent import begun, take_rows
from pulse.program.kernels.registry import device, kernel
from pulse.program.kernels.scales import Scales, further
from pulse.program.kernels.simd import LANES, vfma, vload, vload_part, vstore_part
from pulse.program.kernels.stack import stack_f32


@device
def gru_row(
    x: Pointer, old: Pointer, w: Pointer, scales: Scales, bias: Pointer, y: Pointer, H: int,
    code0: int, alpha0: float, beta0: float, code1: int, alpha1: float, beta1: float, clip: float,
) -> None:  # fmt: skip
    """One frame of one sequence, the reset gate behind the product."""
    for n in range(0, H, LANES):
        z, r, own = three_sums(old, w + 3 * n * H, H, further(scales, 3 * n))
        finish_gru(
            x, old, bias, y, n, H, z, r, own, code0, alpha0, beta0, code1, alpha1, beta1, clip
        )  # fmt: skip


@device
def gru_rows(
    x: Pointer, old: Pointer, w: Pointer, scales: Scales, bias: Pointer, y: Pointer, H: int,
    rows: int, old_step: int, step: int, sums: Pointer,
    code0: int, alpha0: float, beta0: float, code1: int, alpha1: float, beta1: float, clip: float,
) -> None:  # fmt: skip
    """One frame of two to four sequences, which share one reading of the weights."""
    h2, h3 = old + min(2, rows - 1) * old_step, old + min(3, rows - 1) * old_step
    for n in range(0, H, LANES):
        three_sums_of_four(old, old + old_step, h2, h3, w + 3 * n * H, H, further(scales, 3 * n), sums)
        for j in range(rows):
            z, r, own = vload(sums, 64 * j), vload(sums, 64 * j + 16), vload(sums, 64 * j + 32)
            finish_gru(
                x + j * 3 * H, old + j * old_step, bias, y + j * step, n, H, z, r, own,
                code0, alpha0, beta0, code1, alpha1, beta1, clip,
            )  # fmt: skip


@device
def run_gru(row: Row, bases: Bases, w: Pointer, scales: Scales) -> None:
    """All frames of one stream."""
    x, y, h = f32(row, bases, 0), f32(row, bases, 2), f32(row, bases, 3)
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
                    x_t, old, w, scales, bias, new, H, rows, old_step, step, sums,
                    code0, alpha0, beta0, code1, alpha1, beta1, clip,
                )  # fmt: skip
            else:
                gru_row(
                    x_t, old, w, scales, bias, new, H, code0, alpha0, beta0, code1, alpha1, beta1, clip
                )  # fmt: skip
    if start < stop:
        take_rows(h, y + (T - stop if reverse else stop - 1) * frame, B, H, step)


@kernel
def gru(row: Row, bases: Bases) -> None:
    """A GRU whose reset gate multiplies the recurrent product (linear_before_reset = 1).

    ``z r = f(...); c = g(projected + r * (h @ R + bias)); y = (1 - z) * c + z * h``.
    Arguments: HEAD, f, g, bias (operand, f32 [H]: the recurrent one of the last gate).
    """
    run_gru(row, bases, f32(row, bases, 1), None)


@kernel
def gru_bf16(row: Row, bases: Bases) -> None:
    """``gru`` with weights of bf16."""
    run_gru(row, bases, bf16(row, bases, 1), None)


@kernel
def gru_int8(row: Row, bases: Bases) -> None:
    """``gru`` with weights of int8. One more argument: scales (operand, f32, from ``pack_gates``)."""
    run_gru(row, bases, i8(row, bases, 1), f32(row, bases, 24))


@device
def gru_reset_row(
    x: Pointer, old: Pointer, w: Pointer, scales: Scales, last: Pointer, last_scales: Scales,
    y: Pointer, z: Pointer, q: Pointer, H: int,
    code0: int, alpha0: float, beta0: float, code1: int, alpha1: float, beta1: float, clip: float,
) -> None:  # fmt: skip
    """One frame of one sequence, the reset gate in front of the product; z and q are scratch [H]."""
    for n in range(0, H, LANES):
        rest = H - n
        update, r = two_sums(old, w + 2 * n * H, H, further(scales, 2 * n))
        update = activated(vload_part(x, n, rest) + update, code0, alpha0, beta0, clip)
        r = activated(vload_part(x, H + n, rest) + r, code0, alpha0, beta0, clip)
        vstore_part(z, n, rest, update)
        vstore_part(q, n, rest, r * vload_part(old, n, rest))
    for n in range(0, H, LANES):
        rest = H - n
        own = vload_part(x, 2 * H + n, rest) + one_sum(q, last + n * H, H, further(last_scales, n))
        fresh = activated(own, code1, alpha1, beta1, clip)
        kept = vload_part(z, n, rest)
        vstore_part(y, n, rest, vfma(kept, vload_part(old, n, rest) - fresh, fresh))


@device
def run_gru_reset(
    row: Row, bases: Bases, w: Pointer, scales: Scales, last: Pointer, last_scales: Scales
) -> None:
    """All frames of one stream; ``last`` are the weights of the last gate."""
    x, y, h = f32(row, bases, 0), f32(row, bases, 2), f32(row, bases, 3)
    T, B, H, frame, step = number(row, 8), number(row, 9), number(row, 10), number(row, 12), number(row, 13)
    reverse, clip = number(row, 14), real(row, 16)
    code0, alpha0, beta0 = number(row, 17), real(row, 18), real(row, 19)
    code1, alpha1, beta1 = number(row, 20), real(row, 21), real(row, 22)
    scratch = f32(row, bases, 24)
    start, stop = begun(row, bases)
    back = frame if reverse else -frame
    for i in range(start, stop):
        t = T - 1 - i if reverse else i
        for b in range(B):
            new = y + (t * frame + b * step)
            old = new + back if i > start else h + b * H
            gru_reset_row(
                x + (t * B + b) * 3 * H, old, w, scales, last, last_scales, new, scratch, scratch + H, H,
                code0, alpha0, beta0, code1, alpha1, beta1, clip,
            )  # fmt: skip
    if start < stop:
        take_rows(h, y + (T - stop if reverse else stop - 1) * frame, B, H, step)


@kernel
def gru_reset(row: Row, bases: Bases) -> None:
    """A GRU whose reset gate multiplies the state (linear_before_reset = 0).

    ``z r = f(...); c = g(projected + (r * h) @ R); y = (1 - z) * c + z * h``. The weights are those of z and r.
    Arguments: HEAD, f, g, weights of the last gate (operand), scratch (operand, f32 [2, H]).
    """
    run_gru_reset(row, bases, f32(row, bases, 1), None, f32(row, bases, 23), None)


@kernel
def gru_reset_bf16(row: Row, bases: Bases) -> None:
    """``gru_reset`` with weights of bf16."""
    run_gru_reset(row, bases, bf16(row, bases, 1), None, bf16(row, bases, 23), None)


@kernel
def gru_reset_int8(row: Row, bases: Bases) -> None:
    """``gru_reset`` with weights of int8.

    Two more arguments: scales, scales of the last gate (operands, f32, from ``pack_gates``).
    """
    scales, last_scales = f32(row, bases, 25), f32(row, bases, 26)
    run_gru_reset(row, bases, i8(row, bases, 1), scales, i8(row, bases, 23), last_scales)
