"""From the nodes of a pulsed graph to instructions over three memories."""

import sys
from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias, TypeVar

import numpy as np

from pulse.bounds import FAR
from pulse.dim import TDim
from pulse.errors import CompileError
from pulse.facts import Array, DType, PulsedFact, dtype_name
from pulse.graph import Node, OutletId
from pulse.jit.instruction import Instruction, number_fields
from pulse.ops.check import Check
from pulse.ops.op import Op
from pulse.ops.source import Const, Source
from pulse.ops.stateful import most_frames
from pulse.ops.time import Delay
from pulse.plugins import load_plugins
from pulse.program.kernels.copy import COPY_LOOPS, Copy
from pulse.program.table.emitted import Emitted
from pulse.program.table.loops import Loops
from pulse.program.table.memory import Buffer, Image, Region, Value, dense_strides, plan
from pulse.pulsify.network import PulsedGraph
from pulse.pulsify.registers import Register
from pulse.wording import spell

PulsedNode: TypeAlias = Node[PulsedFact, Op]


Arrange: TypeAlias = Callable[[PulsedGraph, Sequence[int]], "tuple[list[int], dict[int, tuple[int, ...]]]"]
"""Another order of nodes, and the nodes that are lowered with the first of them: first node -> all."""
Lower: TypeAlias = "Callable[[Lowering, PulsedNode, Any], list[Value]]"
L = TypeVar("L", bound=Callable[..., list[Value]])

LOWER: dict[type[Op], Lower] = {}
"""How each kind of op becomes instructions; the files of ``pulse.program.lower`` fill it."""
GROUP = "pulse.kernels"
"""The entry points of plugins: importing what they name fills it too."""


def lowers(*kinds: type[Op]) -> Callable[[L], L]:
    """Register a function as the lowering of some ops."""

    def register(function: L) -> L:
        for kind in kinds:
            LOWER[kind] = function
        return function

    return register


@dataclass
class Lowering:
    """The program under construction.

    Instructions are kept in two lists: those of the step, and those that end it (buffers move on by a pulse).

    form     how weights are stored; see ``pulse.program.weights``
    arrange  which nodes become one instruction, see ``pulse.program.lower.recurrent_siblings.side_by_side``
    """

    graph: PulsedGraph
    kept: set[OutletId]
    registers: Sequence[Register] = ()
    form: str = "f32"
    weights: Image = field(default_factory=lambda: Image(Region.WEIGHTS))
    state: Image = field(default_factory=lambda: Image(Region.STATE))
    arena: list[Buffer] = field(default_factory=list[Buffer])
    instructions: list[Emitted] = field(default_factory=list[Emitted])
    endings: list[Emitted] = field(default_factory=list[Emitted])
    values: dict[OutletId, Value] = field(default_factory=dict[OutletId, Value])
    pending: dict[OutletId, Callable[[], Value]] = field(default_factory=dict[OutletId, Callable[[], Value]])
    chained: dict[OutletId, int] = field(default_factory=dict[OutletId, int])
    results: dict[OutletId, Value] = field(default_factory=dict[OutletId, Value])
    done: set[int] = field(default_factory=set[int])
    """Nodes that another one has done already."""
    node: str = ""
    op: str = ""
    checks: Sequence[OutletId] = ()
    """The counters of faults, which are run beside the outputs."""
    counted: dict[tuple[str, str, Check], Value] = field(default_factory=dict[tuple[str, str, Check], Value])
    """Where faults are counted, by node, op and check."""
    unchecked: Collection[int] = ()
    """Nodes whose bodies are not checked for faults."""
    body: "Callable[[Lowering, PulsedNode], None] | None" = None
    """Called for each node of a body before it is lowered; looks for faults."""
    arrange: Arrange | None = None
    together: dict[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])
    """Nodes that are lowered with the first of them: first node -> all."""
    _once: dict[str, Value] = field(default_factory=dict[str, Value])
    _ends: dict[tuple[TDim, int], Value] = field(default_factory=dict[tuple[TDim, int], Value])
    _wires: dict[Buffer, set[OutletId]] = field(default_factory=dict[Buffer, set[OutletId]])
    _memories: dict[int, tuple[Value, int]] = field(default_factory=dict[int, tuple[Value, int]])

    def __post_init__(self) -> None:
        clock = self.state.add(np.zeros(2, np.int64), shared=False)
        self.clock = Value(clock, 0, (2,), (1,), np.dtype(np.int64))

    def run(self) -> None:
        """Lower every node. Raises CompileError listing every op without a kernel."""
        graph = self.graph
        for register in self.registers:
            self.settle(register.read, self.allocate_state(register.initial, range(register.initial.ndim)))
            self.kept.add(register.write)
        order = graph.order([*graph.outputs, *self.kept, *self.checks])
        if self.arrange is not None:
            order, self.together = self.arrange(graph, order)
        order = self._checks_near(order)
        self._lower([*(outlet.node for outlet in graph.inputs if outlet.node not in order), *order])
        self._keep()
        self._write_registers()

    def _checks_near(self, order: Sequence[int]) -> list[int]:
        """The order with each check right after what it looks at, which may then be overwritten."""
        behind: dict[int, list[int]] = {}
        checks = {outlet.node for outlet in self.checks}
        for node_id in checks:
            behind.setdefault(self.graph.nodes[node_id].inputs[0].node, []).append(node_id)
        rest = (node_id for node_id in order if node_id not in checks)
        return [each for node_id in rest for each in (node_id, *sorted(behind.get(node_id, [])))]

    def inside(self, body: PulsedGraph, given: dict[OutletId, Value]) -> list[Value]:
        """Emit the nodes of a body, its inputs at the given places; where its outputs are.

        All instructions and memories are those of the program around it; the weights of a body stay f32.
        """
        inner = copy(self)
        inner.graph, inner.kept, inner.values, inner.form = body, set(), dict(given), "f32"
        inner.pending, inner.chained, inner._wires, inner._memories, inner.done = {}, {}, {}, {}, set()
        inner.together = {}
        inner._lower(body.order())
        return [inner.value(outlet) for outlet in body.outputs]

    def _lower(self, order: Sequence[int]) -> None:
        self._require(order)
        for node_id in order:
            node = self.graph.nodes[node_id]
            self.node, self.op = node.name, node.op.name
            if isinstance(node.op, Const) or node_id in self.done or OutletId(node_id) in self.values:
                continue
            if self.body is not None:
                self.body(self, node)
            if isinstance(node.op, Source):
                results = [self.new(OutletId(node_id))]
            else:
                results = LOWER[type(node.op)](self, node, node.op)
            for slot, value in enumerate(results):
                self.settle(OutletId(node_id, slot), value)

    def _require(self, order: Sequence[int]) -> None:
        nodes = [self.graph.nodes[node_id] for node_id in order]
        if not all(map(_is_lowered, nodes)):
            load_plugins(GROUP)
        missing = [f"{node.name} ({node.op.name})" for node in nodes if not _is_lowered(node)]
        if missing:
            raise CompileError(f"no kernel for {', '.join(missing)}; use {spell('backend', 'numpy')}")

    def _keep(self) -> None:
        """Inputs live from the start and outputs to the end, out of the way of buffers that move on."""
        graph = self.graph
        for outlet in graph.inputs:
            self.values[outlet].buffer.touch(-1)
        for outlet in dict.fromkeys((*graph.outputs, *self.kept)):
            self.node, self.op = graph.label(outlet), "output"
            value = self.value(outlet)
            if value.buffer.region is Region.STATE:
                sent = self.temporary(value.shape, value.dtype, value.order)
                self.copy(value, sent)
                value = sent
            value.buffer.touch(sys.maxsize)  # the caller reads it after the last instruction
            self.results[outlet] = value

    def _write_registers(self) -> None:
        """The next values, when all that the step reads has been read; none of them lies in a register by now."""
        for register in self.registers:
            if register.write != register.read:
                self.node, self.op = register.name, "register"
                self.copy(self.results[register.write], self.values[register.read])

    # values

    def settle(self, outlet: OutletId, value: Value) -> None:
        """Tell where a wire is."""
        self.values[outlet] = value
        self._wires.setdefault(value.buffer, set()).add(outlet)

    def owns(self, outlet: OutletId, value: Value) -> bool:
        """Whether no other wire lies in the buffer of this one's value."""
        return self._wires.get(value.buffer, set()) <= {outlet}

    def fact(self, outlet: OutletId) -> PulsedFact:
        """What is known of a wire."""
        return self.graph.fact(outlet)

    def value(self, outlet: OutletId) -> Value:
        """Where a wire is; constants are stored at their first use."""
        if outlet in self.pending:
            self.settle(outlet, self.pending.pop(outlet)())
        if outlet not in self.values:
            known = self.fact(outlet).value
            assert known is not None, f"{self.graph.label(outlet)} is not lowered yet"
            self.values[outlet] = self.constant(known)
        return self.values[outlet]

    def known_value(self, outlet: OutletId) -> Array | None:
        """The value of a constant wire."""
        return self.fact(outlet).value

    def constant(self, array: Array, order: Sequence[int] | None = None) -> Value:
        """A tensor among the weights, its axes in an order."""
        axes = list(range(array.ndim)) if order is None else list(order)
        buffer = self.weights.add(array.transpose(axes), shared=True)
        return Value(buffer, 0, array.shape, dense_strides(array.shape, axes), array.dtype)

    def table(self, offsets: Array | Sequence[int]) -> Value:
        """Element offsets among the weights."""
        return self.constant(np.asarray(offsets, np.int64))

    def temporary(self, shape: Sequence[int], dtype: DType, order: Sequence[int] | None = None) -> Value:
        """A tensor in the arena, its axes in an order."""
        axes = range(len(shape)) if order is None else order
        buffer = Buffer(Region.ARENA, prod(shape) * dtype.itemsize)
        self.arena.append(buffer)
        return Value(buffer, 0, tuple(shape), dense_strides(shape, axes), dtype)

    def new(self, outlet: OutletId, order: Sequence[int] | None = None) -> Value:
        """Memory for a wire, its axes in an order (the stream outermost by default).

        If a delay buffer reads the wire and its frames lie in that order, it is the buffer's own memory: then the
        delay copies nothing.
        """
        fact = self.fact(outlet)
        axes = self.stream_first(outlet) if order is None else list(order)
        for inlet in self.graph.outlet(outlet).successors:
            op = self.graph.nodes[inlet.node].op
            if (
                isinstance(op, Delay)
                and inlet.node not in self._memories
                and _outermost(fact.sizes, axes, op.axis)
            ):
                memory, history = self.memory(inlet.node, op, fact.sizes, axes, fact.dtype)
                return memory.part(op.axis, history, history + fact.sizes[op.axis])
        return self.temporary(fact.sizes, fact.dtype, axes)

    def stream_first(self, outlet: OutletId) -> list[int]:
        """The axes of a wire with the stream outermost."""
        fact = self.fact(outlet)
        axes = list(range(fact.rank))
        if fact.stream is not None:
            axes.insert(0, axes.pop(fact.stream.axis))
        return axes

    def memory(
        self, node_id: int, op: Delay, sizes: Sequence[int], order: Sequence[int], dtype: DType
    ) -> tuple[Value, int]:
        """The memory of a delay, its history in front of the newest pulse, and the frames of the history."""
        if node_id not in self._memories:
            history, pulse = op.delay + op.overlap, sizes[op.axis]
            shape = list(sizes)
            shape[op.axis] = history + pulse
            begin = np.zeros(shape, dtype)
            begin[(slice(None),) * op.axis + (slice(0, history),)] = op.initial
            self._memories[node_id] = (self.allocate_state(begin, order), history)
        return self._memories[node_id]

    def allocate_state(self, begin: Array, order: Sequence[int]) -> Value:
        """A tensor of the state and what it holds before the first pulse."""
        buffer = self.state.add(begin.transpose(list(order)), shared=False)
        return Value(buffer, 0, begin.shape, dense_strides(begin.shape, order), begin.dtype)

    def end(self, length: TDim, before: int | None = None) -> Value:
        """The register that holds a wire's length; before the stream has ended, the most that it can be.

        before  what it holds then instead
        """
        key = length, most_frames(length) if before is None else before
        if key not in self._ends:
            buffer = self.state.add(np.array([key[1]], np.int64), shared=False)
            self._ends[key] = Value(buffer, 0, (1,), (1,), np.dtype(np.int64))
        return self._ends[key]

    @property
    def ends(self) -> list[tuple[TDim, Value]]:
        """Every length that an instruction needs, and its register."""
        return [(length, value) for (length, _), value in self._ends.items()]

    @property
    def last(self) -> Value:
        """The register that holds the number of the last pulse, far off before the stream has ended."""
        return self._word("last", FAR)

    @property
    def total(self) -> Value:
        """The number of all faults."""
        return self._word("faults", 0)

    def word_of(self, name: str) -> Value | None:
        """``last`` or ``faults``, if some instruction uses it."""
        return self._once.get(name)

    def _word(self, name: str, begin: int) -> Value:
        if name not in self._once:
            self._once[name] = self.allocate_state(np.array([begin], np.int64), [0])
        return self._once[name]

    def counter(self, node: str, op: str, check: Check) -> Value:
        """The number of faults of a node."""
        if (node, op, check) not in self.counted:
            self.counted[node, op, check] = self.allocate_state(np.zeros(1, np.int64), [0])
        return self.counted[node, op, check]

    # instructions

    def emit(self, instruction: Instruction) -> None:
        """Append an instruction of the step."""
        made = Emitted(instruction, self.node, self.op)
        for value in made.operands:
            value.buffer.touch(len(self.instructions))
        self.instructions.append(made)

    def emit_ending(self, instruction: Instruction) -> None:
        """Append an instruction that runs after the step."""
        self.endings.append(Emitted(instruction, self.node, self.op))

    def copy(self, source: Value, target: Value) -> None:
        """Copy one tensor onto another of the same shape; the fewest loops that do it."""
        loops = Loops.over(target.shape, [source.strides, target.strides], target.order).pad(COPY_LOOPS)
        if len(loops.sizes) > COPY_LOOPS:
            raise CompileError(f"{self.node}: a copy over {len(loops.sizes)} axes is not supported")
        a, b = loops.strides
        steps = number_fields("n", loops.sizes) | number_fields("a", a) | number_fields("b", b)
        self.emit(Copy(src=source, dst=target, size=source.dtype.itemsize, **steps))

    def order_axes(self, value: Value, order: Sequence[int]) -> Value:
        """The tensor with its axes densely in an order: itself, or a copy."""
        if value.dense(order):
            return value
        target = self.temporary(value.shape, value.dtype, order)
        self.copy(value, target)
        return target

    def innermost(self, value: Value, axis: int) -> Value:
        """The tensor with an axis contiguous: itself, or a copy."""
        if value.strides[axis] == 1 or value.shape[axis] == 1:
            return value
        order = [other for other in value.order if other != axis]
        return self.order_axes(value, [*order, axis])

    def floats(self, value: Value, what: str) -> Value:
        """The value, if it is of f32. Raises CompileError."""
        if value.dtype != np.float32:
            raise CompileError(
                f"{self.node} ({self.op}): no kernel for {what} of {dtype_name(value.dtype)}; "
                f"use {spell('backend', 'numpy')}"
            )
        return value

    def plan(self) -> int:
        """Place the arena's buffers; the bytes that it takes."""
        return plan([buffer for buffer in self.arena if buffer.first <= buffer.last])


def _is_lowered(node: PulsedNode) -> bool:
    return type(node.op) in LOWER or isinstance(node.op, Const | Source)


def _outermost(sizes: Sequence[int], order: Sequence[int], axis: int) -> bool:
    """Whether an axis is the outermost of all that are longer than one."""
    longer = [other for other in order if sizes[other] != 1 or other == axis]
    return longer[0] == axis
