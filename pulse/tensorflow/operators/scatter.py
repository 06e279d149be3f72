"""Tensors updated by index."""

import math

import numpy as np

from pulse.dim import TDim
from pulse.graph import OutletId
from pulse.onnx.wiring import wire_onnx
from pulse.ops.shape import AddAxis, Expand, Reshape
from pulse.support.budget import current_spending
from pulse.tensorflow.node import TensorflowNode
from pulse.tensorflow.registry import tensorflow_op


@tensorflow_op("TensorScatterUpdate", "TensorScatterAdd")
def scatter_nd(node: TensorflowNode) -> OutletId:
    """Update slices, or add to them, by index."""
    reduction = "add" if node.op_type == "TensorScatterAdd" else "none"
    indices = node.widen(node.input(1), "places")
    return wire_onnx(node, "ScatterND", [node.input(0), indices, node.input(2)], reduction=reduction)


@tensorflow_op("ScatterUpdate", "ScatterAdd")
def scatter_rows(node: TensorflowNode) -> OutletId:
    """Update rows, or add to them, by index: of a variable, whose new value this is."""
    reduction = "add" if node.op_type == "ScatterAdd" else "none"
    indices = node.widen(node.input(1), "places")
    indices = node.wire(AddAxis(node.graph.fact(indices).rank), [indices], "rows")
    shape = (*node.fact(1).shape, *node.fact(0).shape[1:])
    updates = node.input(2)
    if node.fact(2).shape != shape:
        updates = node.wire(Expand(shape), [updates], "updates")
    return wire_onnx(node, "ScatterND", [node.input(0), indices, updates], reduction=reduction)


@tensorflow_op("TensorStridedSliceUpdate")
def update_slices(node: TensorflowNode) -> OutletId:
    """Replace slices; inputs are x, begin, end, strides, and what takes their place."""
    shape = node.fact(0).shape
    if not all(dim.is_const for dim in shape):
        raise node.error(f"the tensor that it updates must have a known shape, not {node.fact(0)}")
    begins, ends, steps = (
        node.integers(slot, name) for slot, name in enumerate(("begin", "end", "strides"), 1)
    )

    def has(name: str, bit: int) -> bool:
        return bool(node.integer(f"{name}_mask", 0) >> bit & 1)

    slices: list[slice | int | None] = []
    rest = len(shape) - sum(not has("new_axis", n) and not has("ellipsis", n) for n in range(len(begins)))
    for n, (begin, end, step) in enumerate(zip(begins, ends, steps)):
        if has("ellipsis", n):
            slices += [slice(None)] * max(0, rest)
        elif has("new_axis", n):
            slices.append(None)
        elif has("shrink_axis", n):
            slices.append(begin)
        else:
            slices.append(slice(None if has("begin", n) else begin, None if has("end", n) else end, step))
    sizes = tuple(int(dim) for dim in shape)
    current_spending().take_nodes(math.prod(sizes), node.wire_name)
    try:
        elements = np.arange(math.prod(sizes)).reshape(sizes)[tuple(slices)]
    except IndexError as error:
        raise node.error(f"its slices do not fit {node.fact(0)}: {error}") from error
    updates = node.wire(Expand(tuple(map(TDim.of, elements.shape))), [node.input(4)], "updates")
    updates = node.wire(Reshape((TDim.of(elements.size),)), [updates], "flat_updates")
    flat = node.wire(Reshape((TDim.of(math.prod(sizes)),)), [node.input(0)], "flat")
    index = node.constant(elements.reshape(-1, 1), "places")
    updated = wire_onnx(node, "ScatterND", [flat, index, updates], "updated", reduction="none")
    return node.wire(Reshape(shape), [updated])
