"""Conversions of types, and operators that pass wires on unchanged."""

from collections.abc import Iterator

import numpy as np

from pulse.facts import is_symbolic
from pulse.graph import OutletId
from pulse.infer.inference_node import InferenceNode, same_type_and_shape
from pulse.infer.node_context import NodeContext
from pulse.infer.relations import FactRelation, HasType, SameShape, SameType
from pulse.onnx.registry import onnx_op, rule
from pulse.onnx.tensors import onnx_dtype
from pulse.onnx.write.registry import writes
from pulse.ops.elementwise import Cast
from pulse.ops.elementwise_within import RangeCheck
from pulse.ops.shape import Expand


@onnx_op("Cast")
def cast(node: NodeContext) -> OutletId:
    """Convert to the type of an attribute."""
    return _cast(node, onnx_dtype(node.integer("to"), f"{node.wire_name} (Cast)"))


@onnx_op("CastLike")
def cast_like(node: NodeContext) -> OutletId:
    """Convert to the type of another wire."""
    return _cast(node, node.fact(1).dtype)


def _cast(node: NodeContext, dtype: np.dtype[np.generic]) -> OutletId:
    value = node.value(0)
    is_of_sizes = value is not None and is_symbolic(value) and np.issubdtype(dtype, np.integer)
    return node.input(0) if is_of_sizes else node.cast(node.input(0), dtype)


@onnx_op("OptionalHasElement")
def optional_has_element(node: NodeContext) -> OutletId:
    """Whether the input is present; a tensor always is."""
    return node.constant(np.array(node.has(0)))


@onnx_op("Identity", "OptionalGetElement")
def identity(node: NodeContext) -> OutletId:
    """Return the same wire."""
    return node.input(0)


@onnx_op("Dropout")
def dropout(node: NodeContext) -> list[OutletId]:
    """Change nothing outside training or with a ratio of 0; from opset 12 on the mask keeps everything."""
    if node.has(2) and bool(node.scalar(2, "training_mode")):
        ratio = float(node.scalar(1, "ratio")) if node.has(1) else 0.5
        if ratio != 0:
            raise node.error(
                f"it drops a share of {ratio:g} at random (training mode); export the model for inference"
            )
    if node.opset < 12 or not any(node.outputs[1:]):
        return [node.input(0)]
    keeps_all = node.constant(np.array(True), "keep_mask")
    return [node.input(0), node.wire(Expand(node.fact(0).shape), [keeps_all], "mask")]


rule("Identity", uniform=True, parts=(0,))(same_type_and_shape)


@rule("Dropout")
def infer_dropout(node: InferenceNode) -> Iterator[FactRelation]:
    """Type and shape are kept, and the mask has the same shape."""
    yield SameType([node.input(0), node.output])
    yield SameShape([node.input(0), *node.outlets])


@rule("Cast", uniform=True, parts=(0,))
def infer_cast(node: InferenceNode) -> Iterator[FactRelation]:
    """The shape stays; the type is an attribute."""
    yield HasType([node.output], onnx_dtype(node.integer("to"), f"{node.wire_name} (Cast)"))
    yield SameShape([node.input(0), node.output])


@rule("CastLike")
def infer_cast_like(node: InferenceNode) -> Iterator[FactRelation]:
    """The shape stays; another wire has the type."""
    yield SameType([node.input(1), node.output])
    yield SameShape([node.input(0), node.output])


writes(Cast)(lambda w, op: w.cast(w.inputs[0], op.dtype))
writes(RangeCheck)(lambda w, _: w.inputs[0])
