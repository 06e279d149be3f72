"""Inference rules for TensorFlow: relations between an operator's inputs and outputs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from pulse.graph import OutletId
from pulse.infer.relations import FactRelation, HasRank, HasType, SameShape, SameSize, SameType
from pulse.infer.shapes import Broadcasting
from pulse.infer.wire_facts import Axis
from pulse.ops.elementwise_functions import ELEMENTWISE
from pulse.tensorflow.tensors import TensorType

Wires: TypeAlias = Sequence[OutletId]
InferenceRule: TypeAlias = Callable[[Wires, Wires, Mapping[str, Any]], Iterable[FactRelation]]


def unary(inputs: Wires, outputs: Wires, attributes: Mapping[str, Any]) -> Iterator[FactRelation]:
    """Type and shape stay."""
    if len(inputs) == len(outputs) == 1:
        yield SameType([inputs[0], outputs[0]])
        yield SameShape([inputs[0], outputs[0]])


def arithmetic(inputs: Wires, outputs: Wires, attributes: Mapping[str, Any]) -> Iterator[FactRelation]:
    """One type; shapes are broadcast."""
    type_ = attributes.get("T")
    if not inputs:
        return
    if isinstance(type_, TensorType) and type_.known_type is not None and type_.known_type.kind == "f":
        yield HasType([*inputs, *outputs], type_.known_type)
    yield Broadcasting(outputs[0], list(inputs))


def product(inputs: Wires, outputs: Wires, attributes: Mapping[str, Any]) -> Iterator[FactRelation]:
    """Matrices: the inner sizes are equal."""
    if len(inputs) != 2:
        return
    a, b = (attributes.get(name) is True for name in ("transpose_a", "transpose_b"))
    yield SameType([*inputs, outputs[0]])
    yield HasRank([*inputs, outputs[0]], 2)
    yield SameSize([Axis(inputs[0], 0 if a else 1), Axis(inputs[1], 1 if b else 0)])
    yield SameSize([Axis(inputs[0], 1 if a else 0), Axis(outputs[0], 0)])


def _has_channels_last(attributes: Mapping[str, Any]) -> bool:
    data_format = attributes.get("data_format", "NHWC")
    return isinstance(data_format, str) and data_format == "NHWC"


def bias(inputs: Wires, outputs: Wires, attributes: Mapping[str, Any]) -> Iterator[FactRelation]:
    """The shape stays; a number for each channel."""
    if len(inputs) != 2:
        return
    yield SameType([*inputs, outputs[0]])
    yield HasRank([inputs[1]], 1)
    yield SameShape([inputs[0], outputs[0]])
    if _has_channels_last(attributes):
        yield SameSize([Axis(inputs[0], -1), Axis(inputs[1], 0)])


def image(inputs: Wires, outputs: Wires, attributes: Mapping[str, Any]) -> Iterator[FactRelation]:
    """An image and a kernel of four axes."""
    if len(inputs) < 2:
        return
    yield HasRank([*inputs[:2], outputs[0]], 4)
    yield SameType([*inputs[:2], outputs[0]])
    yield SameSize([Axis(inputs[0], 0), Axis(outputs[0], 0)])
    if _has_channels_last(attributes):
        yield SameSize([Axis(inputs[0], 3), Axis(inputs[1], 2)])


UNARY = "Exp Rsqrt Square Relu6 LeakyRelu Softmax LogSoftmax Identity StopGradient Cumsum"
"""Operators that keep type and shape and are no function of the table by themselves."""

RULES: dict[str, InferenceRule] = {
    **{
        name: unary if row.arity == 1 else arithmetic
        for row in ELEMENTWISE.values()
        if row.result == "same"
        for name in row.names.tensorflow.split()
    },
    **dict.fromkeys(UNARY.split(), unary),
    **dict.fromkeys(("Mul", "SquaredDifference"), arithmetic),
    "MatMul": product,
    "BiasAdd": bias,
    "Conv2D": image,
    "DepthwiseConv2dNative": image,
}
"""Operator -> its rule."""
