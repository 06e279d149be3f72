"""Find taps that a window makes zero, so that they add no delay."""

import numpy as np

from pulse.dim import TDim
from pulse.facts import Array, Shape, volume
from pulse.graph import OutletId
from pulse.ops.elementwise import Elementwise
from pulse.ops.op import Op
from pulse.ops.shape import Transpose
from pulse.typed import TypedGraph, known_value


def count_zero_taps(graph: TypedGraph, outlet: OutletId, distance: TDim, block: int) -> int:
    """Return the number of elements at the start of each block of a wire that are always zero because of a window.

    distance  elements of the wire between neighbours in a block
    block     number of elements of a block
    """
    node = graph.node(outlet)
    while _keeps_order(node.op, graph.fact(outlet).shape):
        outlet = node.inputs[0]
        node = graph.node(outlet)
    if not isinstance(node.op, Elementwise) or node.op.kind != "mul":
        return 0
    shape = graph.fact(outlet).shape
    values = [known_value(graph, source) for source in node.inputs]
    return max(
        (_leading_zeros(value, shape, distance, block) for value in values if value is not None), default=0
    )


def _keeps_order(op: Op, shape: Shape) -> bool:
    """Return whether the elements of a result of this shape are those of the input, in their order."""
    if isinstance(op, Transpose):
        moved = [axis for axis, dim in zip(op.perm, shape) if dim != 1]
        return moved == sorted(moved)
    return op.keeps_order


def _leading_zeros(factor: Array, shape: Shape, distance: TDim, block: int) -> int:
    """Return how many elements at the start of each block a factor makes zero."""
    for axis, dim in enumerate(shape):
        factor_axis = axis - len(shape) + factor.ndim
        if (
            dim.is_const
            and int(dim) % block == 0
            and volume(shape[axis + 1 :]) == distance
            and factor_axis >= 0
        ):
            if factor.shape[factor_axis] != int(dim):
                return 0
            is_nonzero = np.moveaxis(factor, factor_axis, 0).reshape(int(dim), -1).any(1)
            return int(is_nonzero.reshape(-1, block).any(0).argmax())
    return 0
