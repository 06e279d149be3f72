"""Wires with constant values, except for axes of any length along which nothing changes."""

import numpy as np

from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.shape import AddAxis, Expand, Transpose
from pulse.typed import TypedGraph, known_value


def unchanging_values(graph: TypedGraph, outlet: OutletId) -> Array | None:
    """Return the values of a wire, with size 1 on every axis along which they do not change; None if unknown.

    The length of the wire on such an axis is in its fact.
    """
    value = known_value(graph, outlet)
    if value is not None:
        return _drop_equal_entries(value)
    node = graph.node(outlet)
    inner = [unchanging_values(graph, source) for source in node.inputs]
    values = [value for value in inner if value is not None]
    if not values or len(values) < len(inner):
        return None
    op, rank = node.op, graph.fact(outlet).rank
    if isinstance(op, Expand):
        return values[0].reshape((1,) * (rank - values[0].ndim) + values[0].shape)
    if isinstance(op, AddAxis):
        return np.expand_dims(values[0], op.axis)
    if isinstance(op, Transpose):
        return values[0].transpose(op.perm)
    if isinstance(op, Elementwise | Cast):
        (y,) = op.eval([value.reshape((1,) * (rank - value.ndim) + value.shape) for value in values], {})
        return y
    return None


def _drop_equal_entries(value: Array) -> Array:
    for axis, size in enumerate(value.shape):
        first = value[(slice(None),) * axis + (slice(0, 1),)]
        if size > 1 and (value == first).all():
            value = first
    return value
