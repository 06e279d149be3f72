"""The gates of recurrent cells: packed weights, recurrent sums, and the next state, 16 units at a time."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pulse.jit.language.simd import (
    LANES,
    Vector,
    in_pairs,
    vfma,
    vload,
    vload_first,
    vload_part,
    vload_second,
    vlt,
    vmax,
    vmin,
    vselect,
    vsplat,
    vstore,
    vstore_part,
    vzero,
)
from pulse.jit.registers import HAS_REGISTERS_FOR_EIGHT
from pulse.jit.registry import device
from pulse.jit.rows.pointer import Pointer
from pulse.program.kernels.matmul.digits import (
    Digits,
    add_row,
    add_row_of_two_blocks,
    no_sums,
    sum_four_blocks,
    sum_three_blocks,
    value_of,
)
from pulse.program.kernels.matmul.product_blocks import FIRST, NARROW, SECOND, load_columns
from pulse.program.kernels.matmul.scales import Scales, apply_scales
from pulse.program.kernels.vmath import vsigmoid, vtanh

ActivationParameters: TypeAlias = tuple[int, float, float]
"""The code, alpha and beta of an activation."""
ACTIVATION_NAMES = ("sigmoid", "tanh", "relu", "affine", "hard_sigmoid", "leaky_relu")
ACTIVATIONS = {name: code for code, name in enumerate(ACTIVATION_NAMES)}
"""The number of each activation in a row."""
SIGMOID, TANH, RELU, AFFINE, HARD_SIGMOID, LEAKY_RELU = range(len(ACTIVATION_NAMES))
STATES_PER_GROUP = 4
"""The states that share one reading of the weights."""
PAIR_UNITS = 2 * LANES
"""The units of two vectors, which are computed together."""
SUM_FLOATS = 4 * STATES_PER_GROUP * LANES
"""The floats that hold the sums of up to four gates of a group of states."""


def pack_gates(r: NDArray[Any], hidden: int) -> NDArray[Any]:
    """Pack recurrent weights [G*H, K] of any type as the kernels read them: per 16 units [K, G, 16], padded by zeros.

    Scales are weights with K = 1. Two adjacent gates are ``in_pairs``.
    """
    gates, depth = r.shape[0] // hidden, r.shape[1]
    blocks = -(-hidden // LANES)
    padded = np.zeros((gates, blocks * LANES, depth), r.dtype)
    padded[:, :hidden] = r.reshape(gates, hidden, depth)
    packed = np.ascontiguousarray(padded.reshape(gates, blocks, LANES, depth).transpose(1, 3, 0, 2))
    rows, paired = packed.reshape(blocks * depth, gates * LANES), gates // 2 * PAIR_UNITS
    pairs = in_pairs(rows[:, :paired].reshape(len(rows), gates // 2, PAIR_UNITS))
    return np.hstack([pairs.reshape(len(rows), paired), rows[:, paired:]]).ravel()


def packed_gates_size(hidden: int, depth: int, gates: int) -> int:
    """Return the number of elements of ``pack_gates``."""
    return -(-hidden // LANES) * LANES * depth * gates


@device
def activate(v: Vector, function: ActivationParameters, clip: float) -> Vector:
    """Apply an activation after limiting its input to -clip … clip."""
    code, alpha, beta = function
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
    return vselect(vlt(v, 0.0), v * alpha, v)  # LEAKY_RELU


@device
def one_float_sum(h: Pointer, w: Pointer, K: int, scales: Scales) -> Vector:
    """Return ``sum_k h[k] * w[k]``, w [K, 16]."""
    a, b, c, d = vzero(), vzero(), vzero(), vzero()
    k = 0
    while k + 4 <= K:
        a, b = vfma(h[k], vload(w, 0), a), vfma(h[k + 1], vload(w, 16), b)
        c, d = vfma(h[k + 2], vload(w, 32), c), vfma(h[k + 3], vload(w, 48), d)
        w = w + 4 * LANES
        k += 4
    for _ in range(K & 3):
        a = vfma(h[k], vload(w, 0), a)
        w = w + LANES
        k += 1
    return apply_scales((a + b) + (c + d), scales, 0)


@device
def two_float_sums(h: Pointer, w: Pointer, K: int, scales: Scales) -> tuple[Vector, Vector]:
    """Return ``sum_k h[k] * w[k]`` for two gates, w [K, 2, 16]."""
    a0, b0, a1, b1 = vzero(), vzero(), vzero(), vzero()
    k = 0
    while k + 2 <= K:
        p, q = vsplat(h[k]), vsplat(h[k + 1])
        a0, b0 = vfma(p, vload_first(w, 0), a0), vfma(p, vload_second(w, 0), b0)
        a1, b1 = vfma(q, vload_first(w, 32), a1), vfma(q, vload_second(w, 32), b1)
        w = w + 4 * LANES
        k += 2
    if k < K:
        p = vsplat(h[k])
        a0, b0 = vfma(p, vload_first(w, 0), a0), vfma(p, vload_second(w, 0), b0)
    return apply_scales(a0 + a1, scales, 0), apply_scales(b0 + b1, scales, 16)


@device
def three_float_sums(h: Pointer, w: Pointer, K: int, scales: Scales) -> tuple[Vector, Vector, Vector]:
    """Return ``sum_k h[k] * w[k]`` for three gates, w [K, 3, 16]."""
    a0, b0, c0, a1, b1, c1 = vzero(), vzero(), vzero(), vzero(), vzero(), vzero()
    k = 0
    while k + 2 <= K:
        p, q = vsplat(h[k]), vsplat(h[k + 1])
        a0, b0, c0 = (
            vfma(p, vload_first(w, 0), a0),
            vfma(p, vload_second(w, 0), b0),
            vfma(p, vload(w, 32), c0),
        )
        a1, b1, c1 = (
            vfma(q, vload_first(w, 48), a1),
            vfma(q, vload_second(w, 48), b1),
            vfma(q, vload(w, 80), c1),
        )
        w = w + 6 * LANES
        k += 2
    if k < K:
        p = vsplat(h[k])
        a0, b0, c0 = (
            vfma(p, vload_first(w, 0), a0),
            vfma(p, vload_second(w, 0), b0),
            vfma(p, vload(w, 32), c0),
        )
    return (
        apply_scales(a0 + a1, scales, 0),
        apply_scales(b0 + b1, scales, 16),
        apply_scales(c0 + c1, scales, 32),
    )


@device
def four_float_sums(h: Pointer, w: Pointer, K: int, scales: Scales) -> tuple[Vector, Vector, Vector, Vector]:
    """Return ``sum_k h[k] * w[k]`` for four gates, w [K, 4, 16]."""
    a0, b0, c0, d0, a1, b1, c1, d1 = vzero(), vzero(), vzero(), vzero(), vzero(), vzero(), vzero(), vzero()
    k = 0
    while k + 2 <= K:
        p, q = vsplat(h[k]), vsplat(h[k + 1])
        a0, b0 = vfma(p, vload_first(w, 0), a0), vfma(p, vload_second(w, 0), b0)
        c0, d0 = vfma(p, vload_first(w, 32), c0), vfma(p, vload_second(w, 32), d0)
        a1, b1 = vfma(q, vload_first(w, 64), a1), vfma(q, vload_second(w, 64), b1)
        c1, d1 = vfma(q, vload_first(w, 96), c1), vfma(q, vload_second(w, 96), d1)
        w = w + 8 * LANES
        k += 2
    if k < K:
        p = vsplat(h[k])
        a0, b0 = vfma(p, vload_first(w, 0), a0), vfma(p, vload_second(w, 0), b0)
        c0, d0 = vfma(p, vload_first(w, 32), c0), vfma(p, vload_second(w, 32), d0)
    a, b = apply_scales(a0 + a1, scales, 0), apply_scales(b0 + b1, scales, 16)
    c, d = apply_scales(c0 + c1, scales, 32), apply_scales(d0 + d1, scales, 48)
    return a, b, c, d


@device
def one_sum(h: Pointer, w: Pointer, K: int, scales: Scales, digits: Digits) -> Vector:
    """Return ``sum_k h[k] * w[k]``, w [K, 16]; by the digits of h if it has some."""
    if scales is None:
        return one_float_sum(h, w, K, scales)
    words, unit, _ = digits
    if unit > 0:
        return apply_scales(value_of(add_row(no_sums(), words, h, w, K), digits), scales, 0)
    return one_float_sum(h, w, K, scales)


@device
def two_sums(h: Pointer, w: Pointer, K: int, scales: Scales, digits: Digits) -> tuple[Vector, Vector]:
    """Sum as ``one_sum``, for two gates, w [K, 2, 16]."""
    if scales is None:
        return two_float_sums(h, w, K, scales)
    words, unit, _ = digits
    if unit > 0:
        a, b = add_row_of_two_blocks(no_sums(), no_sums(), words, h, w, K)
        return apply_scales(value_of(a, digits), scales, 0), apply_scales(value_of(b, digits), scales, 16)
    return two_float_sums(h, w, K, scales)


@device
def three_sums(
    h: Pointer, w: Pointer, K: int, scales: Scales, digits: Digits
) -> tuple[Vector, Vector, Vector]:
    """Sum as ``one_sum``, for three gates, w [K, 3, 16]."""
    if scales is None:
        return three_float_sums(h, w, K, scales)
    _, unit, _ = digits
    if unit > 0:
        a, b, c = sum_three_blocks(digits, h, w, K)
        return apply_scales(a, scales, 0), apply_scales(b, scales, 16), apply_scales(c, scales, 32)
    return three_float_sums(h, w, K, scales)


@device
def four_sums(
    h: Pointer, w: Pointer, K: int, scales: Scales, digits: Digits
) -> tuple[Vector, Vector, Vector, Vector]:
    """Sum as ``one_sum``, for four gates, w [K, 4, 16]."""
    if scales is None:
        return four_float_sums(h, w, K, scales)
    _, unit, _ = digits
    if unit > 0:
        a, b, c, d = sum_four_blocks(digits, h, w, K)
        return (
            apply_scales(a, scales, 0),
            apply_scales(b, scales, 16),
            apply_scales(c, scales, 32),
            apply_scales(d, scales, 48),
        )
    return four_float_sums(h, w, K, scales)


@device
def finish_gru(
    x: Pointer, old: Pointer, bias: Pointer, y: Pointer, n: int, H: int,
    z: Vector, r: Vector, candidate: Vector, f: ActivationParameters, g: ActivationParameters, clip: float,
) -> None:  # fmt: skip
    """Compute the units n … n + 15 from the recurrent sums of the three gates."""
    rest = H - n
    r = activate(vload_part(x, H + n, rest) + r, f, clip)
    candidate = vfma(r, candidate + vload_part(bias, n, rest), vload_part(x, 2 * H + n, rest))
    z = activate(vload_part(x, n, rest) + z, f, clip)
    candidate = activate(candidate, g, clip)
    vstore_part(y, n, rest, vfma(z, vload_part(old, n, rest) - candidate, candidate))


@device
def finish_gru_reset(
    x: Pointer, old: Pointer, z: Pointer, y: Pointer, n: int, rest: int,
    candidate: Vector, g: ActivationParameters, clip: float,
) -> None:  # fmt: skip
    """Compute the units n … n + 15 from the product of the reset state; x belongs to the last gate."""
    candidate = activate(vload_part(x, n, rest) + candidate, g, clip)
    vstore_part(y, n, rest, vfma(vload_part(z, n, rest), vload_part(old, n, rest) - candidate, candidate))


@device
def finish_lstm(
    x: Pointer, c: Pointer, peepholes: Pointer, y: Pointer, n: int, H: int, couples: int,
    i: Vector, o: Vector, forget: Vector, candidate: Vector,
    f: ActivationParameters, g: ActivationParameters, out: ActivationParameters, clip: float,
) -> None:  # fmt: skip
    """Compute the units n … n + 15 from the recurrent sums of the four gates; replace c."""
    rest = H - n
    cell = vload_part(c, n, rest)
    i = vfma(vload_part(peepholes, n, rest), cell, i + vload_part(x, n, rest))
    forget = vfma(vload_part(peepholes, 2 * H + n, rest), cell, forget + vload_part(x, 2 * H + n, rest))
    i = activate(i, f, clip)
    forget = 1.0 - i if couples else activate(forget, f, clip)
    candidate = activate(candidate + vload_part(x, 3 * H + n, rest), g, clip)
    cell = vfma(forget, cell, i * candidate)
    vstore_part(c, n, rest, cell)
    o = vfma(vload_part(peepholes, H + n, rest), cell, o + vload_part(x, H + n, rest))
    o = activate(o, f, clip)
    vstore_part(y, n, rest, o * activate(cell, out, 0.0))


@device
def one_sum_of_four(
    h0: Pointer, h1: Pointer, h2: Pointer, h3: Pointer, w: Pointer, part: int, step: int, K: int,
    scales: Scales, gate: int, sums: Pointer,
) -> None:  # fmt: skip
    """Store ``sum_k h[k] * w[k]`` of one gate for four states, rows of w ``step`` apart, in sums [4, 4, 16].

    ``gate`` is the offset of its scales and sums; ``part`` is an argument of ``load_columns``.
    """
    a, b, c, d = vzero(), vzero(), vzero(), vzero()
    for k in range(K):
        u = load_columns(w, part)
        a, b, c, d = vfma(h0[k], u, a), vfma(h1[k], u, b), vfma(h2[k], u, c), vfma(h3[k], u, d)
        w = w + step
    vstore(sums, gate, apply_scales(a, scales, gate))
    vstore(sums, 64 + gate, apply_scales(b, scales, gate))
    vstore(sums, 128 + gate, apply_scales(c, scales, gate))
    vstore(sums, 192 + gate, apply_scales(d, scales, gate))


@device
def three_sums_of_four(
    h0: Pointer, h1: Pointer, h2: Pointer, h3: Pointer, w: Pointer, K: int, scales: Scales, sums: Pointer
) -> None:
    """Store ``sum_k h[k] * w[k]`` of three gates for four states, w [K, 3, 16], in sums [4, 4, 16]; one row unused."""
    if not HAS_REGISTERS_FOR_EIGHT:
        step = 3 * LANES
        one_sum_of_four(h0, h1, h2, h3, w, FIRST, step, K, scales, 0, sums)
        one_sum_of_four(h0, h1, h2, h3, w, SECOND, step, K, scales, 16, sums)
        one_sum_of_four(h0, h1, h2, h3, w + 32, NARROW, step, K, scales, 32, sums)
        return
    a0, b0, c0, a1, b1, c1 = vzero(), vzero(), vzero(), vzero(), vzero(), vzero()
    a2, b2, c2, a3, b3, c3 = vzero(), vzero(), vzero(), vzero(), vzero(), vzero()
    for k in range(K):
        u, v, x = vload_first(w, 0), vload_second(w, 0), vload(w, 32)
        p, q, r, s = vsplat(h0[k]), vsplat(h1[k]), vsplat(h2[k]), vsplat(h3[k])
        a0, b0, c0 = vfma(p, u, a0), vfma(p, v, b0), vfma(p, x, c0)
        a1, b1, c1 = vfma(q, u, a1), vfma(q, v, b1), vfma(q, x, c1)
        a2, b2, c2 = vfma(r, u, a2), vfma(r, v, b2), vfma(r, x, c2)
        a3, b3, c3 = vfma(s, u, a3), vfma(s, v, b3), vfma(s, x, c3)
        w = w + 3 * LANES
    store_three_sums(sums, a0, b0, c0, scales)
    store_three_sums(sums + 64, a1, b1, c1, scales)
    store_three_sums(sums + 128, a2, b2, c2, scales)
    store_three_sums(sums + 192, a3, b3, c3, scales)


@device
def four_sums_of_four(
    h0: Pointer, h1: Pointer, h2: Pointer, h3: Pointer, w: Pointer, K: int, scales: Scales, sums: Pointer
) -> None:
    """Store ``sum_k h[k] * w[k]`` of four gates for four states, w [K, 4, 16], in sums [4, 4, 16]."""
    if not HAS_REGISTERS_FOR_EIGHT:
        step = 4 * LANES
        one_sum_of_four(h0, h1, h2, h3, w, FIRST, step, K, scales, 0, sums)
        one_sum_of_four(h0, h1, h2, h3, w, SECOND, step, K, scales, 16, sums)
        one_sum_of_four(h0, h1, h2, h3, w + 32, FIRST, step, K, scales, 32, sums)
        one_sum_of_four(h0, h1, h2, h3, w + 32, SECOND, step, K, scales, 48, sums)
        return
    a0, b0, c0, d0, a1, b1, c1, d1 = vzero(), vzero(), vzero(), vzero(), vzero(), vzero(), vzero(), vzero()
    a2, b2, c2, d2, a3, b3, c3, d3 = vzero(), vzero(), vzero(), vzero(), vzero(), vzero(), vzero(), vzero()
    for k in range(K):
        u, v, x, y = vload_first(w, 0), vload_second(w, 0), vload_first(w, 32), vload_second(w, 32)
        p, q, r, s = vsplat(h0[k]), vsplat(h1[k]), vsplat(h2[k]), vsplat(h3[k])
        a0, b0, c0, d0 = vfma(p, u, a0), vfma(p, v, b0), vfma(p, x, c0), vfma(p, y, d0)
        a1, b1, c1, d1 = vfma(q, u, a1), vfma(q, v, b1), vfma(q, x, c1), vfma(q, y, d1)
        a2, b2, c2, d2 = vfma(r, u, a2), vfma(r, v, b2), vfma(r, x, c2), vfma(r, y, d2)
        a3, b3, c3, d3 = vfma(s, u, a3), vfma(s, v, b3), vfma(s, x, c3), vfma(s, y, d3)
        w = w + 4 * LANES
    store_three_sums(sums, a0, b0, c0, scales)
    vstore(sums, 48, apply_scales(d0, scales, 48))
    store_three_sums(sums + 64, a1, b1, c1, scales)
    vstore(sums, 112, apply_scales(d1, scales, 48))
    store_three_sums(sums + 128, a2, b2, c2, scales)
    vstore(sums, 176, apply_scales(d2, scales, 48))
    store_three_sums(sums + 192, a3, b3, c3, scales)
    vstore(sums, 240, apply_scales(d3, scales, 48))


@device
def store_three_sums(sums: Pointer, a: Vector, b: Vector, c: Vector, scales: Scales) -> None:
    """Store one row of sums."""
    vstore(sums, 0, apply_scales(a, scales, 0))
    vstore(sums, 16, apply_scales(b, scales, 16))
    vstore(sums, 32, apply_scales(c, scales, 32))
