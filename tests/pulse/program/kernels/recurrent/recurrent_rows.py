"""A row of a recurrent kernel: its data, what the cell in float64 makes of them, and the row itself."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulse.jit.rows.instruction import Form
from pulse.ops.recurrent_cells import Cell
from pulse.ops.recurrent_gates import GATE_COUNTS
from pulse.ops.weight_units import UnitLayout
from pulse.program.kernels.recurrent.gates import pack_gates
from pulse.program.kernels.recurrent.gru import GruResetRow, GruRow
from pulse.program.kernels.recurrent.layer import RecurrentFloatFields
from pulse.program.kernels.recurrent.lstm import LstmRow
from pulse.program.kernels.recurrent.rnn import RnnRow
from pulse.program.weights import StoredWeight, store
from pulse.support.bounds import UNBOUNDED
from tests.noise import next_noise
from tests.pulse.program.kernels.groups import activation

Array = NDArray[Any]
GAP = 3
"""Elements between rows of y."""


@dataclass(frozen=True)
class CellPulse:
    """T frames of B sequences through a cell of H units.

    clock            the number of the pulse
    end, offset      where the stream ends, and by how many frames it is late
    reload           whether pulse 0 begins with the first state
    batch_outermost  whether y has the frames of a sequence side by side
    form             how the recurrent weights are stored
    """

    cell: Cell
    T: int
    B: int
    H: int
    clock: int = 0
    end: int = UNBOUNDED
    offset: int = 0
    reverse: bool = False
    reload: bool = True
    batch_outermost: bool = False
    form: Form = "f32"

    @property
    def is_split(self) -> bool:
        """Whether the last gate is a separate product."""
        return self.cell.kind == "gru" and not self.cell.linear_before_reset

    @property
    def strides(self) -> tuple[int, int]:
        """The elements of y from a frame and from a sequence to the next one."""
        row = self.H + GAP
        return (row, self.T * row) if self.batch_outermost else (self.B * row, row)

    def row_of(self, t: int, b: int) -> slice:
        """Where y has a frame of a sequence."""
        frame, row = self.strides
        return slice(t * frame + b * row, t * frame + b * row + self.H)


class CellData:
    """Random inputs, weights, states, and an output whose gaps must not change."""

    def __init__(self, pulse: CellPulse) -> None:
        T, B, H = pulse.T, pulse.B, pulse.H
        rng = np.random.default_rng(T * 100 + B * 10 + H)
        rows = GATE_COUNTS[pulse.cell.kind] * H

        floats = partial(next_noise, rng)
        self.projected, weights, self.own_bias = floats(T, B, rows), floats(rows, H), floats(H)
        weights *= np.float32(H**-0.5)
        self.h, self.h0, self.c, self.c0 = floats(B, H), floats(H), floats(B, H), floats(B, H)
        self.peepholes = floats(3 * H)
        self.y = floats(T * B * (H + GAP))
        if pulse.form == "f16":
            self.stored = StoredWeight(weights.astype(np.float16), None, None)
        else:
            self.stored = store(weights, pulse.form, UnitLayout(weights.shape, (1,)))


def expected_values(pulse: CellPulse, data: CellData) -> tuple[Array, tuple[Array, ...]]:
    """Return y and the last state, computed by the cell in float64; frames outside of the stream are zeros."""
    cell, H = pulse.cell, pulse.H
    bias = np.zeros(len(data.stored.values))
    if cell.kind == "gru" and cell.linear_before_reset:
        bias[2 * H :] = data.own_bias
    begins = pulse.reload and pulse.clock == 0
    first = [np.broadcast_to(data.h0, data.h.shape), data.c0] if begins else [data.h, data.c]
    state = tuple(part.astype(np.float64) for part in first[: cell.state_count])
    weights, y = data.stored.values.astype(np.float64), data.y.copy()
    for t in range(pulse.T)[::-1] if pulse.reverse else range(pulse.T):
        inside = 0 <= pulse.clock * pulse.T - pulse.offset + t < pulse.end
        if inside:
            state = cell.step(data.projected[t].astype(np.float64), state, weights, bias, data.peepholes)
        for b in range(pulse.B):
            y[pulse.row_of(t, b)] = state[0][b] if inside else 0
    return y, state


def common_fields(pulse: CellPulse, data: CellData) -> dict[str, Any]:
    """The fields of the rows of all kinds, except for their weights and scales."""
    functions = [
        activation(function.name, function.alpha, function.beta) for function in pulse.cell.activations
    ]
    frame, row = pulse.strides
    return {
        "y": data.y,
        "h": data.h,
        "h0": data.h0,
        "x": data.projected,
        "clock": np.array([pulse.clock]),
        "end": np.array([pulse.end]),
        "offset": pulse.offset,
        "T": pulse.T,
        "B": pulse.B,
        "H": pulse.H,
        "step_h0_row": 0,
        "step_frame": frame,
        "step_row": row,
        "reload": pulse.reload,
        "reverse": pulse.reverse,
        "clip": float(pulse.cell.clip or 0),
        **dict(zip(("f", "g", "out"), functions)),
    }


def recurrent_row(pulse: CellPulse, data: CellData) -> RecurrentFloatFields:
    """Return the row that runs the pulse."""
    H, codes, scales, fields = pulse.H, data.stored.codes, data.stored.scales_of(), common_fields(pulse, data)
    cuts = [slice(0, 2 * H), slice(2 * H, None)] if pulse.is_split else [slice(None)]
    weights = [pack_gates(codes[cut], H) for cut in cuts]
    packed = [None if scales is None else pack_gates(scales[cut][:, None], H) for cut in cuts]
    fields |= {"W": weights[0], "scales": packed[0]}
    if pulse.is_split:
        scratch = np.zeros((2, H), np.float32)
        return GruResetRow(**fields, last=weights[1], scratch=scratch, last_scales=packed[1])
    if pulse.cell.kind == "gru":
        return GruRow(**fields, bias=data.own_bias)
    if pulse.cell.kind == "lstm":
        couples = pulse.cell.input_forget
        return LstmRow(
            **fields, c=data.c, c0=data.c0, step_c0_row=H, peepholes=data.peepholes, couples=couples
        )
    return RnnRow(**fields)
