"""Build the step of a program: three memories, rows, and the registers that rows share."""

from collections.abc import Sequence
from math import prod

import numpy as np

from pulse.dim import TDim
from pulse.facts import Array, DType
from pulse.ops.check import Check
from pulse.ops.clock import most_frames
from pulse.program.table.emitted import Emitted
from pulse.program.table.memory import Buffer, Image, Region, Value, dense_strides, plan
from pulse.support.bounds import FAR


class StepBuilder:
    """The parts of a step that the graph of a model shares with its bodies.

    Rows are in two lists: those of the step, and those that end it by shifting buffers by a pulse.

    clock    the register that counts the pulses
    counted  (node, op, check) -> counter of its faults
    """

    def __init__(self) -> None:
        self.weights, self.state = Image(Region.WEIGHTS), Image(Region.STATE)
        self.arena: list[Buffer] = []
        self.instructions: list[Emitted] = []
        self.endings: list[Emitted] = []
        self.counted: dict[tuple[str, str, Check], Value] = {}
        self._words: dict[str, Value] = {}
        self._ends: dict[tuple[TDim, int], Value] = {}
        clock = self.state.add(np.zeros(2, np.int64), shared=False)
        self.clock = Value(clock, 0, (2,), (1,), np.dtype(np.int64))

    def constant(self, array: Array, order: Sequence[int] | None = None) -> Value:
        """A tensor among the weights, with its axes in an order."""
        axes = list(range(array.ndim)) if order is None else list(order)
        buffer = self.weights.add(array.transpose(axes), shared=True)
        return Value(buffer, 0, array.shape, dense_strides(array.shape, axes), array.dtype)

    def temporary(self, shape: Sequence[int], dtype: DType, order: Sequence[int] | None = None) -> Value:
        """Allocate a tensor in the arena, with its axes in an order."""
        axes = range(len(shape)) if order is None else order
        buffer = Buffer(Region.ARENA, prod(shape) * dtype.itemsize)
        self.arena.append(buffer)
        return Value(buffer, 0, tuple(shape), dense_strides(shape, axes), dtype)

    def allocate_state(self, begin: Array, order: Sequence[int]) -> Value:
        """Allocate a tensor in the state, with its value before the first pulse."""
        buffer = self.state.add(begin.transpose(list(order)), shared=False)
        return Value(buffer, 0, begin.shape, dense_strides(begin.shape, order), begin.dtype)

    def end(self, length: TDim, before: int | None = None) -> Value:
        """Return the register of a wire's length; before the stream has ended, it holds the largest possible length.

        before  the value before the end, instead of the largest length
        """
        key = length, most_frames(length) if before is None else before
        if key not in self._ends:
            buffer = self.state.add(np.array([key[1]], np.int64), shared=False)
            self._ends[key] = Value(buffer, 0, (1,), (1,), np.dtype(np.int64))
        return self._ends[key]

    @property
    def ends(self) -> list[tuple[TDim, Value]]:
        """Every length that a row needs, and its register."""
        return [(length, value) for (length, _), value in self._ends.items()]

    @property
    def last(self) -> Value:
        """The register with the number of the last pulse; a huge number before the stream has ended."""
        return self._word("last", FAR)

    @property
    def total(self) -> Value:
        """The register that counts all faults."""
        return self._word("faults", 0)

    def word_of(self, name: str) -> Value | None:
        """Return the register ``last`` or ``faults`` if some row uses it, else None."""
        return self._words.get(name)

    def _word(self, name: str, begin: int) -> Value:
        if name not in self._words:
            self._words[name] = self.allocate_state(np.array([begin], np.int64), [0])
        return self._words[name]

    def counter(self, node: str, op: str, check: Check) -> Value:
        """Return the counter of a node's faults."""
        if (node, op, check) not in self.counted:
            self.counted[node, op, check] = self.allocate_state(np.zeros(1, np.int64), [0])
        return self.counted[node, op, check]

    def append(self, row: Emitted) -> None:
        """Add a row to the step; its operands stay alive until then."""
        for value in row.operands:
            value.buffer.touch(len(self.instructions))
        self.instructions.append(row)

    def plan(self) -> int:
        """Place the buffers of the arena; return its size in bytes."""
        return plan([buffer for buffer in self.arena if buffer.first <= buffer.last])
