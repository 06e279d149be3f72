"""The axis that a message proposes as the time axis of an input."""

from pulse.errors import PulseError
from pulse.graph import OutletId
from pulse.ops.concat import Concat
from pulse.ops.op import Final, Pointwise, Whole
from pulse.typed import TypedNetwork


def propose_axis(typed: TypedNetwork, name: str) -> int | None:
    """Return the axis along which an input probably has frames; None for one with a single element.

    The axes after the first come first, of these the ones of size 1, as in a chunk of one frame. Axes that the first
    nodes reduce, such as the channels of a convolution, are proposed only if there is no other.
    """
    sizes = typed.inputs[name].sizes
    if all(size == 1 for size in sizes):
        return None
    ordered = sorted(range(len(sizes)), key=lambda axis: (axis == 0, sizes[axis] != 1))
    possible = [axis for axis in ordered if sizes[axis] and (axis or sizes[0] != 1)]
    return next((axis for axis in possible if _is_kept(typed, name, axis)), possible[0] if possible else None)


def _is_kept(typed: TypedNetwork, name: str, axis: int) -> bool:
    """Return whether the first nodes that read an input, apart from pointwise ones, could read it along an axis.

    A node that joins it to a cache along the axis does.
    """
    graph = typed.graph
    axes = {graph.find(name): axis}
    for node_id in graph.order(graph.outputs):
        node = graph.nodes[node_id]
        incoming = [axes.get(outlet) for outlet in node.inputs]
        if all(other is None for other in incoming) or (
            isinstance(node.op, Concat) and node.op.axis in incoming
        ):
            continue
        try:
            relation = node.op.relation(graph.input_facts(node), incoming)
        except PulseError:
            return False
        if isinstance(relation, Whole | Final):
            return False
        if isinstance(relation, Pointwise):
            axes |= {OutletId(node.id, slot): other for slot, other in enumerate(relation.axes)}
    return True
