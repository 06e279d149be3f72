"""The gates of recurrent cells: packed weights, recurrent sums, and the next state, 16 units at a time."""

from operator import add, mul
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pulse.jit.language.dispatch import chooser
from pulse.jit.language.simd import (
    LANES,
    Vector,
    in_pairs,
    vfma,
    vload,
    vload_first,
    vload_part,
    vload_second,
    vmax,
    vmin,
    vsplat,
    vstore,
    vstore_part,
    vzero,
)
from pulse.jit.language.tuples import copies, each, indices
from pulse.jit.registers import HAS_AVX512
from pulse.jit.registry import device
from pulse.jit.rows.pointer import Pointer
from pulse.program.kernels.elementwise_microops import vector_form
from pulse.program.kernels.matmul.digits import Digits, sum_row
from pulse.program.kernels.matmul.scales import Scales, apply_scales
from pulse.program.kernels.row_tuples import FOUR, ONE, Indices, Pointers, Vectors

ActivationParameters: TypeAlias = tuple[int, float, float]
"""The code, alpha and beta of an activation."""
GruActivations: TypeAlias = tuple[ActivationParameters, ActivationParameters, float]
"""The activations f and g, and the clip."""
LstmActivations: TypeAlias = tuple[GruActivations, ActivationParameters]
"""Those of a GRU, and the activation of the output."""
ACTIVATION_NAMES = ("sigmoid", "tanh", "relu", "affine", "hard_sigmoid", "leaky_relu")
ACTIVATIONS = {name: code for code, name in enumerate(ACTIVATION_NAMES)}
"""The number of each activation in a row."""
SIGMOID, TANH = ACTIVATIONS["sigmoid"], ACTIVATIONS["tanh"]
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


apply_activation = chooser("apply_activation", [vector_form(name) for name in ACTIVATION_NAMES])


@device
def activate(v: Vector, function: ActivationParameters, clip: float) -> Vector:
    """Apply an activation after limiting its input to -clip … clip."""
    code, alpha, beta = function
    if clip > 0:
        v = vmax(vmin(v, clip), -clip)
    return apply_activation(code, v, v, alpha, beta)


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
def load_gate(w: Pointer, gate: int, gates: int) -> Vector:
    """Load 16 units of a gate from a row of weights of all gates; two adjacent ones are a pair."""
    if gate & 1:
        return vload_second(w, (gate - 1) * LANES)
    if gate + 1 < gates:
        return vload_first(w, gate * LANES)
    return vload(w, gate * LANES)


@device
def scale_gates(totals: Vectors, scales: Scales) -> Vectors:
    return each(apply_scales, totals, scales, each(mul, indices(totals), LANES))


@device
def add_to_gate(total: Vector, element: Vector, w: Pointer, gate: int, gates: int) -> Vector:
    """Add the products of an element of a state with the weights of a gate."""
    return vfma(element, load_gate(w, gate, gates), total)


@device
def float_sums(h: Pointer, w: Pointer, K: int, scales: Scales, gates: Indices) -> Vectors:
    """Return ``sum_k h[k] * w[k]`` of two or three gates, w [K, gates, 16]."""
    even = odd = copies(vzero(), gates)
    count, k = len(gates), 0
    while k + 2 <= K:
        p, q, next = vsplat(h[k]), vsplat(h[k + 1]), w + count * LANES
        even, odd = each(add_to_gate, even, p, w, gates, count), each(add_to_gate, odd, q, next, gates, count)
        w = next + count * LANES
        k += 2
    if k < K:
        even = each(add_to_gate, even, vsplat(h[k]), w, gates, count)
    return scale_gates(each(add, even, odd), scales)


@device
def four_float_sums(h: Pointer, w: Pointer, K: int, scales: Scales) -> tuple[Vector, Vector, Vector, Vector]:
    """Return ``sum_k h[k] * w[k]`` for four gates, w [K, 4, 16].

    It is ``float_sums`` in another form: with AVX2, its sums occupy all registers, and LLVM moves fewer of them.
    """
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
    _, unit, _ = digits
    if unit > 0:
        (total,) = sum_row(digits, h, w, K, ONE)
        return apply_scales(total, scales, 0)
    return one_float_sum(h, w, K, scales)


@device
def gate_sums(h: Pointer, w: Pointer, K: int, scales: Scales, digits: Digits, gates: Indices) -> Vectors:
    """Sum as ``one_sum``, for two or three gates, w [K, gates, 16]."""
    if scales is None:
        return float_sums(h, w, K, scales, gates)
    _, unit, _ = digits
    if unit > 0:
        return scale_gates(sum_row(digits, h, w, K, gates), scales)
    return float_sums(h, w, K, scales, gates)


@device
def four_sums(h: Pointer, w: Pointer, K: int, scales: Scales, digits: Digits) -> Vectors:
    """Sum as ``one_sum``, for four gates, w [K, 4, 16]."""
    if scales is None:
        return four_float_sums(h, w, K, scales)
    _, unit, _ = digits
    if unit > 0:
        return scale_gates(sum_row(digits, h, w, K, FOUR), scales)
    return four_float_sums(h, w, K, scales)


@device
def finish_gru(
    x: Pointer, old: Pointer, bias: Pointer, y: Pointer, n: int, H: int, sums: Vectors, cell: GruActivations
) -> None:
    """Compute the units n … n + 15 from the recurrent sums of the three gates."""
    (z, r, candidate), (f, g, clip), rest = sums, cell, H - n
    r = activate(vload_part(x, H + n, rest) + r, f, clip)
    candidate = vfma(r, candidate + vload_part(bias, n, rest), vload_part(x, 2 * H + n, rest))
    z = activate(vload_part(x, n, rest) + z, f, clip)
    candidate = activate(candidate, g, clip)
    vstore_part(y, n, rest, vfma(z, vload_part(old, n, rest) - candidate, candidate))


@device
def begin_gru_reset(
    x: Pointer, old: Pointer, z: Pointer, n: int, H: int, sums: Vectors, cell: GruActivations
) -> None:
    """Compute the first gates of the units n … n + 15; write z, and at H elements after it the reset state."""
    (update, r), (f, _, clip), rest = sums, cell, H - n
    vstore_part(z, n, rest, activate(vload_part(x, n, rest) + update, f, clip))
    r = activate(vload_part(x, H + n, rest) + r, f, clip)
    vstore_part(z + H, n, rest, r * vload_part(old, n, rest))


@device
def finish_gru_reset(
    x: Pointer,
    old: Pointer,
    z: Pointer,
    y: Pointer,
    n: int,
    rest: int,
    candidate: Vector,
    cell: GruActivations,
) -> None:
    """Compute the units n … n + 15 from the product of the reset state; x belongs to the last gate."""
    _, g, clip = cell
    candidate = activate(vload_part(x, n, rest) + candidate, g, clip)
    vstore_part(y, n, rest, vfma(vload_part(z, n, rest), vload_part(old, n, rest) - candidate, candidate))


@device
def finish_lstm(
    x: Pointer, c: Pointer, peepholes: Pointer, y: Pointer, n: int, H: int, couples: int, sums: Vectors,
    functions: LstmActivations,
) -> None:  # fmt: skip
    """Compute the units n … n + 15 from the recurrent sums of the four gates; replace c."""
    (i, o, forget, candidate), ((f, g, clip), out), rest = sums, functions, H - n
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
def store_gate(sums: Pointer, state: int, gate: int, total: Vector, scales: Scales) -> None:
    """Store the sum of a gate for a state in sums [states, 4, 16]."""
    vstore(sums, (4 * state + gate) * LANES, apply_scales(total, scales, gate * LANES))


@device
def store_gates(sums: Pointer, state: int, totals: Vectors, scales: Scales) -> None:
    """Store the sums of all gates for a state."""
    each(store_gate, sums, state, indices(totals), totals, scales)


@device
def load_sums(sums: Pointer, state: int, gates: Indices) -> Vectors:
    """Load the sums of all gates for a state, as ``store_gates`` stores them."""
    return each(vload, sums + 4 * LANES * state, each(mul, gates, LANES))


@device
def add_input(total: Vector, h: Pointer, k: int, column: Vector) -> Vector:
    """Add the products of an element of a state with the weights of a gate, if they are in a register."""
    return vfma(h[k], column, total)


@device
def store_sums_of_gate(
    gate: int, h: Pointers, w: Pointer, K: int, scales: Scales, sums: Pointer, gates: int
) -> None:
    """Store ``sum_k h[k] * w[k]`` of one of the gates for some states."""
    totals = copies(vzero(), h)
    for k in range(K):
        totals = each(add_input, totals, h, k, load_gate(w, gate, gates))
        w = w + gates * LANES
    each(store_gate, sums, indices(h), gate, totals, scales)


@device
def add_to_gates(totals: Vectors, h: Pointer, k: int, columns: Vectors) -> Vectors:
    """Add the products of an element of a state with the weights of each gate."""
    return each(vfma, vsplat(h[k]), columns, totals)


@device
def store_sums(h: Pointers, w: Pointer, K: int, scales: Scales, sums: Pointer, gates: Indices) -> None:
    """Store ``sum_k h[k] * w[k]`` of three or four gates for four states, w [K, gates, 16], in sums [4, 4, 16].

    With ``HAS_AVX512``, there may be eight states and three gates.
    """
    count = len(gates)
    if not HAS_AVX512:
        each(store_sums_of_gate, gates, copies(h, gates), w, K, scales, sums, count)
        return
    totals = copies(copies(vzero(), gates), h)
    for k in range(K):
        columns = each(load_gate, w, gates, count)
        totals = each(add_to_gates, totals, h, k, copies(columns, h))
        w = w + count * LANES
    each(store_gates, sums, indices(h), totals, scales)
