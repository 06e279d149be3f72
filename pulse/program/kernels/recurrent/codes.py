"""Recurrent layers whose states become int8 codes or bf16 before they are multiplied, as the weights are.

W are codes [H, G*H] from ``pack_codes``, with a scale for each column if they are int8; the sums of a frame go to
scratch first. ``layer`` has the first fields of the rows.
"""

from collections.abc import Iterator

from pulse.jit.language.raw import as_i32
from pulse.jit.language.simd import LANES, vload_part, vstore_part
from pulse.jit.language.stack import stack_f32
from pulse.jit.registry import device, kernel
from pulse.jit.rows.instruction import Operand, ScalesOperand, packed_weights, reads, updates, weight_scales
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, require, run
from pulse.ops.quantize_codes import MAX_ROW_ELEMENTS
from pulse.program.kernels.matmul.product_codes import (
    PANEL_COLUMNS,
    multiply_rows_of_codes,
    packed_codes_size,
    words_of,
)
from pulse.program.kernels.matmul.scales import Scales
from pulse.program.kernels.quantize_activations import ROW_FLOATS, encode_row
from pulse.program.kernels.recurrent.gates import activate, finish_gru, finish_gru_reset, finish_lstm
from pulse.program.kernels.recurrent.gru import GruFields, GruResetFields
from pulse.program.kernels.recurrent.layer import (
    ActivationFields,
    RecurrentLayerFields,
    load_activation,
    prepare_frames,
    store_state,
)
from pulse.program.kernels.recurrent.lstm import LstmFields, load_cell


class RecurrentCodesFields(RecurrentLayerFields):
    """The first fields of these rows; zeros has an element for each column of W."""

    rounds_activations = True
    W: Operand = packed_weights()
    scales: ScalesOperand = weight_scales()
    zeros: Operand = reads("f32")
    sums: Operand = updates("f32")
    reverse: bool

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
def sum_codes(
    h: Pointer,
    w: Pointer,
    scales: Scales,
    zeros: Pointer,
    sums: Pointer,
    H: int,
    N: int,
    code_scratch: Pointer,
) -> None:
    """Compute ``sums[n] = sum_k c[k] * scale * w[k, n] * scales[n]``, n < N, from the codes of a state."""
    coded = encode_row(h, H, scales, code_scratch)
    words = words_of(H, scales)
    multiply_rows_of_codes((coded,), words, as_i32(w), scales, zeros, (sums,), N, 0, PANEL_COLUMNS)


@kernel
def rnn_of_codes(row: RnnOfCodesRow) -> None:
    """Compute all frames of one stream."""
    x, w, scales, zeros, sums, y, h = row.x, row.W, row.scales, row.zeros, row.sums, row.y, row.h
    f = load_activation(row.f)
    T, B, H, frame, step, reverse = row.T, row.B, row.H, row.step_frame, row.step_row, row.reverse
    clip = row.clip
    start, stop = prepare_frames(row)
    back, code_scratch = frame if reverse else -frame, stack_f32(ROW_FLOATS)
    for i in range(start, stop):
        t = T - 1 - i if reverse else i
        for b in range(B):
            new, x_t = y + (t * frame + b * step), x + (t * B + b) * H
            sum_codes(new + back if i > start else h + b * H, w, scales, zeros, sums, H, H, code_scratch)
            for n in range(0, H, LANES):
                v = vload_part(x_t, n, H - n) + vload_part(sums, n, H - n)
                vstore_part(new, n, H - n, activate(v, f, clip))
    store_state(row, reverse, start, stop)


@kernel
def gru_of_codes(row: GruOfCodesRow) -> None:
    """Compute all frames of one stream."""
    x, w, scales, zeros, sums, y, h = row.x, row.W, row.scales, row.zeros, row.sums, row.y, row.h
    bias, f, g = row.bias, load_activation(row.f), load_activation(row.g)
    T, B, H, frame, step, reverse = row.T, row.B, row.H, row.step_frame, row.step_row, row.reverse
    clip = row.clip
    start, stop = prepare_frames(row)
    back, code_scratch = frame if reverse else -frame, stack_f32(ROW_FLOATS)
    for i in range(start, stop):
        t = T - 1 - i if reverse else i
        for b in range(B):
            new, x_t = y + (t * frame + b * step), x + (t * B + b) * 3 * H
            old = new + back if i > start else h + b * H
            sum_codes(old, w, scales, zeros, sums, H, 3 * H, code_scratch)
            for n in range(0, H, LANES):
                rest = H - n
                z, r = vload_part(sums, n, rest), vload_part(sums, H + n, rest)
                candidate = vload_part(sums, 2 * H + n, rest)
                finish_gru(x_t, old, bias, new, n, H, z, r, candidate, f, g, clip)
    store_state(row, reverse, start, stop)


@kernel
def gru_reset_of_codes(row: GruResetOfCodesRow) -> None:
    """Compute all frames of one stream."""
    x, w, scales, zeros, sums, y, h = row.x, row.W, row.scales, row.zeros, row.sums, row.y, row.h
    last, last_scales, scratch = row.last, row.last_scales, row.scratch
    f, g = load_activation(row.f), load_activation(row.g)
    T, B, H, frame, step, reverse = row.T, row.B, row.H, row.step_frame, row.step_row, row.reverse
    clip = row.clip
    start, stop = prepare_frames(row)
    back, code_scratch = frame if reverse else -frame, stack_f32(ROW_FLOATS)
    for i in range(start, stop):
        t = T - 1 - i if reverse else i
        for b in range(B):
            new, x_t = y + (t * frame + b * step), x + (t * B + b) * 3 * H
            old, z, q = new + back if i > start else h + b * H, scratch, scratch + H
            sum_codes(old, w, scales, zeros, sums, H, 2 * H, code_scratch)
            for n in range(0, H, LANES):
                rest = H - n
                vstore_part(
                    z, n, rest, activate(vload_part(x_t, n, rest) + vload_part(sums, n, rest), f, clip)
                )
                r = activate(vload_part(x_t, H + n, rest) + vload_part(sums, H + n, rest), f, clip)
                vstore_part(q, n, rest, r * vload_part(old, n, rest))
            sum_codes(q, last, last_scales, zeros, sums, H, H, code_scratch)
            for n in range(0, H, LANES):
                finish_gru_reset(x_t + 2 * H, old, z, new, n, H - n, vload_part(sums, n, H - n), g, clip)
    store_state(row, reverse, start, stop)


@kernel
def lstm_of_codes(row: LstmOfCodesRow) -> None:
    """Compute all frames of one stream."""
    x, w, scales, zeros, sums, y, h = row.x, row.W, row.scales, row.zeros, row.sums, row.y, row.h
    c, peepholes, couples = row.c, row.peepholes, row.couples
    f, g, out = load_activation(row.f), load_activation(row.g), load_activation(row.out)
    T, B, H, frame, step, reverse = row.T, row.B, row.H, row.step_frame, row.step_row, row.reverse
    clip = row.clip
    load_cell(row)
    start, stop = prepare_frames(row)
    back, code_scratch = frame if reverse else -frame, stack_f32(ROW_FLOATS)
    for i in range(start, stop):
        t = T - 1 - i if reverse else i
        for b in range(B):
            new, x_t = y + (t * frame + b * step), x + (t * B + b) * 4 * H
            sum_codes(new + back if i > start else h + b * H, w, scales, zeros, sums, H, 4 * H, code_scratch)
            for n in range(0, H, LANES):
                rest = H - n
                input_gate, o = vload_part(sums, n, rest), vload_part(sums, H + n, rest)
                forget, candidate = vload_part(sums, 2 * H + n, rest), vload_part(sums, 3 * H + n, rest)
                finish_lstm(
                    x_t, c + b * H, peepholes, new, n, H, couples, input_gate, o, forget, candidate,
                    f, g, out, clip,
                )  # fmt: skip
    store_state(row, reverse, start, stop)
