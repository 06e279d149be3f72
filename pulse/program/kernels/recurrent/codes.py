"""Recurrent layers whose states become int8 codes or bf16 before they are multiplied, as the weights are.

W are codes [H, G*H] from ``pack_codes``, with a scale for each column if they are int8; the sums of a frame go to
scratch first. ``layer`` has the first fields of the rows.
"""

from collections.abc import Iterator
from operator import add, mul
from typing import Any

from pulse.jit.language.raw import as_i32
from pulse.jit.language.simd import LANES, vload_part, vstore_part
from pulse.jit.language.stack import stack_f32
from pulse.jit.language.tuples import each
from pulse.jit.registry import device, kernel
from pulse.jit.rows.instruction import Operand, reads, updates
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, require, run
from pulse.ops.quantize_codes import MAX_ROW_ELEMENTS
from pulse.program.kernels.matmul.product_codes import (
    PANEL_COLUMNS,
    multiply_rows_of_codes,
    packed_codes_size,
    row_words,
)
from pulse.program.kernels.matmul.scales import Scales
from pulse.program.kernels.quantize_activations import ROW_FLOATS, encode_row
from pulse.program.kernels.recurrent.gates import (
    activate,
    begin_gru_reset,
    finish_gru,
    finish_gru_reset,
    finish_lstm,
)
from pulse.program.kernels.recurrent.gru import GruFields, GruResetFields
from pulse.program.kernels.recurrent.layer import (
    ActivationFields,
    RecurrentLayerFields,
    load_activation,
    load_activations,
    run_frames,
)
from pulse.program.kernels.recurrent.lstm import LstmFields, load_lstm_activations, load_memory
from pulse.program.kernels.row_tuples import FOUR, ONE, THREE, TWO, Indices, Vectors


class RecurrentCodesFields(RecurrentLayerFields):
    """The first fields of these rows; zeros has an element for each column of W."""

    rounds_activations = True
    zeros: Operand = reads("f32")
    sums: Operand = updates("f32")

    def reaches(self) -> Iterator[Reach]:
        require(0 < self.H <= MAX_ROW_ELEMENTS, f"states of {self.H} elements")
        yield from super().reaches()
        columns = self.packed * self.H
        yield self.W, run(packed_codes_size(self.H, columns))
        yield self.scales, run(columns)
        yield self.zeros, run(columns)
        yield self.sums, run(columns)


class RnnOfCodesRow(RecurrentCodesFields):
    """``y[t] = f(x[t] + y[t-1] @ W)``."""

    gates = packed = 1
    f: ActivationFields


class GruOfCodesRow(GruFields, RecurrentCodesFields):
    """A GRU whose reset gate multiplies the recurrent product; see ``GruRow``."""


class GruResetOfCodesRow(GruResetFields, RecurrentCodesFields):
    """A GRU whose reset gate multiplies the state, which becomes codes afterwards; see ``GruResetRow``."""

    def reaches(self) -> Iterator[Reach]:
        yield from super().reaches()
        yield self.last, run(packed_codes_size(self.H, self.H))
        yield self.last_scales, run(self.H)


class LstmOfCodesRow(LstmFields, RecurrentCodesFields):
    """An LSTM."""


@device
def sum_codes(h: Pointer, H: int, N: int, w: Pointer, scales: Scales, codes: Any) -> None:
    """Compute ``sums[n] = sum_k c[k] * scale * w[k, n] * scales[n]``, n < N, from the codes of a state."""
    zeros, sums, code_scratch = codes
    coded = encode_row(h, H, scales, code_scratch)
    words = row_words(H, scales)
    multiply_rows_of_codes((coded,), words, as_i32(w), scales, zeros, (sums,), N, 0, PANEL_COLUMNS)


@device
def sums_at(codes: Any, n: int, H: int, gates: Indices) -> Vectors:
    """Return the sums of the units n … n + 15 of each gate."""
    return each(vload_part, codes[1], each(add, each(mul, gates, H), n), H - n)


@device
def compute_rnn_of_codes(x: Pointer, old: Pointer, y: Pointer, H: int, _: Indices, parameters: Any) -> None:
    w, scales, codes, f, clip = parameters
    sum_codes(old, H, H, w, scales, codes)
    for n in range(0, H, LANES):
        (total,) = sums_at(codes, n, H, ONE)
        vstore_part(y, n, H - n, activate(vload_part(x, n, H - n) + total, f, clip))


@kernel
def rnn_of_codes(row: RnnOfCodesRow) -> None:
    codes = row.zeros, row.sums, stack_f32(ROW_FLOATS)
    run_frames(row, 1, 1, compute_rnn_of_codes, (row.W, row.scales, codes, load_activation(row.f), row.clip))


@device
def compute_gru_of_codes(x: Pointer, old: Pointer, y: Pointer, H: int, _: Indices, parameters: Any) -> None:
    w, scales, codes, bias, cell = parameters
    sum_codes(old, H, 3 * H, w, scales, codes)
    for n in range(0, H, LANES):
        finish_gru(x, old, bias, y, n, H, sums_at(codes, n, H, THREE), cell)


@kernel
def gru_of_codes(row: GruOfCodesRow) -> None:
    codes = row.zeros, row.sums, stack_f32(ROW_FLOATS)
    run_frames(row, 3, 1, compute_gru_of_codes, (row.W, row.scales, codes, row.bias, load_activations(row)))


@device
def compute_gru_reset_of_codes(
    x: Pointer, old: Pointer, y: Pointer, H: int, _: Indices, parameters: Any
) -> None:
    (w, scales, last, last_scales), codes, z, cell = parameters
    sum_codes(old, H, 2 * H, w, scales, codes)
    for n in range(0, H, LANES):
        begin_gru_reset(x, old, z, n, H, sums_at(codes, n, H, TWO), cell)
    sum_codes(z + H, H, H, last, last_scales, codes)
    for n in range(0, H, LANES):
        (candidate,) = sums_at(codes, n, H, ONE)
        finish_gru_reset(x + 2 * H, old, z, y, n, H - n, candidate, cell)


@kernel
def gru_reset_of_codes(row: GruResetOfCodesRow) -> None:
    weights = row.W, row.scales, row.last, row.last_scales
    codes = row.zeros, row.sums, stack_f32(ROW_FLOATS)
    run_frames(row, 3, 1, compute_gru_reset_of_codes, (weights, codes, row.scratch, load_activations(row)))


@device
def compute_lstm_of_codes(
    x: Pointer, old: Pointer, y: Pointer, H: int, sequences: Indices, parameters: Any
) -> None:
    (w, scales, c, peepholes), codes, couples, cell = parameters
    sum_codes(old, H, 4 * H, w, scales, codes)
    for n in range(0, H, LANES):
        finish_lstm(x, c + sequences[0] * H, peepholes, y, n, H, couples, sums_at(codes, n, H, FOUR), cell)


@kernel
def lstm_of_codes(row: LstmOfCodesRow) -> None:
    load_memory(row)
    weights, codes = (row.W, row.scales, row.c, row.peepholes), (row.zeros, row.sums, stack_f32(ROW_FLOATS))
    run_frames(row, 4, 1, compute_lstm_of_codes, (weights, codes, row.couples, load_lstm_activations(row)))
