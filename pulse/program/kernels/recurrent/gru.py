"""GRU layers; ``layer`` has the first fields of their rows."""

from collections.abc import Iterator
from typing import Any

from pulse.jit.language.simd import LANES
from pulse.jit.language.stack import stack_f32
from pulse.jit.registry import device, kernel
from pulse.jit.rows.instruction import Operand, ScalesOperand, packed_weights, reads, updates, weight_scales
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, run
from pulse.program.kernels.matmul.digits import DIGIT_SCRATCH_FLOATS, write_digits_of_row
from pulse.program.kernels.matmul.scales import offset_scales
from pulse.program.kernels.recurrent.gates import (
    STATES_PER_GROUP,
    SUM_FLOATS,
    begin_gru_reset,
    finish_gru,
    finish_gru_reset,
    gate_sums,
    load_sums,
    one_sum,
    packed_gates_size,
    store_sums,
)
from pulse.program.kernels.recurrent.layer import (
    ActivationFields,
    RecurrentFloatFields,
    RecurrentLayerFields,
    load_activations,
    run_frames,
    states_of_group,
)
from pulse.program.kernels.row_tuples import THREE, TWO, Indices


@device
def compute_gru(x: Pointer, old: Pointer, y: Pointer, H: int, sequences: Indices, parameters: Any) -> None:
    """Compute one frame, with the reset gate after the product; several sequences share one reading of the weights."""
    (w, scales, bias, cell, sums, digit_scratch), (_, rows, old_step, step) = parameters, sequences
    if rows > 1:
        states = states_of_group(old, rows, old_step)
        for n in range(0, H, LANES):
            store_sums(states, w + 3 * n * H, H, offset_scales(scales, 3 * n), sums, THREE)
            for j in range(rows):
                totals = load_sums(sums, j, THREE)
                finish_gru(x + j * 3 * H, old + j * old_step, bias, y + j * step, n, H, totals, cell)
    else:
        digits = write_digits_of_row(old, H, scales, digit_scratch)
        for n in range(0, H, LANES):
            totals = gate_sums(old, w + 3 * n * H, H, offset_scales(scales, 3 * n), digits, THREE)
            finish_gru(x, old, bias, y, n, H, totals, cell)


class GruFields(RecurrentLayerFields):
    """The fields of GRUs whose reset gate multiplies the recurrent product; see ``GruRow``."""

    gates = packed = 3
    f: ActivationFields
    g: ActivationFields
    bias: Operand = reads("f32", "H")


class GruRow(GruFields, RecurrentFloatFields):
    """A GRU whose reset gate multiplies the recurrent product (linear_before_reset = 1).

    ``z r = f(...); c = g(x + r * (h @ W + bias)); y = (1 - z) * c + z * h``; the bias is the recurrent one of c.
    """


@kernel
def gru(row: GruRow) -> None:
    cell, sums, digits = load_activations(row), stack_f32(SUM_FLOATS), stack_f32(DIGIT_SCRATCH_FLOATS)
    run_frames(row, 3, STATES_PER_GROUP, compute_gru, (row.W, row.scales, row.bias, cell, sums, digits))


class GruResetFields(RecurrentLayerFields):
    """The fields of GRUs whose reset gate multiplies the state; see ``GruResetRow``."""

    gates, packed = 3, 2
    f: ActivationFields
    g: ActivationFields
    last: Operand = packed_weights()
    last_scales: ScalesOperand = weight_scales()
    scratch: Operand = updates("f32", 2, "H")


class GruResetRow(GruResetFields, RecurrentFloatFields):
    """A GRU whose reset gate multiplies the state (linear_before_reset = 0).

    ``z r = f(...); c = g(x + (r * h) @ last); y = (1 - z) * c + z * h``. W has the weights of z and r, ``last`` those
    of c; scratch is [2, H].
    """

    def reaches(self) -> Iterator[Reach]:
        yield from super().reaches()
        yield self.last, run(packed_gates_size(self.H, self.H, 1))
        yield self.last_scales, run(packed_gates_size(self.H, 1, 1))


@device
def compute_gru_reset(x: Pointer, old: Pointer, y: Pointer, H: int, _: Indices, parameters: Any) -> None:
    """Compute one frame of one sequence, with the reset gate before the product."""
    (w, scales, last, last_scales), cell, z, digit_scratch = parameters
    digits = write_digits_of_row(old, H, scales, digit_scratch)
    for n in range(0, H, LANES):
        totals = gate_sums(old, w + 2 * n * H, H, offset_scales(scales, 2 * n), digits, TWO)
        begin_gru_reset(x, old, z, n, H, totals, cell)
    q = z + H
    digits = write_digits_of_row(q, H, last_scales, digit_scratch)
    for n in range(0, H, LANES):
        candidate = one_sum(q, last + n * H, H, offset_scales(last_scales, n), digits)
        finish_gru_reset(x + 2 * H, old, z, y, n, H - n, candidate, cell)


@kernel
def gru_reset(row: GruResetRow) -> None:
    weights, digits = (row.W, row.scales, row.last, row.last_scales), stack_f32(DIGIT_SCRATCH_FLOATS)
    run_frames(row, 3, 1, compute_gru_reset, (weights, load_activations(row), row.scratch, digits))
