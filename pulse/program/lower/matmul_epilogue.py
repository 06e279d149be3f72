"""Elementwise ops that a product applies to its rows while they are in the cache; see ``kernels.matmul.epilogue``."""

from collections.abc import Callable, Sequence
from dataclasses import field, replace

import numpy as np

from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.elementwise import Elementwise
from pulse.ops.slice import Slice
from pulse.program.kernels.matmul import epilogue
from pulse.program.lower.concat import allocate_part
from pulse.program.lower.elementwise import one_number
from pulse.program.lowering import Lowering
from pulse.program.table.memory import TensorView
from pulse.pulsify.network import PulsedNode
from pulse.support.record import record

MAX_STEPS = 6
"""Maximum number of steps of one product; further ones are separate instructions."""


@record
class FusedStep:
    """One elementwise function of a row.

    kind       its name in ``epilogue.STEPS``
    parameter  the number that it takes, if any; the lower bound of ``round_within``
    limit      the upper bound of ``round_within``
    operand    the tensor that ``add`` adds, of the result's shape; for ``prelu`` and ``mul_round``, one number for each
               channel; None for other functions
    """

    kind: str
    parameter: float = 0.0
    limit: float = 0.0
    operand: "TensorView | Array | None" = None


@record(frozen=False)
class FusedEpilogue:
    """The steps after a product, up to the wire that the product then writes itself.

    outlet    that wire
    axis      the axis of its channels
    channels  their number, gates included
    bias      the number that is added to each channel before all steps; None: no bias
    steps     the steps
    gate      the functions of the two halves of the channels, which are multiplied; numbers in ``epilogue.GATES``
    gated     the wire's memory if there is a gate, once it is allocated
    """

    outlet: OutletId
    axis: int
    channels: int
    bias: Array | None = None
    steps: list[FusedStep] = field(default_factory=list[FusedStep])
    gate: tuple[int, int] | None = None
    gated: TensorView | None = None

    def allocate(self, lowering: Lowering, shape: Sequence[int], order: Sequence[int]) -> TensorView:
        """Allocate the product's own rows: the wire's memory, or another tensor if a gate follows."""
        if self.gate is None:
            return allocate_part(lowering, self.outlet, order)
        self.gated = lowering.allocate_wire(self.outlet, order)
        return lowering.allocate_temporary(shape, self.gated.dtype, order)

    def steps_on(
        self,
        lowering: Lowering,
        y: TensorView,
        rows: Callable[[TensorView], Array],
        channels: slice = slice(None),
    ) -> epilogue.Epilogue:
        """Return the steps for the channels in y; ``rows`` returns the row offsets of a tensor with its axes."""
        if self.gate is not None:
            assert self.gated is not None
            left, right = self.gate
            gate = epilogue.GateEpilogue(
                left=left, right=right, gated=self.gated, rows=lowering.add_table(rows(self.gated))
            )
            return replace(epilogue.NO_EPILOGUE, gate_count=1, gates=[gate])
        first, last, _ = channels.indices(self.channels)
        flat = _have_no_gaps(rows(y), last - first)
        steps: list[epilogue.EpilogueStep] = []
        for step in self.steps:
            operand, offsets = None, None
            flat &= step.kind not in epilogue.BY_COLUMN
            if isinstance(step.operand, TensorView):
                operand = step.operand.part(self.axis, first, last)
                flat &= _have_no_gaps(rows(operand), last - first)
                offsets = lowering.add_table(rows(operand))
            elif step.operand is not None:
                operand = lowering.add_constant(np.ascontiguousarray(step.operand[channels]))
            code = epilogue.STEPS.index(step.kind)
            steps.append(
                epilogue.EpilogueStep(
                    code=code, parameter=step.parameter, limit=step.limit, operand=operand, rows=offsets
                )
            )
        return replace(epilogue.NO_EPILOGUE, flat=flat, step_count=len(steps), steps=steps)

    def set_value(self, lowering: Lowering, y: TensorView) -> None:
        lowering.set_value(self.outlet, y if self.gated is None else self.gated)


def _have_no_gaps(offsets: Array, size: int) -> bool:
    """Return whether rows of this size have no gaps between them."""
    return bool((np.diff(offsets) == size).all())


def find_epilogue(lowering: Lowering, outlet: OutletId, axis: int, gates: bool) -> FusedEpilogue:
    """Find the following steps that a product can include; mark their nodes as done.

    axis   the axis of the channels, which are the columns of the product
    gates  whether all channels are columns of one product
    """
    fused = FusedEpilogue(outlet, axis, lowering.fact(outlet).sizes[axis])
    while len(fused.steps) < MAX_STEPS:
        if _take_swish(lowering, fused):
            continue
        reader = _only_elementwise_reader(lowering, fused.outlet)
        if reader is None or not _take_step(lowering, fused, reader):
            break
        lowering.claim(reader.id)
        fused.outlet = OutletId(reader.id)
    if gates and not fused.steps and fused.outlet == outlet:
        _find_gate(lowering, fused)
    return fused


def _only_elementwise_reader(lowering: Lowering, outlet: OutletId) -> PulsedNode | None:
    """Return the only node that reads a wire, if it is elementwise, f32 and of the same shape."""
    node = lowering.only_reader(outlet)
    if node is None or not isinstance(node.op, Elementwise):
        return None
    fact = lowering.fact(OutletId(node.id))
    return node if fact.sizes == lowering.fact(outlet).sizes and fact.dtype == np.float32 else None


def _take_swish(lowering: Lowering, fused: FusedEpilogue) -> bool:
    """Include ``v * sigmoid(v)``, which is two nodes, if it follows; return whether it does."""
    graph, outlet = lowering.graph, fused.outlet
    readers = [graph.nodes[inlet.node] for inlet in graph.outlet(outlet).successors]
    if len(readers) != 2 or lowering.is_read_later(outlet):
        return False
    for sigmoid, product in (readers, readers[::-1]):
        gate = OutletId(sigmoid.id)
        if (
            _is_elementwise(sigmoid, "sigmoid")
            and _is_elementwise(product, "mul")
            and set(product.inputs) == {outlet, gate}
        ):
            if (
                _only_elementwise_reader(lowering, gate) is not product
                or lowering.fact(gate).dtype != np.float32
            ):
                return False
            lowering.claim(sigmoid.id, product.id)
            fused.steps.append(FusedStep("swish", 1.0))
            fused.outlet = OutletId(product.id)
            return True
    return False


def _is_elementwise(node: PulsedNode, function: str) -> bool:
    return isinstance(node.op, Elementwise) and node.op.kind == function


def _take_step(lowering: Lowering, fused: FusedEpilogue, node: PulsedNode) -> bool:
    """Include the function of a node, if a product can apply it; return whether it does."""
    op = node.op
    assert isinstance(op, Elementwise)
    if len(node.inputs) == 1 and op.kind in epilogue.STEPS:
        parameter, limit, *_ = *op.params, 0.0, 0.0
        fused.steps.append(FusedStep(op.kind, parameter, limit))
        return True
    if len(node.inputs) != 2:
        return False
    slot = node.inputs.index(fused.outlet)
    other = node.inputs[1 - slot]
    numbers = _channel_operand(lowering.known_value(other), fused, len(lowering.fact(fused.outlet).sizes))
    if numbers is not None and (op.kind == "mul_round" or (op.kind == "prelu" and slot == 0)):
        fused.steps.append(FusedStep(op.kind, operand=numbers))
        return True
    limit = one_number(lowering.known_value(other)) if op.kind in ("max", "min") else None
    if limit is not None:
        fused.steps.append(FusedStep(f"{op.kind}c", limit))
        return True
    if op.kind != "add" or lowering.fact(other).dtype != np.float32:
        return False
    if numbers is not None:
        if any(step.kind != "add" for step in fused.steps):
            return False
        fused.bias = numbers if fused.bias is None else fused.bias + numbers
        return True
    if (
        lowering.known_value(other) is not None
        or lowering.fact(other).sizes != lowering.fact(fused.outlet).sizes
    ):
        return False
    value = lowering.find_value(other)
    if value is None or (value.strides[fused.axis] != 1 and value.shape[fused.axis] != 1):
        return False
    fused.steps.append(FusedStep("add", operand=value))
    return True


def _channel_operand(constant: Array | None, fused: FusedEpilogue, rank: int) -> Array | None:
    """Return a constant with one number for each channel, or one for all; None for anything else."""
    if constant is None or constant.dtype != np.float32 or constant.ndim > rank:
        return None
    shape = (1,) * (rank - constant.ndim) + constant.shape
    if any(size != 1 for axis, size in enumerate(shape) if axis != fused.axis):
        return None
    if shape[fused.axis] in (1, fused.channels):
        return np.broadcast_to(constant.ravel(), (fused.channels,))
    return None


def _find_gate(lowering: Lowering, fused: FusedEpilogue) -> None:
    """Find a gate: the product of the two halves of the channels, perhaps after a function of each."""
    graph, outlet = lowering.graph, fused.outlet
    readers = [graph.nodes[inlet.node] for inlet in graph.outlet(outlet).successors]
    if len(readers) != 2 or lowering.is_read_later(outlet) or fused.channels % 2:
        return
    half, sides = fused.channels // 2, [(-1, -1, -1)] * 2
    nodes: list[int] = []
    for node in readers:
        op = node.op
        if not isinstance(op, Slice) or op.axis != fused.axis or op.step != 1 or op.start not in (0, half):
            return
        if lowering.fact(OutletId(node.id)).sizes[fused.axis] != half:
            return
        half_wire, function = OutletId(node.id), 0
        nodes.append(node.id)
        reader = _only_elementwise_reader(lowering, half_wire)
        if reader is not None and isinstance(reader.op, Elementwise) and reader.op.kind in epilogue.GATES:
            half_wire, function = OutletId(reader.id), epilogue.GATES.index(reader.op.kind)
            nodes.append(reader.id)
            reader = _only_elementwise_reader(lowering, half_wire)
        if reader is None or not isinstance(reader.op, Elementwise) or reader.op.kind != "mul":
            return
        sides[0 if op.start == 0 else 1] = (reader.id, function, half_wire.node)
    (left, f, a), (right, g, b) = sides
    if left != right or left < 0 or len(graph.nodes[left].inputs) != 2 or a == b:
        return
    lowering.claim(*nodes, left)
    fused.gate, fused.outlet = (f, g), OutletId(left)
