"""LSTM layers; ``layer`` has the first fields of their rows."""

from collections.abc import Iterator

from pulse.jit.language.simd import LANES, vload
from pulse.jit.language.stack import stack_f32
from pulse.jit.registry import device, kernel
from pulse.jit.rows.instruction import Operand, reads, updates
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import NOTHING, Reach, run
from pulse.program.kernels.matmul.digits import DIGIT_SCRATCH_FLOATS, write_digits_of_row
from pulse.program.kernels.matmul.scales import Scales, offset_scales
from pulse.program.kernels.recurrent.gates import (
    STATES_PER_GROUP,
    SUM_FLOATS,
    ActivationParameters,
    finish_lstm,
    four_sums,
    store_sums,
)
from pulse.program.kernels.recurrent.layer import (
    ActivationFields,
    RecurrentFloatFields,
    RecurrentLayerFields,
    copy_state_rows,
    load_activation,
    prepare_frames,
    states_of_group,
    store_state,
)
from pulse.program.kernels.row_tuples import FOUR


@device
def lstm_frame(
    x: Pointer, old: Pointer, w: Pointer, scales: Scales, c: Pointer, peepholes: Pointer, y: Pointer,
    H: int, couples: int,
    f: ActivationParameters, g: ActivationParameters, out: ActivationParameters, clip: float, digit_scratch: Pointer,
) -> None:  # fmt: skip
    """Compute one frame of one sequence; replace c."""
    digits = write_digits_of_row(old, H, scales, digit_scratch)
    for n in range(0, H, LANES):
        i, o, forget, candidate = four_sums(old, w + 4 * n * H, H, offset_scales(scales, 4 * n), digits)
        finish_lstm(
            x, c, peepholes, y, n, H, couples, i, o, forget, candidate,
            f, g, out, clip,
        )  # fmt: skip


@device
def lstm_frame_of_group(
    x: Pointer, old: Pointer, w: Pointer, scales: Scales, c: Pointer, peepholes: Pointer, y: Pointer,
    H: int, couples: int, rows: int, old_step: int, step: int, sums: Pointer,
    f: ActivationParameters, g: ActivationParameters, out: ActivationParameters, clip: float,
) -> None:  # fmt: skip
    """Compute one frame of two to four sequences, which share one reading of the weights; c is replaced."""
    states = states_of_group(old, rows, old_step)
    for n in range(0, H, LANES):
        store_sums(states, w + 4 * n * H, H, offset_scales(scales, 4 * n), sums, FOUR)
        for j in range(rows):
            i, o = vload(sums, 64 * j), vload(sums, 64 * j + 16)
            forget, candidate = vload(sums, 64 * j + 32), vload(sums, 64 * j + 48)
            finish_lstm(
                x + j * 4 * H, c + j * H, peepholes, y + j * step, n, H, couples, i, o, forget, candidate,
                f, g, out, clip,
            )  # fmt: skip


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
def load_cell(row: LstmFields) -> None:
    """Load the state of the cell, if a sequence begins."""
    if row.reload and row.clock[0] == 0:
        copy_state_rows(row.c, row.c0, row.B, row.H, row.step_c0_row)


@kernel
def lstm(row: LstmRow) -> None:
    """Compute all frames of one stream."""
    x, w, scales, y, h, c, peepholes = row.x, row.W, row.scales, row.y, row.h, row.c, row.peepholes
    f, g, out, couples = load_activation(row.f), load_activation(row.g), load_activation(row.out), row.couples
    T, B, H, frame, step, reverse = row.T, row.B, row.H, row.step_frame, row.step_row, row.reverse
    clip = row.clip
    load_cell(row)
    start, stop = prepare_frames(row)
    back, sums, digit_scratch = (
        frame if reverse else -frame,
        stack_f32(SUM_FLOATS),
        stack_f32(DIGIT_SCRATCH_FLOATS),
    )
    for i in range(start, stop):
        t = T - 1 - i if reverse else i
        for b in range(0, B, STATES_PER_GROUP):
            new, x_t, rows = y + (t * frame + b * step), x + (t * B + b) * 4 * H, min(STATES_PER_GROUP, B - b)
            old, old_step = (new + back, step) if i > start else (h + b * H, H)
            if rows > 1:
                lstm_frame_of_group(
                    x_t, old, w, scales, c + b * H, peepholes, new, H, couples, rows, old_step, step, sums,
                    f, g, out, clip,
                )  # fmt: skip
            else:
                lstm_frame(
                    x_t, old, w, scales, c + b * H, peepholes, new, H, couples,
                    f, g, out, clip, digit_scratch,
                )  # fmt: skip
    store_state(row, reverse, start, stop)
