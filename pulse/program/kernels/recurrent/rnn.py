"""RNN layers, which have no gates; ``layer`` has the first fields of their rows."""

from typing import Any

from pulse.jit.language.simd import LANES, vload_part, vstore_part
from pulse.jit.language.stack import stack_f32
from pulse.jit.registry import device, kernel
from pulse.jit.rows.pointer import Pointer
from pulse.program.kernels.matmul.digits import DIGIT_SCRATCH_FLOATS, write_digits_of_row
from pulse.program.kernels.matmul.scales import offset_scales
from pulse.program.kernels.recurrent.gates import activate, one_sum
from pulse.program.kernels.recurrent.layer import (
    ActivationFields,
    RecurrentFloatFields,
    load_activation,
    run_frames,
)
from pulse.program.kernels.row_tuples import Indices


class RnnRow(RecurrentFloatFields):
    """``y[t] = f(x[t] + y[t-1] @ W)``."""

    gates = packed = 1
    f: ActivationFields


@device
def compute_rnn(x: Pointer, old: Pointer, y: Pointer, H: int, _: Indices, parameters: Any) -> None:
    w, scales, f, clip, digit_scratch = parameters
    digits = write_digits_of_row(old, H, scales, digit_scratch)
    for n in range(0, H, LANES):
        rest = H - n
        v = vload_part(x, n, rest) + one_sum(old, w + n * H, H, offset_scales(scales, n), digits)
        vstore_part(y, n, rest, activate(v, f, clip))


@kernel
def rnn(row: RnnRow) -> None:
    digits = stack_f32(DIGIT_SCRATCH_FLOATS)
    run_frames(row, 1, 1, compute_rnn, (row.W, row.scales, load_activation(row.f), row.clip, digits))
