"""Models that use the first frames of a stream as values: before later results, or as first states of a scan.

Neither needs a frame before it arrives. A slice of constant length hides that; a choice by position shows it, and so
does a scan body that takes the first frame itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pulse.dim import Symbol, TDim
from pulse.facts import BOOL, I64, TypedFact
from pulse.graph import OutletId
from pulse.ops.concat import Concat
from pulse.ops.cumulative import CumSum
from pulse.ops.dims import at_most_one, require_at_least
from pulse.ops.elementwise import Elementwise
from pulse.ops.gather import Gather
from pulse.ops.pad import Pad
from pulse.ops.scan import Scan, ScanAxis
from pulse.ops.shape import AddAxis, Expand, RemoveAxis, Reshape
from pulse.ops.slice import Slice
from pulse.ops.source import Const, Source
from pulse.ops.time_position import Range
from pulse.patch import Patch
from pulse.support.record import record
from pulse.typed import TypedGraph, add_constant
from pulse.wiring import wire

MAX_NODES = 64
"""Maximum number of nodes between a first frame and the scan that begins with it."""


@record
class _FirstFrame:
    """One frame at a constant index of a stream; ``without_axis`` if its stream axis has been dropped."""

    x: OutletId
    axis: int
    index: int
    without_axis: bool


def _first_frame_of(graph: TypedGraph, outlet: OutletId, symbol: Symbol) -> _FirstFrame | None:
    """Return the single frame that a wire takes from a stream; None if it is something else."""
    node = graph.node(outlet)
    match node.op:
        case Slice(axis, start, end, 1) if start.is_const and end == start + 1:
            index, without_axis = int(start), False
        case Gather(axis):
            value = graph.fact(node.inputs[1]).value
            if value is None or value.shape != () or value.dtype == object or value < 0:
                return None
            index, without_axis = int(value), True
        case _:
            return None
    x = node.inputs[0]
    return _FirstFrame(x, axis, index, without_axis) if axis in graph.fact(x).symbolic_axes(symbol) else None


class _Head:
    """Turns a function of the first frames into the same function of all frames.

    count    how many first frames the function reads; set by ``lift``
    """

    def __init__(self, graph: TypedGraph, patch: Patch, axis: int, length: TDim, symbol: Symbol) -> None:
        self._graph, self._patch, self._symbol = graph, patch, symbol
        self._axis, self._length = axis, length
        self.count: int | None = None

    def lift(self, outlet: OutletId, without_axis: bool = False) -> OutletId | None:
        """Return the wire for all frames; ``without_axis`` if the single frame has no stream axis."""
        node, axis = self._graph.node(outlet), self._axis
        match node.op:
            case Slice(op_axis, start, end, 1) if (
                op_axis == axis and not without_axis and start.is_const and end.is_const
            ):
                return self._slice_frames(node.inputs[0], int(start), int(end - start))
            case AddAxis(op_axis) if op_axis == axis and not without_axis:
                return self.lift(node.inputs[0], True)
            case RemoveAxis(op_axis) if op_axis == axis and without_axis:
                return self.lift(node.inputs[0])
            case Gather(op_axis) if op_axis == axis and without_axis:
                first = _first_frame_of(self._graph, outlet, self._symbol)
                if first is None:
                    return None
                # a lookup, unlike a slice, fails for a stream without this frame
                size = self._graph.fact(first.x).shape[axis]
                require_at_least(size, TDim.of(first.index + 1), "the frame that it looks up")
                return self._slice_frames(first.x, first.index, 1)
            case Elementwise():
                rank = self._graph.fact(outlet).rank
                parts = [self._lift_operand(outlet, rank, without_axis) for outlet in node.inputs]
                wires = [part for part in parts if part is not None]
                if len(wires) < len(parts):
                    return None
                return self._patch.wire(f"{node.name}.all", node.op, wires)[0]
            case _:
                return None

    def _slice_frames(self, x: OutletId, first: int, count: int) -> OutletId | None:
        size = self._graph.fact(x).shape[self._axis]
        if count < 1 or self.count not in (None, count) or self._symbol not in size.symbols:
            return None
        self.count = count
        frames = self._patch.tap(x)
        if first == 0 and size.prove_eq(self._length).yes:
            return frames
        if not (size - first).prove_ge(self._length).yes:
            return None
        cut = Slice(self._axis, TDim.of(first), self._length + first)
        return self._patch.wire(f"{self._graph.label(x)}.firsts", cut, [frames])[0]

    def _lift_operand(self, outlet: OutletId, rank: int, without_axis: bool) -> OutletId | None:
        fact = self._graph.fact(outlet)
        if fact.value is None:
            return self.lift(outlet, without_axis) if fact.rank == rank else None
        operand_axis = fact.rank - (rank - self._axis)  # the operand broadcasts from the right
        operand = self._patch.tap(outlet)
        if without_axis:
            name = f"{self._graph.label(outlet)}.wide"
            return (
                self._patch.wire(name, AddAxis(operand_axis), [operand])[0] if operand_axis > 0 else operand
            )
        return operand if operand_axis < 0 or fact.shape[operand_axis] == 1 else None


def join_frames(graph: TypedGraph, node_id: int, symbol: Symbol) -> Patch | None:
    """Rewrite ``concat(f(first k frames), y)`` as a choice by position.

    Positions below k take f of all frames; the others take y, delayed by k frames.
    """
    node = graph.nodes[node_id]
    if not isinstance(node.op, Concat) or len(node.inputs) != 2:
        return None
    axis, (fact,) = node.op.axis, (outlet.fact for outlet in node.outputs)
    if axis not in fact.symbolic_axes(symbol):
        return None
    length, patch, name = fact.shape[axis], Patch(graph), node.name
    head = _Head(graph, patch, axis, length, symbol)
    x = head.lift(node.inputs[0])
    if x is None or head.count is None:
        return None
    pads = tuple(
        (TDim.of(head.count if padded_axis == axis else 0), TDim.of(0)) for padded_axis in range(fact.rank)
    )
    others = patch.wire(f"{name}.moved", Pad(pads), [patch.tap(node.inputs[1])])[0]
    others = patch.wire(f"{name}.others", Slice(axis, TDim.of(0), length), [others])[0]
    is_first = _add_first_places(patch, name, head.count, axis, fact.rank, length)
    patch.shunt(OutletId(node_id), patch.wire(name, Elementwise("where"), [is_first, x, others])[0])
    return patch


def _add_first_places(patch: Patch, name: str, count: int, axis: int, rank: int, length: TDim) -> OutletId:
    """Add the mask of the first places along an axis, which broadcasts along the other axes."""
    position = patch.wire(f"{name}.place", Range(0, 1, length, I64), [])[0]
    limit = patch.add_constant(f"{name}.count", np.array(count, np.int64))
    is_first = patch.wire(f"{name}.is_first", Elementwise("less"), [position, limit])[0]
    shape = tuple(length if index == axis else TDim.of(1) for index in range(rank))
    return patch.wire(f"{name}.chosen", Reshape(shape), [is_first])[0]


def repeat_first_frame(graph: TypedGraph, node_id: int, symbol: Symbol) -> Patch | None:
    """Rewrite ``concat(the first frame of x, k times, x)`` as x padded with its first frame."""
    node = graph.nodes[node_id]
    if not isinstance(node.op, Concat) or len(node.inputs) != 2:
        return None
    axis, (front, x) = node.op.axis, node.inputs
    expanded, shape = graph.node(front), graph.fact(front).shape
    if not isinstance(expanded.op, Expand) or not shape[axis].is_const:
        return None
    first = _first_frame_of(graph, expanded.inputs[0], symbol)
    if first is None or first.without_axis or (first.x, first.axis, first.index) != (x, axis, 0):
        return None
    if len(shape) != graph.fact(x).rank:
        return None
    patch = Patch(graph)
    zero = TDim.of(0)
    pads = tuple((dim if padded_axis == axis else zero, zero) for padded_axis, dim in enumerate(shape))
    patch.shunt(OutletId(node_id), patch.wire(node.name, Pad(pads, "edge"), [patch.tap(x)])[0])
    return patch


def hold_first_frame(graph: TypedGraph, node_id: int, symbol: Symbol) -> Patch | None:
    """Rewrite ``f(first frame) + y`` so that the first frame is available at every position.

    A cumulative sum of a stream that is zero after its first frame holds it.
    """
    node = graph.nodes[node_id]
    if not isinstance(node.op, Elementwise | Expand):
        return None
    (fact,) = (outlet.fact for outlet in node.outputs)
    for axis in fact.symbolic_axes(symbol):
        patch = Patch(graph)
        operands = [_hold_operand(graph, patch, outlet, fact, axis, symbol) for outlet in node.inputs]
        if any(operand is not None for operand in operands):
            inputs = [
                patch.tap(outlet) if operand is None else operand
                for operand, outlet in zip(operands, node.inputs)
            ]
            patch.shunt(OutletId(node_id), patch.wire(node.name, node.op, inputs)[0])
            return patch
    return None


def _hold_operand(
    graph: TypedGraph, patch: Patch, outlet: OutletId, result: TypedFact, axis: int, symbol: Symbol
) -> OutletId | None:
    """Repeat a function of the first frame at every position of a result; None if the wire is anything else."""
    fact, length, name = graph.fact(outlet), result.shape[axis], graph.label(outlet)
    if fact.value is not None or fact.dtype == np.bool_ or fact.rank != result.rank:
        return None
    if not at_most_one(fact.shape[axis], length):
        return None
    head = _Head(graph, patch, axis, length, symbol)
    x = head.lift(outlet)
    if x is None or head.count != 1:
        return None
    is_first = _add_first_places(patch, name, 1, axis, fact.rank, length)
    zero = patch.add_constant(f"{name}.zero", np.zeros((), fact.dtype))
    at_first = patch.wire(f"{name}.begun", Elementwise("where"), [is_first, x, zero])[0]
    return patch.wire(f"{name}.held", CumSum(axis), [at_first])[0]


def begin_scan(graph: TypedGraph, node_id: int, symbol: Symbol) -> Patch | None:
    """Move the computation of a scan's first states from first frames into its body."""
    node = graph.nodes[node_id]
    op = node.op
    if not isinstance(op, Scan):
        return None
    frames, count = len(op.scanned), len(op.states)
    length = graph.fact(node.inputs[0]).shape[op.scanned[0].axis]
    firsts: dict[OutletId, _FirstFrame] = {}
    chains: dict[int, list[int]] = {}
    for slot in range(count):
        outlet = node.inputs[frames + slot]
        chain = _nodes_to_first_frames(graph, outlet, symbol, firsts)
        if chain and all(dim.is_const for dim in graph.fact(outlet).shape):
            chains[slot] = chain
    first_wires = {
        outlet: first for outlet, first in firsts.items() if any(outlet.node in c for c in chains.values())
    }
    backward = any(scan_axis.backward for scan_axis in (*op.scanned, *op.gathered))
    sizes = [(graph.fact(first.x).shape[first.axis] - first.index) for first in first_wires.values()]
    if (
        not chains
        or backward
        or symbol not in length.symbols
        or not all(s.prove_ge(length).yes for s in sizes)
    ):
        return None
    patch = Patch(graph)
    x = [patch.tap(outlet) for outlet in node.inputs[:frames]]
    for index, first in enumerate(first_wires.values()):
        cut = Slice(first.axis, TDim.of(first.index), length + first.index)
        x += patch.wire(f"{node.name}.firsts{index}", cut, [patch.tap(first.x)])
    states = [patch.tap(outlet) for outlet in node.inputs[frames : frames + count]]
    for slot in chains:
        fact = graph.fact(node.inputs[frames + slot])
        zeros = np.zeros(fact.sizes, fact.dtype)
        states[slot] = patch.add_constant(f"{node.name}.begin{slot}", zeros)
    states.append(patch.add_constant(f"{node.name}.unbegun", np.array(True)))
    captured = [patch.tap(outlet) for outlet in node.inputs[frames + count :]]
    scan = _add_begin_flag(graph, op, chains, first_wires)
    outlets = patch.wire(node.name, scan, [*x, *states, *captured])
    for slot, outlet in enumerate(outlets[: len(op.gathered) + count]):
        patch.shunt(OutletId(node_id, slot), outlet)
    return patch


def _nodes_to_first_frames(
    graph: TypedGraph, outlet: OutletId, symbol: Symbol, firsts: dict[OutletId, _FirstFrame]
) -> list[int] | None:
    """Return the nodes between first frames and a wire, in order; None if the wire has other sources than constants."""
    chain: set[int] = set()
    pending = [outlet]
    streams = False
    while pending:
        inner = pending.pop()
        node = graph.node(inner)
        if node.id in chain:
            continue
        chain.add(node.id)
        first = _first_frame_of(graph, inner, symbol)
        if len(chain) > MAX_NODES or isinstance(node.op, Source) or len(node.outputs) > 1:
            return None
        if first is not None:
            firsts[inner] = first
            streams = True
        else:
            pending += node.inputs
    return sorted(chain, key=graph.order([outlet]).index) if streams else None


def _add_begin_flag(
    graph: TypedGraph, op: Scan, chains: Mapping[int, Sequence[int]], firsts: Mapping[OutletId, _FirstFrame]
) -> Scan:
    """Add to the scan an input for each first frame, and a state that is true in the first iteration."""
    body = op.body.copy()
    inner, used_names = body.graph, set(body.inputs)

    def source(prefix: str, fact: TypedFact) -> tuple[str, OutletId]:
        name = next(
            candidate for candidate in (f"{prefix}{n}" for n in range(1 << 20)) if candidate not in used_names
        )
        used_names.add(name)
        (outlet,) = inner.add(name, Source(fact), (), [fact])
        inner.inputs.append(outlet)
        return name, outlet

    flag, unbegun = source("unbegun", TypedFact(BOOL, ()))
    wires: dict[OutletId, OutletId] = {}
    names: list[str] = []
    for outlet, first in firsts.items():
        name, frame = source("first", graph.fact(first.x).without_axis(first.axis))
        names.append(name)
        wires[outlet] = (
            frame if first.without_axis else wire(inner, f"{name}.one", AddAxis(first.axis), [frame])[0]
        )
    sources = {inner.label(outlet): outlet for outlet in inner.inputs}
    patch = Patch(inner)
    for slot, chain in chains.items():
        _copy_chain(graph, inner, chain, wires)
        state = sources[op.states[slot]]
        parts = [patch.tap(operand) for operand in (unbegun, wires[OutletId(chain[-1])], state)]
        patch.shunt(state, patch.wire(f"{op.states[slot]}.begun", Elementwise("where"), parts)[0])
    patch.apply()
    after = add_constant(inner, "begun", np.array(False))
    count = len(op.states)
    outputs, labels = list(inner.outputs), list(inner.output_names)
    inner.set_outputs(
        [*outputs[:count], after, *outputs[count:]], [*labels[:count], f"{flag}.next", *labels[count:]]
    )
    return replace(
        op,
        body=body,
        states=(*op.states, flag),
        frames=(*op.frames, *names),
        scanned=(*op.scanned, *(ScanAxis(first.axis) for first in firsts.values())),
    )


def _copy_chain(
    graph: TypedGraph, body: TypedGraph, chain: Sequence[int], wires: dict[OutletId, OutletId]
) -> None:
    """Copy the nodes of a chain to the body; ``wires`` maps wires of the graph to wires of the body."""
    for node_id in chain:
        node, outlet = graph.nodes[node_id], OutletId(node_id)
        if outlet in wires:
            continue
        operands = [wires[operand] for operand in node.inputs]
        wires[outlet] = (
            add_constant(body, f"{node.name}.begin", node.op.value)
            if isinstance(node.op, Const)
            else wire(body, f"{node.name}.begin", node.op, operands)[0]
        )
