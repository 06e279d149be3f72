"""Reads of frames that were just written to a table, as in caches of positions."""

import numpy as np

from pulse.declutter.rewrite import Rewrite, bypass, first_output
from pulse.dim import TDim
from pulse.graph import OutletId
from pulse.ops.elementwise import Cast
from pulse.ops.scatter import ScatterND
from pulse.ops.slice import Slice
from pulse.ops.time_position import Range
from pulse.patch import Patch, replace_op
from pulse.typed import TypedGraph, TypedNode, known_value


def _bypass_table(graph: TypedGraph, node: TypedNode, op: Slice) -> Patch | None:
    if op.axis != 0 or op.step != 1:
        return None
    table = graph.node(node.inputs[0])
    if not isinstance(table.op, ScatterND) or table.op.reduction != "none":
        return None
    _, indices, updates = table.inputs
    if graph.fact(indices).rank != 2 or graph.fact(indices).shape[1] != 1:
        return None
    first, frames = _first_index(graph, indices), graph.fact(updates).shape[0]
    if first is None or not first.prove_ge(0).yes:
        return None
    start, end = op.start - first, op.end - first
    if not start.prove_ge(0).yes or not end.prove_le(frames).yes or not start.prove_le(end).yes:
        return None
    if start == 0 and end == frames:
        return bypass(graph, node, updates)
    op = Slice(0, start, end)
    if not op.facts([graph.fact(updates)])[0].agrees(graph.fact(first_output(node))):
        return None
    return replace_op(graph, first_output(node), node.name, op, [updates])


def _first_index(graph: TypedGraph, outlet: OutletId) -> TDim | None:
    """Return the first of indices that increase by one."""
    node = graph.node(outlet)
    while (node.op.keeps_order or isinstance(node.op, Cast)) and known_value(graph, outlet) is None:
        outlet = node.inputs[0]
        node = graph.node(outlet)
    start = TDim.of(0)
    if isinstance(node.op, Slice) and node.op.step == 1 and known_value(graph, outlet) is None:
        start = node.op.start
        outlet = node.inputs[0]
        node = graph.node(outlet)
    if isinstance(node.op, Range):
        counts_by_one = node.op.dtype.kind == "i" and node.op.step == 1
        return TDim.of(int(node.op.start)) + start if counts_by_one else None
    value = known_value(graph, outlet)
    if value is None or not value.size or value.dtype.kind not in "iu" or (np.diff(value.ravel()) != 1).any():
        return None
    return TDim.of(int(value.flat[0])) + start


CACHES = (
    Rewrite(
        "read_what_was_written",
        "frames that were all written to a table just before equal the written ones",
        _bypass_table,
        (Slice,),
    ),
)
