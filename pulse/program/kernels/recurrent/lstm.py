"""LSTM layers; ``layer`` has the first fields of their rows."""

from collections.abc import Iterator
from typing import Any

from pulse.jit.language.simd import LANES
from pulse.jit.language.stack import stack_f32
from pulse.jit.registry import device, kernel
from pulse.jit.rows.instruction import Operand, reads, updates
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import NOTHING, Reach, run
from pulse.program.kernels.matmul.digits import DIGIT_SCRATCH_FLOATS, write_digits_of_row
from pulse.program.kernels.matmul.scales import offset_scales
from pulse.program.kernels.recurrent.gates import (
    STATES_PER_GROUP,
    SUM_FLOATS,
    LstmActivations,
    finish_lstm,
    four_sums,
    load_sums,
    store_sums,
)
from pulse.program.kernels.recurrent.layer import (
    ActivationFields,
    RecurrentFloatFields,
    RecurrentLayerFields,
    copy_state_rows,
    load_activation,
    load_activations,
    run_frames,
    states_of_group,
)
from pulse.program.kernels.row_tuples import FOUR, Indices


@device
def compute_lstm(x: Pointer, old: Pointer, y: Pointer, H: int, sequences: Indices, parameters: Any) -> None:
    """Compute one frame; replace c. Several sequences share one reading of the weights."""
    (w, scales, c, peepholes), couples, cell, sums, digit_scratch = parameters
    b, rows, old_step, step = sequences
    c = c + b * H
    if rows > 1:
        states = states_of_group(old, rows, old_step)
        for n in range(0, H, LANES):
            store_sums(states, w + 4 * n * H, H, offset_scales(scales, 4 * n), sums, FOUR)
            for j in range(rows):
                totals = load_sums(sums, j, FOUR)
                finish_lstm(x + j * 4 * H, c + j * H, peepholes, y + j * step, n, H, couples, totals, cell)
    else:
        digits = write_digits_of_row(old, H, scales, digit_scratch)
        for n in range(0, H, LANES):
            totals = four_sums(old, w + 4 * n * H, H, offset_scales(scales, 4 * n), digits)
            finish_lstm(x, c, peepholes, y, n, H, couples, totals, cell)


class LstmFields(RecurrentLayerFields):
    """``i o forget = f(...); c = forget * c + i * g(...); y = o * out(c)``, the gates with peepholes [3, H] from c.

    c is [B, H], dense; rows of c0 are ``step_c0_row`` apart. ``couples``: forget = 1 - i.
    """

    gates = packed = 4
    f: ActivationFields
    g: ActivationFields
    out: ActivationFields
    c: Operand = updates("f32", "B", "H")
    c0: Operand = reads("f32", rarely=True)
    step_c0_row: int
    peepholes: Operand = reads("f32", 3, "H")
    couples: bool

    def reaches(self) -> Iterator[Reach]:
        yield from super().reaches()
        yield self.c0, run(self.B, self.step_c0_row) + run(self.H) if self.reload else NOTHING


class LstmRow(LstmFields, RecurrentFloatFields):
    """An LSTM with weights from ``pack_gates``."""


@device
def load_lstm_activations(row: Any) -> LstmActivations:
    return load_activations(row), load_activation(row.out)


@device
def load_memory(row: LstmFields) -> None:
    """Load the state of the cell, if a sequence begins."""
    if row.reload and row.clock[0] == 0:
        copy_state_rows(row.c, row.c0, row.B, row.H, row.step_c0_row)


@kernel
def lstm(row: LstmRow) -> None:
    load_memory(row)
    weights, cell = (row.W, row.scales, row.c, row.peepholes), load_lstm_activations(row)
    sums, digits = stack_f32(SUM_FLOATS), stack_f32(DIGIT_SCRATCH_FLOATS)
    run_frames(row, 4, STATES_PER_GROUP, compute_lstm, (weights, row.couples, cell, sums, digits))
