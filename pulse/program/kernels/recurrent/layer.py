"""What recurrent layers share: one instruction runs all frames of a pulse, or whole sequences, for a batch."""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from pulse.jit.language.simd import LANES, vload_part, vstore_part, vzero
from pulse.jit.registry import device
from pulse.jit.rows.instruction import (
    Instruction,
    Operand,
    RowFields,
    ScalesOperand,
    packed_weights,
    reads,
    updates,
    weight_scales,
    writes,
)
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import NOTHING, Reach, require, run
from pulse.program.kernels.recurrent.gates import ActivationParameters, packed_gates_size
from pulse.program.kernels.row_tuples import Pointers
from pulse.program.kernels.time import stream_span


class ActivationFields(RowFields):
    """An activation; its code is from ``gates.ACTIVATIONS``."""

    code: int
    alpha: float
    beta: float


class RecurrentFields(Instruction):
    """The frames of a layer, and its state.

    Frames of y are ``step_frame`` elements apart, rows of a frame ``step_row``, rows of h0 ``step_h0_row``.

    Frame j of ``end`` frames is at index j + offset of the concatenated pulses. For frames outside the
    stream, y is zero and the state stays. If the clock is 0 and ``reload`` is set, the state is loaded from h0 first;
    so with a constant clock of 0 every run is a separate sequence. A clip of 0 means no clip.
    """

    y: Operand = writes("f32")
    h: Operand = updates("f32", "B", "H")
    h0: Operand = reads("f32", rarely=True)
    clock: Operand = reads("i64", 1)
    end: Operand = reads("i64", 1)
    offset: int
    T: int
    B: int
    H: int
    step_h0_row: int
    step_frame: int
    step_row: int
    reload: bool
    clip: float

    def reaches(self) -> Iterator[Reach]:
        require(min(self.T, self.B, self.H) >= 0, "sizes below 0")
        yield self.y, run(self.T, self.step_frame) + run(self.B, self.step_row) + run(self.H)
        yield self.h0, run(self.B, self.step_h0_row) + run(self.H) if self.reload else NOTHING


class RecurrentLayerFields(RecurrentFields):
    """One layer, its projected frames, and its recurrent weights.

    x are the frames times the input weights, plus all biases outside gate products: [T, B, G*H], dense.
    """

    gates: ClassVar[int]
    packed: ClassVar[int]
    """The number of gates whose weights are in W."""
    x: Operand = reads("f32")
    W: Operand = packed_weights()
    scales: ScalesOperand = weight_scales()
    reverse: bool

    def multiply_adds(self) -> int:
        return self.gates * self.T * self.B * self.H * self.H

    def reaches(self) -> Iterator[Reach]:
        yield from super().reaches()
        yield self.x, run(self.T * self.B * self.gates * self.H)


class RecurrentFloatFields(RecurrentLayerFields):
    """The first fields of layers with weights from ``pack_gates``."""

    def reaches(self) -> Iterator[Reach]:
        yield from super().reaches()
        yield self.W, run(packed_gates_size(self.H, self.H, self.packed))
        yield self.scales, run(packed_gates_size(self.H, 1, self.packed))


class InterleavedRecurrentFields(Instruction):
    """The first fields of layers of sixteen streams in the middle of their streams.

    All T frames of a pulse are frames of the stream. x are the frames times the input weights, plus the biases outside
    gate products. Frames of y are ``step_frame`` elements apart, rows of a frame ``step_row``.
    """

    y: Operand = writes("f32")
    h: Operand = updates("f32")
    x: Operand = reads("f32")
    T: int
    B: int
    H: int
    step_frame: int
    step_row: int
    clip: float
    f: ActivationFields
    g: ActivationFields


@device
def load_activation(words: ActivationFields) -> ActivationParameters:
    return words.code, words.alpha, words.beta


@device
def load_activations(row: Any) -> tuple[ActivationParameters, ActivationParameters, float]:
    """Load the activations f and g of a row, and its clip."""
    return load_activation(row.f), load_activation(row.g), row.clip


@device
def copy_row(target: Pointer, source: Pointer, count: int) -> None:
    for n in range(0, count, LANES):
        vstore_part(target, n, count - n, vload_part(source, n, count - n))


@device
def copy_state_rows(target: Pointer, source: Pointer, rows: int, count: int, step: int) -> None:
    """Copy rows of ``count`` elements, ``step`` apart in the source and dense in the target."""
    for b in range(rows):
        copy_row(target + b * count, source + b * step, count)


@device
def clear_frames(y: Pointer, first: int, last: int, rows: int, count: int, frame: int, step: int) -> None:
    """Write zeros to the frames ``first .. last - 1``."""
    for t in range(first, last):
        for b in range(rows):
            for n in range(0, count, LANES):
                vstore_part(y + t * frame + b * step, n, count - n, vzero())


@device
def prepare_frames(row: RecurrentFields) -> tuple[int, int]:
    """Load h if a sequence begins, clear the frames outside the stream; return the range of the frames inside it."""
    T, B, H, y, frame, step = row.T, row.B, row.H, row.y, row.step_frame, row.step_row
    start, stop = stream_span(row.clock, row.end, row.offset, T)
    if row.reload and row.clock[0] == 0:
        copy_state_rows(row.h, row.h0, B, H, row.step_h0_row)
    clear_frames(y, 0, start, B, H, frame, step)
    clear_frames(y, stop, T, B, H, frame, step)
    return start, stop


@device
def states_of_group(old: Pointer, rows: int, step: int) -> Pointers:
    """Return the addresses of two to four states that are ``step`` apart; past the last, of the last one."""
    return old, old + step, old + min(2, rows - 1) * step, old + min(3, rows - 1) * step


@device
def run_frames(
    row: RecurrentLayerFields, gates: int, group: int, compute: Callable[..., None], parameters: Any
) -> None:
    """Compute the frames of a pulse in order, of up to ``group`` sequences at a time; then keep the last as the state.

    ``compute(x, old, y, H, sequences, parameters)`` computes one frame from the states ``old``; sequences are the first
    one, their number, and the steps between their old and their new states.
    """
    x, y, h, T, B, H, frame, step, reverse = (
        row.x, row.y, row.h, row.T, row.B, row.H, row.step_frame, row.step_row, row.reverse,
    )  # fmt: skip
    start, stop = prepare_frames(row)
    back = frame if reverse else -frame
    for i in range(start, stop):
        t, b = T - 1 - i if reverse else i, 0
        while b < B:
            new, x_t = y + (t * frame + b * step), x + (t * B + b) * gates * H
            old, old_step = (new + back, step) if i > start else (h + b * H, H)
            compute(x_t, old, new, H, (b, min(group, B - b), old_step, step), parameters)
            b += group
    if start < stop:
        last = y + (T - stop if reverse else stop - 1) * frame
        copy_state_rows(h, last, B, H, step)
