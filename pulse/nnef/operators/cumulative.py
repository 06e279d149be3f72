"""Running sums."""

from pulse.facts import I64
from pulse.nnef.read.node import NnefWire, NodeReader
from pulse.nnef.registry import reads, writes
from pulse.nnef.syntax import Name
from pulse.nnef.write.node import OperationWriter


@writes("CumSum")
def write_cum_sum(w: OperationWriter) -> Name:
    (axis,) = w.integers(1, "axis")
    exclusive, reverse = (bool(w.attribute(name, 0)) for name in ("exclusive", "reverse"))
    return w.emit("tract_core_cumsum", w.x(), axis=axis % w.rank(), exclusive=exclusive, reverse=reverse)


@reads("tract_core_cumsum", parameters="input axis exclusive=False reverse=False")
def read_cum_sum(node: NodeReader) -> NnefWire:
    x = node.wire("input")
    return add_cum_sum(node, x, node.axis("axis", x.rank), node.boolean("exclusive"), node.boolean("reverse"))


def add_cum_sum(
    node: NodeReader, x: NnefWire, axis: int, exclusive: bool, reverse: bool, suffix: str = ""
) -> NnefWire:
    """Add up all frames so far."""
    axis_tensor = node.constant(axis, I64, "axis")
    return node.apply("CumSum", x, axis_tensor, suffix=suffix, exclusive=int(exclusive), reverse=int(reverse))
