"""Recurrent layers: one instruction runs all frames of a pulse, or whole sequences, of a batch.

The rows of the three kernels begin alike (``HEAD`` arguments): projected (f32 [T, B, G*H], dense: the frames times
the input weights, plus all biases that are simply added), weights (``pack_gates``), y, h (operands; h is [B, H],
dense), h0 (operand), clock, end (operands, int64), offset, T, B, H, elements from row to row of h0, elements of y
from frame to frame and from row to row (rows are contiguous), reverse, reload (0, 1), clip (real, 0: none).

Frame j is at index j + offset of the concatenated pulses and there are ``end`` of them: frames outside give zeros
and leave the state alone. Where the clock is 0 and ``reload`` is set, the state is taken from h0 first; so a
constant clock of 0 makes every run a sequence of its own. An activation is its code, alpha and beta (reals).
"""

import numpy as np
from numpy.typing import NDArray

from pulse.program.kernels.pointer import Bases, Pointer, Row, f32, i64, number, real
from pulse.program.kernels.registry import device, kernel
from pulse.program.kernels.simd import (
    LANES,
    Lanes,
    vfma,
    vload,
    vload_part,
    vlt,
    vmax,
    vmin,
    vselect,
    vsplat,
    vstore_part,
    vzero,
)
from pulse.program.kernels.vmath import vsigmoid, vtanh

HEAD = 17
ACTIVATIONS = {"sigmoid": 0, "tanh": 1, "relu": 2, "affine": 3, "hardsigmoid": 4, "leakyrelu": 5}
SIGMOID, TANH, RELU, AFFINE, HARD_SIGMOID = range(5)


def pack_gates(r: NDArray[np.float32], hidden: int) -> NDArray[np.float32]:
    """Recurrent weights [G*H, K] as the kernels read them: for 16 units at a time, [K, G, 16], padded by zeros."""
    gates, depth = r.shape[0] // hidden, r.shape[1]
    blocks = -(-hidden // LANES)
    padded = np.zeros((gates, blocks * LANES, depth), np.float32)
    padded[:, :hidden] = r.reshape(gates, hidden, depth)
    packed = padded.reshape(gates, blocks, LANES, depth).transpose(1, 3, 0, 2)
    return np.ascontiguousarray(packed).ravel()


@device
def activated(v: Lanes, code: int, alpha: float, beta: float, clip: float) -> Lanes:
    """An activation of its code; its input is limited to -clip … clip first."""
    if clip > 0:
        v = vmax(vmin(v, clip), -clip)
    if code == SIGMOID:
        return vsigmoid(v)
    if code == TANH:
        return vtanh(v)
    if code == RELU:
        return vmax(v, 0.0)
    if code == AFFINE:
        return vfma(v, alpha, vsplat(beta))
    if code == HARD_SIGMOID:
        return vmin(vmax(vfma(v, alpha, vsplat(beta)), 0.0), 1.0)
    return vselect(vlt(v, 0.0), v * alpha, v)


@device
def one_sum(h: Pointer, w: Pointer, K: int) -> Lanes:
    """``sum_k h[k] * w[k]``, w [K, 16]."""
    a, b, c, d = vzero(), vzero(), vzero(), vzero()
    k = 0
    while k + 4 <= K:
        a, b = vfma(h[k], vload(w, 0), a), vfma(h[k + 1], vload(w, 16), b)
        c, d = vfma(h[k + 2], vload(w, 32), c), vfma(h[k + 3], vload(w, 48), d)
        w = w + 4 * LANES
        k += 4
    while k < K:
        a = vfma(h[k], vload(w, 0), a)
        w = w + LANES
        k += 1
    return (a + b) + (c + d)


@device
def two_sums(h: Pointer, w: Pointer, K: int) -> tuple[Lanes, Lanes]:
    """``sum_k h[k] * w[k]`` of two gates, w [K, 2, 16]."""
    a0, b0, a1, b1 = vzero(), vzero(), vzero(), vzero()
    k = 0
    while k + 2 <= K:
        p, q = vsplat(h[k]), vsplat(h[k + 1])
        a0, b0 = vfma(p, vload(w, 0), a0), vfma(p, vload(w, 16), b0)
        a1, b1 = vfma(q, vload(w, 32), a1), vfma(q, vload(w, 48), b1)
        w = w + 4 * LANES
        k += 2
    if k < K:
        p = vsplat(h[k])
        a0, b0 = vfma(p, vload(w, 0), a0), vfma(p, vload(w, 16), b0)
    return a0 + a1, b0 + b1


@device
def three_sums(h: Pointer, w: Pointer, K: int) -> tuple[Lanes, Lanes, Lanes]:
    """``sum_k h[k] * w[k]`` of three gates, w [K, 3, 16]."""
    a0, b0, c0, a1, b1, c1 = vzero(), vzero(), vzero(), vzero(), vzero(), vzero()
    k = 0
    while k + 2 <= K:
        p, q = vsplat(h[k]), vsplat(h[k + 1])
        a0, b0, c0 = vfma(p, vload(w, 0), a0), vfma(p, vload(w, 16), b0), vfma(p, vload(w, 32), c0)
        a1, b1, c1 = vfma(q, vload(w, 48), a1), vfma(q, vload(w, 64), b1), vfma(q, vload(w, 80), c1)
        w = w + 6 * LANES
        k += 2
    if k < K:
        p = vsplat(h[k])
        a0, b0, c0 = vfma(p, vload(w, 0), a0), vfma(p, vload(w, 16), b0), vfma(p, vload(w, 32), c0)
    return a0 + a1, b0 + b1, c0 + c1


@device
def four_sums(h: Pointer, w: Pointer, K: int) -> tuple[Lanes, Lanes, Lanes, Lanes]:
    """``sum_k h[k] * w[k]`` of four gates, w [K, 4, 16]."""
    a0, b0, c0, d0, a1, b1, c1, d1 = vzero(), vzero(), vzero(), vzero(), vzero(), vzero(), vzero(), vzero()
    k = 0
    while k + 2 <= K:
        p, q = vsplat(h[k]), vsplat(h[k + 1])
        a0, b0 = vfma(p, vload(w, 0), a0), vfma(p, vload(w, 16), b0)
        c0, d0 = vfma(p, vload(w, 32), c0), vfma(p, vload(w, 48), d0)
        a1, b1 = vfma(q, vload(w, 64), a1), vfma(q, vload(w, 80), b1)
        c1, d1 = vfma(q, vload(w, 96), c1), vfma(q, vload(w, 112), d1)
        w = w + 8 * LANES
        k += 2
    if k < K:
        p = vsplat(h[k])
        a0, b0 = vfma(p, vload(w, 0), a0), vfma(p, vload(w, 16), b0)
        c0, d0 = vfma(p, vload(w, 32), c0), vfma(p, vload(w, 48), d0)
    return a0 + a1, b0 + b1, c0 + c1, d0 + d1


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
def finish_gru(
    x: Pointer, old: Pointer, bias: Pointer, y: Pointer, n: int, H: int, z: Lanes, r: Lanes, own: Lanes,
    code0: int, alpha0: float, beta0: float, code1: int, alpha1: float, beta1: float, clip: float,
) -> None:  # fmt: skip
    """The units n … n + 15 from the recurrent sums of the three gates."""
    rest = H - n
    r = activated(vload_part(x, H + n, rest) + r, code0, alpha0, beta0, clip)
    own = vfma(r, own + vload_part(bias, n, rest), vload_part(x, 2 * H + n, rest))
    z = activated(vload_part(x, n, rest) + z, code0, alpha0, beta0, clip)
    fresh = activated(own, code1, alpha1, beta1, clip)
    vstore_part(y, n, rest, vfma(z, vload_part(old, n, rest) - fresh, fresh))


@device
def finish_lstm(
    x: Pointer, c: Pointer, peepholes: Pointer, y: Pointer, n: int, H: int, couples: int,
    i: Lanes, o: Lanes, f: Lanes, fresh: Lanes,
    code0: int, alpha0: float, beta0: float, code1: int, alpha1: float, beta1: float,
    code2: int, alpha2: float, beta2: float, clip: float,
) -> None:  # fmt: skip
    """The units n … n + 15 from the recurrent sums of the four gates; c is replaced."""
    rest = H - n
    cell = vload_part(c, n, rest)
    i = vfma(vload_part(peepholes, n, rest), cell, i + vload_part(x, n, rest))
    f = vfma(vload_part(peepholes, 2 * H + n, rest), cell, f + vload_part(x, 2 * H + n, rest))
    i = activated(i, code0, alpha0, beta0, clip)
    f = 1.0 - i if couples else activated(f, code0, alpha0, beta0, clip)
    fresh = activated(fresh + vload_part(x, 3 * H + n, rest), code1, alpha1, beta1, clip)
    cell = vfma(f, cell, i * fresh)
    vstore_part(c, n, rest, cell)
    o = vfma(vload_part(peepholes, H + n, rest), cell, o + vload_part(x, H + n, rest))
    o = activated(o, code0, alpha0, beta0, clip)
    vstore_part(y, n, rest, o * activated(cell, code2, alpha2, beta2, 0.0))


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
    bias = f32(row, bases, 23)
    start, stop = begun(row, bases)
    back = frame if reverse else -frame
    for i in range(start, stop):
        t = T - 1 - i if reverse else i
        for b in range(B):
            new = y + (t * frame + b * step)
            old = new + back if i > start else h + b * H
            gru_row(
                x + (t * B + b) * 3 * H, old, w, bias, new, H,
                code0, alpha0, beta0, code1, alpha1, beta1, clip,
            )  # fmt: skip
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
    back = frame if reverse else -frame
    for i in range(start, stop):
        t = T - 1 - i if reverse else i
        for b in range(B):
            new = y + (t * frame + b * step)
            old = new + back if i > start else h + b * H
            lstm_row(
                x + (t * B + b) * 4 * H, old, w, c + b * H, peepholes, new, H, couples,
                code0, alpha0, beta0, code1, alpha1, beta1, code2, alpha2, beta2, clip,
            )  # fmt: skip
    if start < stop:
        take_rows(h, y + (T - stop if reverse else stop - 1) * frame, B, H, step)
