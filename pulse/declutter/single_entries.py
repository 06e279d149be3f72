"""One entry of an axis of a tensor that is sliced, padded, joined or broadcast: it is taken from the source itself."""

import numpy as np

from pulse.declutter.rewrite import Rewrite, bypass, first_output
from pulse.dim import TDim
from pulse.facts import is_symbolic
from pulse.graph import OutletId
from pulse.ops.concat import Concat
from pulse.ops.gather import Gather
from pulse.ops.pad import Pad
from pulse.ops.shape import AddAxis, Expand, RemoveAxis
from pulse.ops.slice import Slice
from pulse.patch import Patch
from pulse.typed import TypedGraph, TypedNode, known_value


def _take_from_source(graph: TypedGraph, node: TypedNode, op: Gather) -> Patch | None:
    value = known_value(graph, node.inputs[1])
    if value is None or value.shape != () or is_symbolic(value) or value < 0:
        return None
    index, source = int(value), graph.node(node.inputs[0])
    match source.op:
        case AddAxis(op.axis) if index == 0:
            return bypass(graph, node, source.inputs[0])
        case Slice(op.axis, start, end, 1) if start.is_const and not end.is_const:
            return _take(graph, node, op, source.inputs[0], index + int(start))
        case Pad(pads) if all(pair == (0, 0) for axis, pair in enumerate(pads) if axis != op.axis):
            before, size = pads[op.axis][0], graph.fact(source.inputs[0]).shape[op.axis]
            if before.is_const and (place := index - int(before)) >= 0 and size.prove_gt(place).yes:
                return _take(graph, node, op, source.inputs[0], place)
            return None
        case Concat(op.axis):
            for slot, part in enumerate(source.inputs):
                size = graph.fact(part).shape[op.axis]
                if slot == len(source.inputs) - 1 or size.prove_gt(index).yes:
                    return _take(graph, node, op, part, index)
                if not size.is_const:
                    return None
                index -= int(size)
            return None
        case Expand():
            return _take_from_expanded(graph, node, op, source)
        case _:
            return None


def _take(graph: TypedGraph, node: TypedNode, op: Gather, x: OutletId, index: int) -> Patch | None:
    patch = Patch(graph)
    place = patch.add_constant(f"{node.name}.index", np.array(index, np.int64))
    taken = patch.wire(node.name, op, [patch.tap(x), place])[0]
    if not patch.graph.fact(taken).agrees(graph.fact(first_output(node))):
        return None
    patch.shunt(first_output(node), taken)
    return patch


def _take_from_expanded(graph: TypedGraph, node: TypedNode, op: Gather, expand: TypedNode) -> Patch | None:
    """Return the patch for an axis along which all entries are equal: the result is broadcast along the others."""
    inner, fact = graph.fact(expand.inputs[0]), graph.fact(node.inputs[0])
    axis = op.axis - (fact.rank - inner.rank)
    if axis >= 0 and inner.shape[axis] != TDim.of(1):
        return None
    patch = Patch(graph)
    x = patch.tap(expand.inputs[0])
    if axis >= 0:
        x = patch.wire(f"{node.name}.equal", RemoveAxis(axis), [x])[0]
    shape = (*fact.shape[: op.axis], *fact.shape[op.axis + 1 :])
    patch.shunt(first_output(node), patch.wire(node.name, Expand(shape), [x])[0])
    return patch


SINGLE_ENTRIES = (
    Rewrite(
        "single_entry",
        "an entry of a slice, a padding, a join or a broadcast tensor is an entry of what it is made of",
        _take_from_source,
        (Gather,),
    ),
)
