"""Lower the nodes of a pulsed graph to instructions."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from pulse.errors import CompileError
from pulse.facts import Array, DType, PulsedFact, dtype_name
from pulse.graph import OutletId
from pulse.jit.registry import KERNEL_PLUGINS
from pulse.jit.rows.instruction import Instruction, number_fields
from pulse.ops.op import Op
from pulse.ops.source import Const, Source
from pulse.ops.time import Delay
from pulse.program.kernels.copy import COPY_LOOPS, CopyRow
from pulse.program.step_builder import StepBuilder
from pulse.program.table.emitted import EmittedInstruction
from pulse.program.table.loops import Loops
from pulse.program.table.memory import Buffer, TensorView
from pulse.pulsify.network import PulsedGraph, PulsedNode
from pulse.support.mapping import release_pages
from pulse.support.plugins import load_plugins
from pulse.support.registry import Registry
from pulse.support.wording import count_of, spell

Lower: TypeAlias = Callable[["Lowering", PulsedNode, Any], list[TensorView]]
FaultChecker: TypeAlias = Callable[["Lowering", PulsedNode], None]
LowerGroup: TypeAlias = Callable[["Lowering", Sequence[PulsedNode]], list[list[TensorView]]]
"""Lowers nodes together; returns the results of each."""
GroupFinder: TypeAlias = Callable[
    ["Lowering", Sequence[int]], tuple[list[int], Mapping[tuple[int, ...], LowerGroup]]
]
"""(lowering, order) -> an order; the groups: nodes -> their lowering, which takes place at the first of these nodes.

In the order, all inputs of a group are before that node, and all other readers of its results after it.
"""

LOWER = Registry[type[Op], Lower]()
"""Class of ops -> its lowering; the files of ``pulse.program.lower`` fill it, and ``KERNEL_PLUGINS``."""
GROUP_FINDERS: list[GroupFinder] = []
"""Functions that claim groups of nodes before a graph is lowered; the files of ``pulse.program.lower`` fill it."""


def lowers(*op_classes: type[Op]) -> Callable[[Lower], Lower]:
    """Register a function as the lowering of classes of ops. Raises ValueError: a class has one already."""
    return LOWER.register(*op_classes)


def finds_groups(function: GroupFinder) -> GroupFinder:
    """Register a function that claims groups of nodes of a whole graph, to be lowered together."""
    GROUP_FINDERS.append(function)
    return function


class Lowering:
    """The lowering of one graph, of a model or of a body, to the instructions of a step.

    graph          the graph
    builder        the step, which the graph shares with the bodies in it
    kept_wires     wires that are read after the step, besides the outputs
    form           the form of stored weights; see ``pulse.program.weights``
    unchecked      nodes whose bodies are not checked for faults
    check_faults   the function that emits a node's fault checks, called before each node of a body is lowered
    node_name      name of the node that is lowered, which ``begin`` sets
    allocated      memory of wires that are not lowered yet: concatenations, into which their parts are written

    Constants, temporary tensors, states and registers are the builder's: the attributes here are its methods.
    """

    def __init__(
        self,
        graph: PulsedGraph,
        builder: StepBuilder,
        *,
        kept_wires: Collection[OutletId] = (),
        form: str = "f32",
        unchecked: Collection[int] = (),
        check_faults: FaultChecker | None = None,
    ) -> None:
        self.graph, self.builder, self.form = graph, builder, form
        self.clock, self.length_register = builder.clock, builder.length_register
        self.add_constant, self.allocate_state = builder.add_constant, builder.allocate_state
        self.allocate_temporary = builder.allocate_temporary
        self.kept_wires, self.unchecked = kept_wires, unchecked
        self.node_name = self._op_name = ""
        self.allocated: dict[OutletId, TensorView] = {}
        self._values: dict[OutletId, TensorView] = {}
        self._pending: dict[OutletId, tuple[Callable[[], TensorView], int]] = {}
        self._claimed: set[int] = set()
        self._groups: dict[int, tuple[tuple[int, ...], LowerGroup]] = {}
        self._check_faults = check_faults
        self._wires: dict[Buffer, set[OutletId]] = {}
        self._memories: dict[int, tuple[TensorView, int]] = {}

    def find_groups(self, order: Iterable[int]) -> list[int]:
        """Find the groups of nodes that are lowered together; return an order that they permit."""
        arranged = list(order)
        for find in GROUP_FINDERS:
            arranged, groups = find(self, arranged)
            for members, lower in groups.items():
                self._groups[members[0]] = members, lower
                self.claim(*members[1:])
        return arranged

    def lower(self, order: Iterable[int]) -> None:
        """Lower nodes. Raises CompileError: some ops have no kernel."""
        nodes = [self.graph.nodes[node_id] for node_id in order]
        _require_lowerings(nodes)
        for node in nodes:
            self.begin(node.name, node.op.name)
            if isinstance(node.op, Const) or node.id in self._claimed or OutletId(node.id) in self._values:
                continue
            if self._check_faults is not None:
                self._check_faults(self, node)
            for member, results in self._lower_node(node):
                for slot, value in enumerate(results):
                    self.set_value(OutletId(member, slot), value)
            for fact in self.graph.input_facts(node):
                if fact.value is not None:
                    release_pages(fact.value)

    def begin(self, node_name: str, op_name: str) -> None:
        """Say for which node the following instructions are; profiles and messages name it."""
        self.node_name, self._op_name = node_name, op_name

    def claim(self, *node_ids: int) -> None:
        """Note that nodes are lowered together with another one, by the function that calls."""
        self._claimed.update(node_ids)

    def _lower_node(self, node: PulsedNode) -> Iterable[tuple[int, list[TensorView]]]:
        """Emit a node, or the group that it begins; return each node and its results."""
        if isinstance(node.op, Source):
            return [(node.id, [self.allocate_wire(OutletId(node.id))])]
        if node.id not in self._groups:
            return [(node.id, LOWER[type(node.op)](self, node, node.op))]
        members, lower = self._groups[node.id]
        return zip(members, lower(self, [self.graph.nodes[member] for member in members]))

    def lower_body(
        self, body: PulsedGraph, inputs: Mapping[OutletId, TensorView], check_faults: FaultChecker | None
    ) -> list[TensorView]:
        """Emit the nodes of a body; return the tensors of its outputs.

        inputs        input wire -> its tensor
        check_faults  checks each node for faults; None: no checks, here or in the bodies of the nodes
        """
        body_lowering = Lowering(
            body, self.builder, form=self.form, check_faults=check_faults, unchecked=range(len(body.nodes))
        )
        body_lowering._values.update(inputs)
        body_lowering.lower(body_lowering.find_groups(body.order()))
        return [body_lowering.value(outlet) for outlet in body.outputs]

    def body_checker(self, node: PulsedNode, otherwise: Callable[[], FaultChecker]) -> FaultChecker | None:
        """Return the fault checker of a node's body: the enclosing body's or ``otherwise()``; None: no checks."""
        if self._check_faults is not None or node.id in self.unchecked:
            return self._check_faults
        return otherwise()

    # wires

    def set_value(self, outlet: OutletId, value: TensorView) -> None:
        """Set the tensor of a wire."""
        self._values[outlet] = value
        self._wires.setdefault(value.buffer, set()).add(outlet)

    def owns(self, outlet: OutletId, value: TensorView) -> bool:
        """Return whether no other wire shares the buffer of this one."""
        return self._wires.get(value.buffer, set()) <= {outlet}

    def fact(self, outlet: OutletId) -> PulsedFact:
        """Return the fact of a wire."""
        return self.graph.fact(outlet)

    def value(self, outlet: OutletId) -> TensorView:
        """Return the tensor of a wire; a constant is stored at its first use."""
        if outlet in self._pending:
            store, _ = self._pending.pop(outlet)
            self.set_value(outlet, store())
        if outlet not in self._values:
            constant = self.fact(outlet).value
            assert constant is not None, f"{self.graph.label(outlet)} has not been lowered yet"
            self._values[outlet] = self.add_constant(constant)
        return self._values[outlet]

    def find_value(self, outlet: OutletId) -> TensorView | None:
        """Return the tensor of a wire if it is stored already."""
        return self._values.get(outlet)

    def known_value(self, outlet: OutletId) -> Array | None:
        """Return the value of a constant wire; None if it is not constant."""
        return self.fact(outlet).value

    def allocate_wire(self, outlet: OutletId, order: Sequence[int] | None = None) -> TensorView:
        """Allocate memory for a wire, with its axes in an order (the stream outermost by default).

        If a delay that is in no group reads the wire in that order, return its memory, which saves a copy.
        """
        fact = self.fact(outlet)
        axes = self.stream_first(outlet) if order is None else list(order)
        for inlet in self.graph.outlet(outlet).successors:
            op = self.graph.nodes[inlet.node].op
            if (
                isinstance(op, Delay)
                and inlet.node not in self._memories
                and inlet.node not in self._groups
                and inlet.node not in self._claimed
                and _is_outermost(fact.sizes, axes, op.axis)
            ):
                memory, history = self.delay_memory(inlet.node, op, fact.sizes, axes, fact.dtype)
                return memory.part(op.axis, history, history + fact.sizes[op.axis])
        return self.allocate_temporary(fact.sizes, fact.dtype, axes)

    def stream_first(self, outlet: OutletId) -> list[int]:
        """Return the axis order of a wire with the stream axis outermost."""
        fact = self.fact(outlet)
        axes = list(range(fact.rank))
        if fact.stream is not None:
            axes.insert(0, axes.pop(fact.stream.axis))
        return axes

    def delay_memory(
        self, node_id: int, op: Delay, sizes: Sequence[int], order: Sequence[int], dtype: DType
    ) -> tuple[TensorView, int]:
        """Return the memory of a delay, allocated once: history, then the newest pulse; and the frames of history."""
        if node_id not in self._memories:
            history, pulse = op.delay + op.overlap, sizes[op.axis]
            shape = list(sizes)
            shape[op.axis] = history + pulse
            initial = np.zeros(shape, dtype)
            initial[(slice(None),) * op.axis + (slice(0, history),)] = op.initial
            self._memories[node_id] = (self.allocate_state(initial, order), history)
        return self._memories[node_id]

    def is_read_later(self, outlet: OutletId) -> bool:
        """Return whether a wire is read after the step: it is an output, or in ``kept_wires``."""
        return outlet in self.kept_wires or self.graph.is_output(outlet)

    def only_reader(self, outlet: OutletId) -> PulsedNode | None:
        """Return the only node that reads a wire; None if several do, or it is read after the step."""
        readers = self.graph.outlet(outlet).successors
        if len(readers) != 1 or self.is_read_later(outlet):
            return None
        return self.graph.nodes[next(iter(readers)).node]

    # pending wires

    def leave_pending(self, outlet: OutletId, store: Callable[[], TensorView], functions: int = 0) -> None:
        """Leave a wire to its readers: it is stored only if one of them calls ``value``.

        store      emits the wire; returns its tensor
        functions  the number of elementwise functions that the reader can include; 0: the wire is of another kind
        """
        self._pending[outlet] = store, functions

    def is_pending(self, outlet: OutletId) -> bool:
        """Return whether a wire is pending."""
        return outlet in self._pending

    def pending_functions(self, outlet: OutletId) -> int:
        """Return the number of elementwise functions of a pending wire; 0 for any other wire."""
        return self._pending[outlet][1] if outlet in self._pending else 0

    def include_pending(self, outlet: OutletId) -> None:
        """Note that the reader of a pending wire includes its functions, so that it is not stored."""
        del self._pending[outlet]

    # memory

    def add_table(self, offsets: Array | Sequence[int]) -> TensorView:
        """Add a table of element offsets to the weights."""
        return self.add_constant(np.asarray(offsets, np.int64))

    # instructions

    def emit(self, instruction: Instruction) -> None:
        """Append an instruction of the step."""
        self.builder.append(EmittedInstruction(instruction, self.node_name, self._op_name))

    def emit_ending(self, instruction: Instruction) -> None:
        """Append an instruction that runs after the step."""
        self.builder.endings.append(EmittedInstruction(instruction, self.node_name, self._op_name))

    def copy(self, source: TensorView, target: TensorView) -> None:
        """Copy one tensor onto another of the same shape, in as few loops as possible."""
        loops = Loops.over(target.shape, [source.strides, target.strides], target.order).pad(COPY_LOOPS)
        if len(loops.sizes) > COPY_LOOPS:
            raise self.no_kernel(
                f"a copy over {count_of(len(loops.sizes), 'separate axis', 'separate axes')}"
            )
        a, b = loops.strides
        steps = number_fields("n", loops.sizes) | number_fields("a", a) | number_fields("b", b)
        self.emit(CopyRow(src=source, dst=target, size=source.dtype.itemsize, **steps))

    def order_axes(self, value: TensorView, order: Sequence[int]) -> TensorView:
        """Return the tensor contiguous in an axis order: itself or a copy."""
        if value.is_dense(order):
            return value
        target = self.allocate_temporary(value.shape, value.dtype, order)
        self.copy(value, target)
        return target

    def make_innermost(self, value: TensorView, axis: int) -> TensorView:
        """Return the tensor with an axis contiguous: itself or a copy."""
        if value.strides[axis] == 1 or value.shape[axis] == 1:
            return value
        order = [other for other in value.order if other != axis]
        return self.order_axes(value, [*order, axis])

    def require_f32(self, value: TensorView, subject: str) -> TensorView:
        """Return the value. Raises CompileError: its type is not f32."""
        if value.dtype != np.float32:
            raise self.no_kernel(f"{subject} of {dtype_name(value.dtype)}")
        return value

    def no_kernel(self, subject: str) -> CompileError:
        """Return the error that the node needs something for which there is no kernel."""
        return CompileError(
            f"{self.node_name} ({self._op_name}): no kernel for {subject}; use {spell('backend', 'numpy')}"
        )


def _require_lowerings(nodes: Sequence[PulsedNode]) -> None:
    if not all(map(_is_lowered, nodes)):
        load_plugins(KERNEL_PLUGINS)
    missing = [f"{node.name} ({node.op.name})" for node in nodes if not _is_lowered(node)]
    if missing:
        raise CompileError(f"no kernel for {', '.join(missing)}; use {spell('backend', 'numpy')}")


def _is_lowered(node: PulsedNode) -> bool:
    return type(node.op) in LOWER or isinstance(node.op, Const | Source)


def _is_outermost(sizes: Sequence[int], order: Sequence[int], axis: int) -> bool:
    """Return whether an axis is the outermost of all that are longer than one."""
    longer = [other for other in order if sizes[other] != 1 or other == axis]
    return longer[0] == axis
