"""LSTMs for sixteen streams with interleaved memories, in the middle of their streams.

``matmul.product_interleaved`` explains the memories.
"""

from collections.abc import Iterator
from operator import getitem
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulse.jit.language.simd import LANES, vfma, vload, vsplat, vstore, vzero
from pulse.jit.language.tuples import copies, each
from pulse.jit.registry import device, kernel
from pulse.jit.rows.instruction import Operand, reads, updates
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, require, run
from pulse.ops.recurrent_gates import GATE_COUNTS
from pulse.program.kernels.recurrent.gates import LstmActivations, activate
from pulse.program.kernels.recurrent.layer import ActivationFields, InterleavedRecurrentFields
from pulse.program.kernels.recurrent.lstm import load_lstm_activations
from pulse.program.kernels.row_tuples import FOUR, Vectors

GATES = GATE_COUNTS["lstm"]


def four_gates_by_unit(packed: NDArray[Any], hidden: int) -> NDArray[np.float32]:
    """Repack the recurrent weights of ``pack_gates`` as [units, H, 4]."""
    blocks = -(-hidden // LANES)
    gates = packed.reshape(blocks, hidden, GATES, LANES).transpose(0, 3, 1, 2)
    return np.ascontiguousarray(gates.reshape(blocks * LANES, hidden, GATES)[:hidden], np.float32)


class InterleavedLstmRow(InterleavedRecurrentFields):
    """``i o k = f(...); c = k * c + i * g(...); y = o * out(c)`` for sixteen streams, with peepholes [3, H] from c.

    x is [T, B, 4 * H], c and h are [B, H], dense. ``couples``: k = 1 - i.
    """

    c: Operand = updates("f32")
    W: Operand = reads("f32", "H", "H", 4)
    peepholes: Operand = reads("f32", 3, "H")
    couples: bool
    out: ActivationFields

    def multiply_adds(self) -> int:
        return LANES * GATES * self.T * self.B * self.H * self.H

    def reaches(self) -> Iterator[Reach]:
        require(min(self.T, self.B, self.H) >= 0, "sizes below 0")
        yield self.y, (run(self.T, self.step_frame) + run(self.B, self.step_row) + run(self.H)) * LANES
        yield self.h, run(self.B * self.H) * LANES
        yield self.c, run(self.B * self.H) * LANES
        yield self.x, run(self.T * self.B * GATES * self.H) * LANES


@device
def finish_unit(
    x: Pointer, c: Pointer, peepholes: Pointer, new: Pointer, u: int, H: int, couples: int, sums: Vectors,
    functions: LstmActivations,
) -> None:  # fmt: skip
    """Compute unit u from its recurrent sums; replace its c."""
    (i, o, forget, candidate), ((f, g, clip), out), cell = sums, functions, vload(c, u * LANES)
    i = activate(vfma(cell, vsplat(peepholes[u]), i + vload(x, u * LANES)), f, clip)
    forget = forget + vload(x, (2 * H + u) * LANES)
    forget = 1.0 - i if couples else activate(vfma(cell, vsplat(peepholes[2 * H + u]), forget), f, clip)
    candidate = activate(candidate + vload(x, (3 * H + u) * LANES), g, clip)
    cell = vfma(forget, cell, i * candidate)
    vstore(c, u * LANES, cell)
    o = activate(vfma(cell, vsplat(peepholes[H + u]), o + vload(x, (H + u) * LANES)), f, clip)
    vstore(new, u * LANES, o * activate(cell, out, 0.0))


@device
def compute_lstm_units(
    x: Pointer, old: Pointer, w: Pointer, c: Pointer, peepholes: Pointer, new: Pointer, u: int, H: int, couples: int,
    functions: LstmActivations,
) -> None:  # fmt: skip
    """Compute the units u and u + 1, if u is not the last."""
    other = min(u + 1, H - 1)
    p, q = w + u * H * GATES, w + other * H * GATES
    first = second = copies(vzero(), FOUR)
    for n in range(H):
        h = vload(old, n * LANES)
        first, second = (
            each(vfma, h, each(getitem, p, FOUR), first),
            each(vfma, h, each(getitem, q, FOUR), second),
        )
        p, q = p + GATES, q + GATES
    finish_unit(x, c, peepholes, new, u, H, couples, first, functions)
    if other > u:
        finish_unit(x, c, peepholes, new, other, H, couples, second, functions)


@kernel
def interleaved_lstm(row: InterleavedLstmRow) -> None:
    y, h, c, x, w, peepholes = row.y, row.h, row.c, row.x, row.W, row.peepholes
    T, B, H, frame, step, couples = row.T, row.B, row.H, row.step_frame, row.step_row, row.couples
    functions = load_lstm_activations(row)
    for b in range(B):
        first, cells = h + b * H * LANES, c + b * H * LANES
        old, new = first, y + b * step * LANES
        for t in range(T):
            begin = x + (t * B + b) * GATES * H * LANES
            for u in range(0, H, 2):
                compute_lstm_units(begin, old, w, cells, peepholes, new, u, H, couples, functions)
            old, new = new, new + frame * LANES
        for n in range(0, H * LANES if T > 0 else 0, LANES):
            vstore(first, n, vload(old, n))
