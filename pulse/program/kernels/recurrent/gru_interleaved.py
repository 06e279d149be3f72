"""GRUs for sixteen streams with interleaved memories, in the middle of their streams.

``matmul.product_interleaved`` explains the memories.
"""

from collections.abc import Iterator
from operator import add, getitem, mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulse.jit.language.simd import LANES, Vector, vfma, vload, vsplat, vstore
from pulse.jit.language.tuples import each
from pulse.jit.registry import device, kernel
from pulse.jit.rows.instruction import Operand, reads
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, require, run
from pulse.ops.recurrent_gates import GATE_COUNTS
from pulse.program.kernels.recurrent.gates import SIGMOID, TANH, GruActivations, activate
from pulse.program.kernels.recurrent.gru_small import sigmoid_tanh_state
from pulse.program.kernels.recurrent.layer import InterleavedRecurrentFields, load_activations
from pulse.program.kernels.row_tuples import THREE, Indices, Vectors

GATES = GATE_COUNTS["gru"]


def gates_by_unit(packed: NDArray[Any], hidden: int) -> NDArray[np.float32]:
    """Repack the recurrent weights of ``pack_gates`` as [1, units, H, 3]."""
    blocks = -(-hidden // LANES)
    gates = packed.reshape(blocks, hidden, GATES, LANES).transpose(2, 0, 3, 1)
    square = gates.reshape(GATES, blocks * LANES, hidden)[:, :hidden]
    return np.ascontiguousarray(square.transpose(1, 2, 0), np.float32)[None]


def small_gates_by_unit(packed: NDArray[Any], width: int) -> NDArray[np.float32]:
    """Repack the recurrent weights of ``pack_small`` as [GRUs, units, width, 3]."""
    rotations = packed.reshape(width, GATES, LANES // width, width)
    units = np.arange(width)
    gates = np.zeros((LANES // width, width, width, GATES), np.float32)
    for by in range(width):
        gates[:, units, (units + by) % width] = rotations[by].transpose(1, 2, 0)
    return gates


class InterleavedGruRow(InterleavedRecurrentFields):
    """``z r = f(...); c = g(x + r * (h @ W + bias)); y = (1 - z) * c + z * h``: ``count`` GRUs for sixteen streams.

    x is [T, B, 3 * units], dense, the next GRU's ``step_x`` elements later. W is [count, units, units, 3], ``bias``
    [count, units]. The states of the GRUs are contiguous, in rows of ``H`` of h. GRU i runs backwards if bit i of
    ``backwards`` is set: its x begins with the last frame.
    """

    W: Operand = reads("f32", "count", "units", "units", 3)
    bias: Operand = reads("f32", "count", "units")
    count: int
    step_x: int
    backwards: int
    units: int

    def multiply_adds(self) -> int:
        return LANES * GATES * self.T * self.B * self.count * self.units * self.units

    def reaches(self) -> Iterator[Reach]:
        require(min(self.T, self.B, self.count, self.units) >= 0, "sizes below 0")
        units = run(self.count * self.units)
        yield self.y, (run(self.T, self.step_frame) + run(self.B, self.step_row) + units) * LANES
        yield self.h, (run(self.B, self.H) + units) * LANES
        frames = run(self.T * self.B * GATES * self.units)
        yield self.x, (run(self.count, self.step_x) + frames) * LANES


@device
def begin_gates(x: Pointer, bias: Pointer, u: int, units: int) -> Vectors:
    """Return the initial sums of unit u: of the gates z and r, and of the candidate without x."""
    return vload(x, u * LANES), vload(x, (units + u) * LANES), vsplat(bias[u])


@device
def add_to_gates(sums: Vectors, h: Vector, w: Pointer) -> Vectors:
    """Add the products of a state with the weights of a unit."""
    return each(vfma, h, each(getitem, w, THREE), sums)


@device
def interleaved_gate_sums(
    x: Pointer, old: Pointer, w: Pointer, bias: Pointer, numbers: Indices, units: int
) -> tuple[Vectors, ...]:
    """Return the sums of the gates z, r and of the candidate without x, of some units of one GRU."""
    p, sums = each(add, w, each(mul, numbers, units * GATES)), each(begin_gates, x, bias, numbers, units)
    for k in range(units):
        sums = each(add_to_gates, sums, vload(old, k * LANES), p)
        p = each(add, p, GATES)
    return sums


@device
def store_unit(x: Pointer, old: Pointer, new: Pointer, u: int, sums: Vectors) -> None:
    """Store the state of unit u, with sigmoid and tanh; x belongs to the candidates."""
    (z, r, c), i = sums, u * LANES
    vstore(new, i, sigmoid_tanh_state(vload(old, i), z, r, c, vload(x, i)))


@device
def compute_four_units(
    x: Pointer, old: Pointer, w: Pointer, bias: Pointer, new: Pointer, u: int, units: int
) -> None:
    """Compute the units u … u + 3 of one GRU with sigmoid and tanh; the activations of all are independent."""
    first, second = (u, u + 1), (u + 2, u + 3)
    low, high = (
        interleaved_gate_sums(x, old, w, bias, first, units),
        interleaved_gate_sums(x, old, w, bias, second, units),
    )
    candidates = x + 2 * units * LANES
    each(store_unit, candidates, old, new, first, low)
    each(store_unit, candidates, old, new, second, high)


@device
def compute_two_units(
    x: Pointer,
    old: Pointer,
    w: Pointer,
    bias: Pointer,
    new: Pointer,
    u: int,
    units: int,
    cell: GruActivations,
) -> None:
    """Compute the units u and u + 1 of one GRU; the last one twice if u is the last."""
    other, (f, g, clip) = min(u + 1, units - 1), cell
    (z0, r0, c0), (z1, r1, c1) = interleaved_gate_sums(x, old, w, bias, (u, other), units)
    candidate = activate(vfma(activate(r0, f, clip), c0, vload(x, (2 * units + u) * LANES)), g, clip)
    v0 = vfma(activate(z0, f, clip), vload(old, u * LANES) - candidate, candidate)
    candidate = activate(vfma(activate(r1, f, clip), c1, vload(x, (2 * units + other) * LANES)), g, clip)
    v1 = vfma(activate(z1, f, clip), vload(old, other * LANES) - candidate, candidate)
    vstore(new, u * LANES, v0)
    vstore(new, other * LANES, v1)


@kernel
def interleaved_gru(row: InterleavedGruRow) -> None:
    y, h, x, w, bias = row.y, row.h, row.x, row.W, row.bias
    T, B, H, units, count, step_x = row.T, row.B, row.H, row.units, row.count, row.step_x
    frame, step, backwards, cell = row.step_frame * LANES, row.step_row, row.backwards, load_activations(row)
    f, g, clip = cell
    fours = units // 4 * 4 if f[0] == SIGMOID and g[0] == TANH and clip <= 0 else 0
    for b in range(B):
        state, rows = h + b * H * LANES, y + b * step * LANES
        for t in range(T):
            for i in range(count):
                is_backwards = backwards >> i & 1
                begin = x + (i * step_x + (t * B + b) * GATES * units) * LANES
                q = rows + ((T - 1 - t if is_backwards else t) * frame + i * units * LANES)
                p = q + (frame if is_backwards else -frame) if t > 0 else state + i * units * LANES
                v, c = w + i * units * units * GATES, bias + i * units
                for u in range(0, fours, 4):
                    compute_four_units(begin, p, v, c, q, u, units)
                for u in range(fours, units, 2):
                    compute_two_units(begin, p, v, c, q, u, units, cell)
        for n in range(count * units if T > 0 else 0):
            last = 0 if backwards >> (n // units) & 1 else T - 1
            vstore(state, n * LANES, vload(rows, last * frame + n * LANES))
