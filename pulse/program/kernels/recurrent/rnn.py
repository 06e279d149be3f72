"""RNN layers, which have no gates; ``layer`` has the first fields of their rows."""

from pulse.jit.language.simd import LANES, vload_part, vstore_part
from pulse.jit.language.stack import stack_f32
from pulse.jit.registry import device, kernel
from pulse.jit.rows.pointer import Pointer
from pulse.program.kernels.matmul.digits import DIGIT_SCRATCH_FLOATS, write_digits_of_row
from pulse.program.kernels.matmul.scales import Scales, offset_scales
from pulse.program.kernels.recurrent.gates import ActivationParameters, activate, one_sum
from pulse.program.kernels.recurrent.layer import (
    ActivationFields,
    RecurrentFloatFields,
    load_activation,
    prepare_frames,
    store_state,
)


class RnnRow(RecurrentFloatFields):
    """``y[t] = f(x[t] + y[t-1] @ W)``."""

    gates = packed = 1
    f: ActivationFields


@device
def rnn_frame(
    x: Pointer, old: Pointer, w: Pointer, scales: Scales, y: Pointer, H: int,
    f: ActivationParameters, clip: float, digit_scratch: Pointer,
) -> None:  # fmt: skip
    """Compute one frame of one sequence."""
    digits = write_digits_of_row(old, H, scales, digit_scratch)
    for n in range(0, H, LANES):
        rest = H - n
        v = vload_part(x, n, rest) + one_sum(old, w + n * H, H, offset_scales(scales, n), digits)
        vstore_part(y, n, rest, activate(v, f, clip))


@kernel
def rnn(row: RnnRow) -> None:
    """Compute all frames of one stream."""
    x, w, scales, y, h, f = row.x, row.W, row.scales, row.y, row.h, load_activation(row.f)
    T, B, H, frame, step, reverse = row.T, row.B, row.H, row.step_frame, row.step_row, row.reverse
    clip = row.clip
    start, stop = prepare_frames(row)
    back, digit_scratch = frame if reverse else -frame, stack_f32(DIGIT_SCRATCH_FLOATS)
    for i in range(start, stop):
        t = T - 1 - i if reverse else i
        for b in range(B):
            new = y + (t * frame + b * step)
            old = new + back if i > start else h + b * H
            rnn_frame(x + (t * B + b) * H, old, w, scales, new, H, f, clip, digit_scratch)
    store_state(row, reverse, start, stop)
