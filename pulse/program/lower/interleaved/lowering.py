"""Convert the instructions of one stream for sixteen streams with interleaved memories."""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np

from pulse.facts import F32, Array
from pulse.jit.language.simd import LANES
from pulse.jit.rows.fields import fields_of
from pulse.jit.rows.instruction import Instruction, number_fields
from pulse.program.kernels.copy import COPY_LOOPS, CopyRow
from pulse.program.kernels.matmul.epilogue import BY_COLUMN, STEPS, Epilogue, EpilogueStep, GateEpilogue
from pulse.program.kernels.matmul.windows import WindowFields
from pulse.program.table.loops import Loops
from pulse.program.table.memory import Buffer, Image, Region, TensorView, dense_strides
from pulse.support.bounds import FAR_FRAMES
from pulse.support.registry import Registry

LANE_WORD = 4
"""The bytes of a word, of which there are sixteen side by side."""


class NotInterleavedError(Exception):
    """Raised if an instruction has no form for interleaved memories."""


def count_words(size: int) -> int:
    """Return how many words this many bytes are. Raises NotInterleavedError: they are not whole words."""
    if size % LANE_WORD:
        raise NotInterleavedError("elements smaller than a word")
    return size // LANE_WORD


def byte_of(value: TensorView) -> int:
    """Return the first byte of a tensor in its region."""
    return value.buffer.offset + value.offset * value.dtype.itemsize


class InterleavedLowering:
    """The conversion of the instructions of a program, and the weights that all converted instructions share.

    memory_of    the buffer of sixteen streams for one of a stream's state, if it is outside their interleaved states
    steady_from  the pulses of a stream that must have passed
    """

    def __init__(
        self, weights: Array, clock: TensorView, memory_of: Callable[[Buffer], Buffer | None] = lambda _: None
    ) -> None:
        self.image = Image(Region.WEIGHTS)
        self.steady_from = 1
        self._weights = weights
        self._clock = clock
        self._memory_of = memory_of
        self._expanded: dict[int, Buffer] = {}

    def convert(self, instruction: Instruction) -> Iterable[Instruction]:
        """Return the interleaved instructions for one instruction. Raises NotInterleavedError: it has none."""
        for name, _, value in instruction.operands():
            assert isinstance(value, TensorView), name
            if value.buffer is self._clock.buffer and name != "clock":
                raise NotInterleavedError(f"{instruction.kernel}: reads the clock as {name}")
        try:
            interleave = INTERLEAVE[type(instruction)]
        except KeyError:
            raise NotInterleavedError(f"{instruction.kernel} has no form for several lanes") from None
        return interleave(self, instruction)

    def read_constant(self, value: Any) -> Array:
        """Return the elements of a tensor in the weights."""
        if value.buffer.region is not Region.WEIGHTS:
            raise NotInterleavedError("a table in memory")
        size = value.dtype.itemsize
        strides = tuple(step * size for step in value.strides)
        return np.ndarray(value.shape, value.dtype, self._weights.data, byte_of(value), strides)

    def data(self, value: Any, offset: int = 0) -> TensorView:
        """Return a tensor of each stream, from element ``offset`` on, as words; constants are repeated."""
        buffer = value.buffer
        first = count_words((value.offset + offset) * value.dtype.itemsize)
        if buffer.region is Region.WEIGHTS:
            target = self._repeat(buffer)
        else:
            target = self._memory_of(buffer) or Buffer(
                buffer.region, buffer.size * LANES, buffer.offset * LANES
            )
        return TensorView(target, first * LANES, (target.size // LANE_WORD,), (1,), F32)

    def _repeat(self, buffer: Buffer) -> Buffer:
        if id(buffer) not in self._expanded:
            raw = self._weights[buffer.offset : buffer.offset + buffer.size // LANE_WORD * LANE_WORD]
            self._expanded[id(buffer)] = self.image.add(np.repeat(raw.view(np.int32), LANES), shared=True)
        return self._expanded[id(buffer)]

    def add_table(self, array: Array) -> TensorView:
        """Add an array that all streams share to the weights."""
        buffer = self.image.add(array, shared=True)
        return TensorView(buffer, 0, array.shape, dense_strides(array.shape, range(array.ndim)), array.dtype)

    def share(self, value: Any) -> TensorView:
        """Return a tensor in the weights unchanged: all streams share it."""
        return self.add_table(np.ascontiguousarray(self.read_constant(value)))

    def read_to_end(self, value: Any) -> Array:
        """Return all elements of the weights from the start of a tensor to the end of its buffer."""
        end = value.buffer.offset + value.buffer.size
        return self._weights[byte_of(value) : end].view(value.dtype)

    def require_past(self, frames: int, frames_of_pulse: int) -> None:
        """Require that this many frames of a stream have passed."""
        self.steady_from = max(self.steady_from, -(-frames // max(frames_of_pulse, 1)))

    def require_endless(self, end: Any) -> None:
        """Require that the end of a wire is not known before the end of the stream."""
        if end.buffer.region is Region.WEIGHTS and int(self.read_constant(end).ravel()[0]) < FAR_FRAMES:
            raise NotInterleavedError("a wire of constant length")

    def is_clock(self, clock: Any) -> bool:
        """Return whether a clock is the stream's own. Raises NotInterleavedError: it is not and not always 0."""
        if clock.buffer.region is Region.WEIGHTS:
            if int(self.read_constant(clock).ravel()[0]):
                raise NotInterleavedError("a clock that does not advance")
            return False
        if byte_of(clock) != byte_of(self._clock) or clock.buffer.region is not Region.STATE:
            raise NotInterleavedError("another clock")
        return True

    def row_like(
        self, row: Instruction, row_class: type[Instruction], shared: Collection[str] = (), **changed: Any
    ) -> Instruction:
        """Return an instruction with the fields of a row but ``changed``; all streams share the operands ``shared``."""
        fields = {name: getattr(row, name) for name in fields_of(row_class) if name not in changed}
        for name, value in fields.items():
            if isinstance(value, TensorView):
                fields[name] = self.share(value) if name in shared else self.data(value)
        return row_class(**fields, **changed)

    def window_fields(self, row: WindowFields, stride: int = 1) -> dict[str, Any]:
        """Return the fields that all window rows share; offsets are multiplied by ``stride``."""
        tables = {
            name: self.add_table(self.read_constant(table) * stride)
            for name, table in (("rows_x", row.rows_x), ("rows_y", row.rows_y), ("taps", row.taps))
        }
        return {"x": self.data(row.x), "y": self.data(row.y), "M": row.M, "T": row.T, **tables}

    def copy(self, source: TensorView, target: TensorView, loops: Loops) -> Iterator[Instruction]:
        """Copy words of sixteen streams; strides are in words of one stream."""
        sizes = (*loops.sizes, LANES)
        strides = tuple((*(step * LANES for step in steps), 1) for steps in loops.strides)
        return self.copy_words(source, target, Loops(sizes, strides))

    def copy_words(self, source: TensorView, target: TensorView, loops: Loops) -> Iterator[Instruction]:
        """Copy words that are not interleaved."""
        for (a, b), inner in loops.merge().move_longest_inside().inner_loops(COPY_LOOPS):
            yield CopyRow(
                src=advance(source, a),
                dst=advance(target, b),
                size=LANE_WORD,
                **number_fields("n", inner.sizes),
                **number_fields("a", inner.strides[0]),
                **number_fields("b", inner.strides[1]),
            )

    def convert_epilogue(self, epilogue: Epilogue) -> Epilogue:
        """Return the steps after a product, for interleaved memories."""
        steps = [self._step(step) for step in epilogue.steps]
        gates = [
            GateEpilogue(
                left=gate.left, right=gate.right, gated=self.data(gate.gated), rows=self.share(gate.rows)
            )
            for gate in epilogue.gates
        ]
        return Epilogue(flat=False, gate_count=len(gates), step_count=len(steps), gates=gates, steps=steps)

    def _step(self, step: EpilogueStep) -> EpilogueStep:
        operand: Any = step.operand
        rows: Any = step.rows
        if operand is None:
            return step
        by_column = STEPS[step.code] in BY_COLUMN
        return EpilogueStep(
            code=step.code,
            parameter=step.parameter,
            limit=step.limit,
            operand=self.share(operand) if by_column else self.data(operand),
            rows=None if rows is None else self.share(rows),
        )


def advance(value: TensorView, words: int) -> TensorView:
    """Return the same tensor, ``words`` words later in memory."""
    return TensorView(value.buffer, value.offset + words, value.shape, value.strides, value.dtype)


Interleave: TypeAlias = Callable[[InterleavedLowering, Any], Iterable[Instruction]]

INTERLEAVE = Registry[type[Instruction], Interleave]()
"""Instruction -> function that converts it; the files of ``pulse.program.lower.interleaved`` fill it."""
interleaves = INTERLEAVE.register
"""Register a function that converts instructions for sixteen streams. Raises ValueError: one has it already."""


def interleaves_alike(
    row_class: type[Instruction], interleaved_class: type[Instruction], *shared: str
) -> None:
    """Convert an instruction field by field; all streams share the operands ``shared``."""
    INTERLEAVE.enter((row_class,), lambda lowering, row: (lowering.row_like(row, interleaved_class, shared),))
