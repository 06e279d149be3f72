"""Tensors that are a function of the position alone."""

from collections.abc import Sequence

import numpy as np

from pulse.dim import TDim
from pulse.facts import Array, DType, TypedFact, dtype_name
from pulse.ops.clock import Clock
from pulse.ops.op import Env, Op, Positional, Relation
from pulse.ops.stateful import Stateful
from pulse.ops.work import Work
from pulse.support.record import record
from pulse.support.wording import count_of


@record
class Range(Op):
    """Evenly spaced numbers.

    Output   y [length],  y[j] = start + j*step
    Stream   positional
    Source   ONNX Range-11

    start, step    the first number, and the distance of two neighbours
    length, dtype  how many numbers there are, and their type
    """

    start: float | int
    step: float | int
    length: TDim
    dtype: DType
    positional = True

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        return [TypedFact(self.dtype, (self.length,))]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        return [(self.start + np.arange(self.length.eval(env)) * self.step).astype(self.dtype)]

    def work(self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Work:
        return Work.of_each(outputs[0])

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        return Positional(
            0,
            self.length,
            lambda offset, frames: Positions(self.start, self.step, self.dtype, offset, frames),
        )

    def detail(self) -> str:
        return f"{self.start} + j*{self.step}, {count_of(self.length, 'frame')}, {dtype_name(self.dtype)}"


@record
class Positions(Stateful):
    """A range as a stream.

    Output   y [frames]: index i of the concatenated pulses holds ``start + (i - offset)*step_size``

    start, step_size  the first number, and the distance of two neighbours
    dtype             the type of the numbers
    offset            the index of the first number
    frames            the frames of a pulse
    """

    start: float | int
    step_size: float | int
    dtype: DType
    offset: int
    frames: int
    detail_format = "{start} + j*{step_size}, offset {offset}"

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        return [TypedFact(self.dtype, (TDim.of(self.frames),))]

    def step(self, inputs: Sequence[Array], state: list[Array], clock: Clock) -> list[Array]:
        index = clock.pulse * self.frames - self.offset + np.arange(self.frames)
        return [(self.start + index * self.step_size).astype(self.dtype)]

    def work(self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Work:
        return Work.of_each(outputs[0])


@record
class TableRows(Stateful):
    """A table read row by row as a stream.

    Input    table [..., N, ...], constant
    Output   y [..., frames, ...]: index i of the concatenated pulses holds row ``start + (i - offset)*step_size``;
             zeros outside the table

    axis              the axis of the rows
    start, step_size  the first row, and the distance of two neighbours
    offset            the index of the first row
    frames            the frames of a pulse
    """

    axis: int
    start: int
    step_size: int
    offset: int
    frames: int
    copies = True
    detail_format = "axis {axis} from {start} step {step_size}, offset {offset}"

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        return [inputs[0].with_size(self.axis, self.frames)]

    def step(self, inputs: Sequence[Array], state: list[Array], clock: Clock) -> list[Array]:
        (table,) = inputs
        rows = (
            self.start + (clock.pulse * self.frames - self.offset + np.arange(self.frames)) * self.step_size
        )
        inside = (rows >= 0) & (rows < table.shape[self.axis])
        y = np.take(table, np.where(inside, rows, 0), self.axis)
        y[(slice(None),) * self.axis + (~inside,)] = 0
        return [y]
