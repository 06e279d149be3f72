"""Running products: a scan."""

import numpy as np

from pulse.facts import TypedFact
from pulse.graph import OutletId
from pulse.onnx.context import NodeContext
from pulse.onnx.registry import onnx_op
from pulse.ops.elementwise import Elementwise
from pulse.ops.scan import Course, Scan
from pulse.ops.shape import Expand
from pulse.ops.source import Source
from pulse.typed import TypedGraph, TypedNetwork
from pulse.wiring import wire


@onnx_op("CumProd")
def cum_prod(node: NodeContext) -> OutletId:
    """x[0] * … * x[j] along an axis, without x[j] itself where it is exclusive, backwards in reverse."""
    x = node.fact(0)
    axis = node.axis(int(node.scalar(1, "axis")), x.rank)
    frame = TypedFact(x.dtype, (*x.shape[:axis], *x.shape[axis + 1 :]))
    course = Course(axis, node.flag("reverse"))
    op = Scan(_body(node, frame, node.flag("exclusive")), ("P",), ("x",), (), (course,), (course,))
    one = node.constant(np.ones((), x.dtype), "one")
    first = one if not frame.rank else node.wire(Expand(frame.shape), [one], "first")
    return wire(node.graph, node.wire_name, op, [node.input(0), first])[0]


def _body(node: NodeContext, frame: TypedFact, exclusive: bool) -> TypedNetwork:
    """One frame: the product so far, and what is given of it."""
    graph = TypedGraph()
    before, x = (graph.add(name, Source(frame), (), [frame])[0] for name in ("P", "x"))
    graph.inputs += [before, x]
    after = wire(graph, "product", Elementwise("mul"), [before, x])[0]
    graph.set_outputs([after, before if exclusive else after], ["after", "y"])
    return TypedNetwork(graph, node.scope, f"{node.wire_name}.body")
