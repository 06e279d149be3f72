"""Pads that the next window op takes as its own."""

from dataclasses import replace

import numpy as np

from pulse.declutter.rewrite import Rewrite, TypedNode, reads_alone, result
from pulse.ops.conv import Conv, Pads
from pulse.ops.pad import Pad
from pulse.ops.pool import Pool
from pulse.patch import Patch, replaced
from pulse.typed import TypedGraph


def _pad_before(graph: TypedGraph, node: TypedNode, fill: float) -> tuple[TypedNode, Pads] | None:
    """The pad that feeds only this node and its spatial pads, if they hold ``fill``."""
    pad = graph.node(node.inputs[0])
    if not isinstance(pad.op, Pad) or pad.op.mode != "constant" or pad.op.fill != fill:
        return None
    if any(pair != (0, 0) for pair in pad.op.pads[:2]) or not reads_alone(graph, node.inputs[0]):
        return None
    return pad, pad.op.pads[2:]


def _sum(outer: Pads, inner: Pads) -> Pads:
    return tuple((a + c, b + d) for (a, b), (c, d) in zip(outer, inner))


def _pad_into_conv(graph: TypedGraph, node: TypedNode) -> Patch | None:
    if not isinstance(node.op, Conv):
        return None
    found = _pad_before(graph, node, 0.0)
    if found is None:
        return None
    pad, pads = found
    op = replace(node.op, pads=_sum(pads, node.op.pads))
    return replaced(graph, result(node), node.name, op, [pad.inputs[0], *node.inputs[1:]])


def _pad_into_max_pool(graph: TypedGraph, node: TypedNode) -> Patch | None:
    if not isinstance(node.op, Pool) or node.op.kind != "max":
        return None
    found = _pad_before(graph, node, -np.inf)
    if found is None:
        return None
    pad, pads = found
    op = replace(node.op, pads=_sum(pads, node.op.pads))
    return replaced(graph, result(node), node.name, op, pad.inputs)


PADS = (
    Rewrite(
        "pad_into_conv", "a convolution pads with zeros too, before and after those", _pad_into_conv, (Conv,)
    ),
    Rewrite(
        "pad_into_max_pool",
        "the padding of a maximum is -inf, which never is the largest",
        _pad_into_max_pool,
        (Pool,),
    ),
)
