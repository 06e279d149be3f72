"""Elementwise operators."""

from collections.abc import Iterator

import numpy as np

from pulse.infer.relations import HasRank, HasType, Relation, SameShape, SameType
from pulse.infer.shapes import Broadcast
from pulse.onnx.rules.clues import Clues
from pulse.onnx.rules.registry import rule
from pulse.onnx.tensors import onnx_dtype

BOOL = np.dtype(np.bool_)


@rule(
    *("Abs", "Neg", "Exp", "Log", "Sqrt", "Reciprocal", "Floor", "Ceil", "Round", "Sign", "Erf"),
    *("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh", "Asinh", "Acosh", "Atanh"),
    *("Relu", "LeakyRelu", "ThresholdedRelu", "Elu", "Celu", "Selu", "Gelu", "Mish", "Swish", "HardSwish"),
    *("Sigmoid", "HardSigmoid", "Softplus", "Softsign", "Shrink", "BitwiseNot"),
)
def unary(clues: Clues) -> Iterator[Relation]:
    """Type and shape stay."""
    yield SameType([clues.input(0), clues.output])
    yield SameShape([clues.input(0), clues.output])


@rule("Identity", uniform=True, parts=(0,))
def identity(clues: Clues) -> Iterator[Relation]:
    """Type, shape and value stay."""
    yield from unary(clues)


@rule("Not", "IsNaN", "IsInf")
def judged(clues: Clues) -> Iterator[Relation]:
    """A bool for each entry."""
    if clues.op_type == "Not":
        yield HasType([clues.input(0)], BOOL)
    yield HasType([clues.output], BOOL)
    yield SameShape([clues.input(0), clues.output])


@rule("Dropout")
def dropout(clues: Clues) -> Iterator[Relation]:
    """Type and shape stay, and those of the mask are the same."""
    yield SameType([clues.input(0), clues.output])
    yield SameShape([clues.input(0), *clues.outlets])


@rule("Clip")
def clip(clues: Clues) -> Iterator[Relation]:
    """Type and shape stay; bounds are of the same type."""
    yield SameType([*clues.given(), clues.output])
    yield SameShape([clues.input(0), clues.output])


@rule("Cast", uniform=True, parts=(0,))
def cast(clues: Clues) -> Iterator[Relation]:
    """The shape stays; the type is an attribute."""
    yield HasType([clues.output], onnx_dtype(clues.integer("to"), f"{clues.wire_name} (Cast)"))
    yield SameShape([clues.input(0), clues.output])


@rule("CastLike")
def cast_like(clues: Clues) -> Iterator[Relation]:
    """The shape stays; the type is that of another wire."""
    yield SameType([clues.input(1), clues.output])
    yield SameShape([clues.input(0), clues.output])


@rule("Add", "Sub", "Mul", parts=(0, 1))
@rule("Div", "Mod", "Min", "Max", "Sum", "Mean", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift")
def arithmetic(clues: Clues) -> Iterator[Relation]:
    """One type; shapes are broadcast."""
    yield SameType([*clues.given(), clues.output])
    yield Broadcast(clues.output, clues.given())


@rule("Pow")
def power(clues: Clues) -> Iterator[Relation]:
    """The type of the base; shapes are broadcast."""
    yield SameType([clues.input(0), clues.output])
    yield Broadcast(clues.output, clues.given())


@rule("PRelu")
def prelu(clues: Clues) -> Iterator[Relation]:
    """The slope is broadcast to the shape of the input."""
    yield SameType([*clues.given(), clues.output])
    yield SameShape([clues.input(0), clues.output])
    yield Broadcast(clues.output, clues.given())


@rule("And", "Or", "Xor")
def logic(clues: Clues) -> Iterator[Relation]:
    """All bool; shapes are broadcast."""
    yield HasType([*clues.given(), clues.output], BOOL)
    yield Broadcast(clues.output, clues.given())


@rule("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
def comparison(clues: Clues) -> Iterator[Relation]:
    """Inputs of one type, a bool for each entry; shapes are broadcast."""
    yield SameType(clues.given())
    yield HasType([clues.output], BOOL)
    yield Broadcast(clues.output, clues.given())


@rule("Where")
def where(clues: Clues) -> Iterator[Relation]:
    """A bool that chooses between two wires of one type; shapes are broadcast."""
    yield HasType([clues.input(0)], BOOL)
    yield SameType([clues.input(1), clues.input(2), clues.output])
    yield Broadcast(clues.output, clues.given())


@rule("QuantizeLinear", "DequantizeLinear")
def quantized(clues: Clues) -> Iterator[Relation]:
    """The shape stays; the zero point has the integer type, the scale may have another than the floats."""
    yield SameShape([clues.input(0), clues.output])
    integers = clues.output if clues.op_type == "QuantizeLinear" else clues.input(0)
    if clues.has(2):
        yield SameType([integers, clues.input(2)])


@rule("Range")
def range_(clues: Clues) -> Iterator[Relation]:
    """Scalars of one type; a vector of it."""
    yield SameType([*clues.given(), clues.output])
    yield HasRank([clues.output], 1)
