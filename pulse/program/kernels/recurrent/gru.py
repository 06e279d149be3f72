"""GRU layers; ``layer`` has the first fields of their rows."""

from collections.abc import Iterator

from pulse.jit.language.simd import LANES, vload, vload_part, vstore_part
from pulse.jit.language.stack import stack_f32
from pulse.jit.registry import device, kernel
from pulse.jit.rows.instruction import Operand, ScalesOperand, packed_weights, reads, updates, weight_scales
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, run
from pulse.program.kernels.matmul.digits import DIGIT_SCRATCH_FLOATS, write_digits_of_row
from pulse.program.kernels.matmul.scales import Scales, offset_scales
from pulse.program.kernels.recurrent.gates import (
    STATES_PER_GROUP,
    SUM_FLOATS,
    ActivationParameters,
    activate,
    finish_gru,
    finish_gru_reset,
    gate_sums,
    one_sum,
    packed_gates_size,
    store_sums,
)
from pulse.program.kernels.recurrent.layer import (
    ActivationFields,
    RecurrentFloatFields,
    RecurrentLayerFields,
    load_activation,
    prepare_frames,
    states_of_group,
    store_state,
)
from pulse.program.kernels.row_tuples import THREE, TWO


@device
def gru_frame(
    x: Pointer, old: Pointer, w: Pointer, scales: Scales, bias: Pointer, y: Pointer, H: int,
    f: ActivationParameters, g: ActivationParameters, clip: float, digit_scratch: Pointer,
) -> None:  # fmt: skip
    """Compute one frame of one sequence, with the reset gate after the product."""
    digits = write_digits_of_row(old, H, scales, digit_scratch)
    for n in range(0, H, LANES):
        z, r, candidate = gate_sums(old, w + 3 * n * H, H, offset_scales(scales, 3 * n), digits, THREE)
        finish_gru(x, old, bias, y, n, H, z, r, candidate, f, g, clip)


@device
def gru_frame_of_group(
    x: Pointer, old: Pointer, w: Pointer, scales: Scales, bias: Pointer, y: Pointer, H: int,
    rows: int, old_step: int, step: int, sums: Pointer,
    f: ActivationParameters, g: ActivationParameters, clip: float,
) -> None:  # fmt: skip
    """Compute one frame of two to four sequences, which share one reading of the weights."""
    states = states_of_group(old, rows, old_step)
    for n in range(0, H, LANES):
        store_sums(states, w + 3 * n * H, H, offset_scales(scales, 3 * n), sums, THREE)
        for j in range(rows):
            z, r, candidate = vload(sums, 64 * j), vload(sums, 64 * j + 16), vload(sums, 64 * j + 32)
            finish_gru(
                x + j * 3 * H, old + j * old_step, bias, y + j * step, n, H, z, r, candidate,
                f, g, clip,
            )  # fmt: skip


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
    """Compute all frames of one stream."""
    x, w, scales, y, h, bias, sums = row.x, row.W, row.scales, row.y, row.h, row.bias, stack_f32(SUM_FLOATS)
    f, g = load_activation(row.f), load_activation(row.g)
    T, B, H, frame, step, reverse = row.T, row.B, row.H, row.step_frame, row.step_row, row.reverse
    clip = row.clip
    start, stop = prepare_frames(row)
    back, digit_scratch = frame if reverse else -frame, stack_f32(DIGIT_SCRATCH_FLOATS)
    for i in range(start, stop):
        t = T - 1 - i if reverse else i
        for b in range(0, B, STATES_PER_GROUP):
            new, x_t, rows = y + (t * frame + b * step), x + (t * B + b) * 3 * H, min(STATES_PER_GROUP, B - b)
            old, old_step = (new + back, step) if i > start else (h + b * H, H)
            if rows > 1:
                gru_frame_of_group(x_t, old, w, scales, bias, new, H, rows, old_step, step, sums, f, g, clip)
            else:
                gru_frame(x_t, old, w, scales, bias, new, H, f, g, clip, digit_scratch)
    store_state(row, reverse, start, stop)


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
def gru_reset_frame(
    x: Pointer, old: Pointer, w: Pointer, scales: Scales, last: Pointer, last_scales: Scales,
    y: Pointer, z: Pointer, q: Pointer, H: int,
    f: ActivationParameters, g: ActivationParameters, clip: float, digit_scratch: Pointer,
) -> None:  # fmt: skip
    """Compute one frame of one sequence, with the reset gate before the product; z and q are scratch [H]."""
    digits = write_digits_of_row(old, H, scales, digit_scratch)
    for n in range(0, H, LANES):
        rest = H - n
        update, r = gate_sums(old, w + 2 * n * H, H, offset_scales(scales, 2 * n), digits, TWO)
        update = activate(vload_part(x, n, rest) + update, f, clip)
        r = activate(vload_part(x, H + n, rest) + r, f, clip)
        vstore_part(z, n, rest, update)
        vstore_part(q, n, rest, r * vload_part(old, n, rest))
    digits = write_digits_of_row(q, H, last_scales, digit_scratch)
    for n in range(0, H, LANES):
        rest = H - n
        candidate = one_sum(q, last + n * H, H, offset_scales(last_scales, n), digits)
        finish_gru_reset(x + 2 * H, old, z, y, n, rest, candidate, g, clip)


@kernel
def gru_reset(row: GruResetRow) -> None:
    """Compute all frames of one stream."""
    x, w, scales, y, h, scratch = row.x, row.W, row.scales, row.y, row.h, row.scratch
    last, last_scales, f, g = row.last, row.last_scales, load_activation(row.f), load_activation(row.g)
    T, B, H, frame, step, reverse = row.T, row.B, row.H, row.step_frame, row.step_row, row.reverse
    clip = row.clip
    start, stop = prepare_frames(row)
    back, digit_scratch = frame if reverse else -frame, stack_f32(DIGIT_SCRATCH_FLOATS)
    for i in range(start, stop):
        t = T - 1 - i if reverse else i
        for b in range(B):
            new = y + (t * frame + b * step)
            old = new + back if i > start else h + b * H
            gru_reset_frame(
                x + (t * B + b) * 3 * H, old, w, scales, last, last_scales, new, scratch, scratch + H, H,
                f, g, clip, digit_scratch,
            )  # fmt: skip
    store_state(row, reverse, start, stop)
