"""Indices found by value, and masks made from indices."""

import numpy as np

from pulse.facts import I64
from pulse.graph import OutletId
from pulse.onnx.wiring import wire_onnx_all
from pulse.ops.shape import AddAxis
from pulse.ops.time_position import Range
from pulse.tensorflow.node import TensorflowNode
from pulse.tensorflow.registry import tensorflow_op


@tensorflow_op("MatrixBandPart")
def band_part(node: TensorflowNode) -> OutletId:
    """Keep the entries within two distances below and above the diagonal, else zeros; negative: no limit."""
    fact = node.fact(0)
    node.require(fact.rank >= 2, f"{fact} is not a matrix")
    below, above = node.integer_at(1, "num_lower"), node.integer_at(2, "num_upper")
    row = node.wire(Range(0, 1, fact.shape[-2], I64), [], "row")
    rows = node.wire(AddAxis(1), [row], "rows")
    columns = node.wire(Range(0, 1, fact.shape[-1], I64), [], "columns")
    inside: list[OutletId] = []
    for name, limit, pair in (("below", below, (rows, columns)), ("above", above, (columns, rows))):
        if limit >= 0:
            distance = node.apply("sub", *pair, suffix=f"{name}_distance")
            inside.append(node.apply("less_equal", distance, limit, suffix=name))
    if not inside:
        return node.input(0)
    in_band = inside[0] if len(inside) == 1 else node.apply("and", *inside, suffix="in_band")
    return node.apply("where", in_band, node.input(0), 0)


@tensorflow_op("OneHot")
def one_hot(node: TensorflowNode) -> OutletId:
    """Wire the on value at the index, the off value elsewhere; the new axis is the last or ``axis``."""
    fact, depth = node.fact(0), node.take_elements(node.integer_at(1, "depth"), "depth")
    axis = node.integer("axis", -1)
    axis = fact.rank if axis == -1 else node.axis(axis, fact.rank + 1)
    column = node.wire(AddAxis(axis), [node.widen(node.input(0), "indices64")], "column")
    indices = np.arange(depth, dtype=np.int64).reshape(-1, *(1,) * (fact.rank - axis))
    is_index = node.apply("equal", column, node.constant(indices, "indices"), suffix="is_index")
    return node.apply("where", is_index, node.input(2), node.input(3))


@tensorflow_op("Where")
def where(node: TensorflowNode) -> OutletId:
    """Return the indices of true values, if they are constant."""
    value = node.numbers(0, "condition")
    return node.constant(np.argwhere(value).astype(np.int64))


@tensorflow_op("TopKV2")
def top_k(node: TensorflowNode) -> list[OutletId]:
    """Wire the largest values along the last axis, and their indices."""
    return wire_onnx_all(node, "TopK", [node.input(0), node.input(1)], "", 2)
