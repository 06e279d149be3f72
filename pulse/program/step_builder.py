"""Build the step of a program: three memories, rows, and the registers that rows share."""

from collections.abc import Sequence
from math import prod

import numpy as np

from pulse.dim import TDim
from pulse.facts import Array, DType
from pulse.ops.check import Check
from pulse.ops.clock import max_frames
from pulse.program.table.emitted import EmittedInstruction
from pulse.program.table.memory import Buffer, Image, Region, TensorView, dense_strides, place_buffers
from pulse.support.bounds import UNBOUNDED


class StepBuilder:
    """The parts of a step that the graph of a model shares with its bodies.

    Rows are in two lists: the rows of the step, and the rows that end it by shifting buffers by a pulse.

    clock           the register that counts the pulses
    fault_counters  (node, op, check) -> the counter of its faults
    """

    def __init__(self) -> None:
        self.weights, self.state = Image(Region.WEIGHTS), Image(Region.STATE)
        self.arena: list[Buffer] = []
        self.instructions: list[EmittedInstruction] = []
        self.endings: list[EmittedInstruction] = []
        self.fault_counters: dict[tuple[str, str, Check], TensorView] = {}
        self._registers: dict[str, TensorView] = {}
        self._length_registers: dict[tuple[TDim, int], TensorView] = {}
        self.clock = self.allocate_state(np.zeros(2, np.int64), [0])

    def add_constant(self, array: Array, order: Sequence[int] | None = None) -> TensorView:
        """Add a constant tensor to the weights, with its axes in an order."""
        axes = list(range(array.ndim)) if order is None else list(order)
        buffer = self.weights.add(array.transpose(axes), shared=True)
        return TensorView(buffer, 0, array.shape, dense_strides(array.shape, axes), array.dtype)

    def allocate_temporary(
        self, shape: Sequence[int], dtype: DType, order: Sequence[int] | None = None
    ) -> TensorView:
        """Allocate a tensor in the arena, with its axes in an order."""
        axes = range(len(shape)) if order is None else order
        buffer = Buffer(Region.ARENA, prod(shape) * dtype.itemsize)
        self.arena.append(buffer)
        return TensorView(buffer, 0, tuple(shape), dense_strides(shape, axes), dtype)

    def allocate_state(self, initial: Array, order: Sequence[int]) -> TensorView:
        """Allocate a tensor in the state, with its value before the first pulse."""
        buffer = self.state.add(initial.transpose(list(order)), shared=False)
        return TensorView(buffer, 0, initial.shape, dense_strides(initial.shape, order), initial.dtype)

    def length_register(self, length: TDim, before: int | None = None) -> TensorView:
        """Return the register of a wire's length, allocated once; until the end it holds the largest possible length.

        before  the value before the end, instead of the largest length
        """
        key = length, max_frames(length) if before is None else before
        if key not in self._length_registers:
            self._length_registers[key] = self.allocate_state(np.array([key[1]], np.int64), [0])
        return self._length_registers[key]

    @property
    def length_registers(self) -> list[tuple[TDim, TensorView]]:
        """The lengths that rows need, and their registers."""
        return [(length, value) for (length, _), value in self._length_registers.items()]

    @property
    def last_pulse(self) -> TensorView:
        """The register with the number of the last pulse; a huge number before the stream has ended."""
        return self._register("last", UNBOUNDED)

    @property
    def fault_total(self) -> TensorView:
        """The register that counts all faults."""
        return self._register("faults", 0)

    def find_register(self, name: str) -> TensorView | None:
        """Return the register ``last`` or ``faults`` if some row uses it, else None."""
        return self._registers.get(name)

    def _register(self, name: str, initial: int) -> TensorView:
        if name not in self._registers:
            self._registers[name] = self.allocate_state(np.array([initial], np.int64), [0])
        return self._registers[name]

    def fault_counter(self, node: str, op: str, check: Check) -> TensorView:
        """Return the counter of a node's faults, allocated at its first use."""
        if (node, op, check) not in self.fault_counters:
            self.fault_counters[node, op, check] = self.allocate_state(np.zeros(1, np.int64), [0])
        return self.fault_counters[node, op, check]

    def append(self, row: EmittedInstruction) -> None:
        """Add a row to the step; its operands stay alive until then."""
        for value in row.operands:
            value.buffer.touch(len(self.instructions))
        self.instructions.append(row)

    def place_arena(self) -> int:
        """Place the buffers of the arena; return its size in bytes."""
        return place_buffers([buffer for buffer in self.arena if buffer.first <= buffer.last])
