"""Elementwise functions: mostly a table, as the reader's; what older opsets lack is composed."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pulse.onnx.operators.elementwise import PLAIN, WITH_PARAMS
from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.ops.elementwise import Cast, Elementwise

BITWISE = {
    "bitwise_and": "BitwiseAnd",
    "bitwise_or": "BitwiseOr",
    "bitwise_xor": "BitwiseXor",
    "bitwise_not": "BitwiseNot",
}
"""From opset 18 on."""
NAMES = {kind: op_type for op_type, kind in PLAIN.items()} | {"pow": "Pow"} | BITWISE
WITH_ATTRIBUTES = {kind: (op_type, tuple(names)) for op_type, (kind, names) in WITH_PARAMS.items()}


@writes(Elementwise)
def write_elementwise(w: NodeWriter, op: Elementwise) -> str:
    """A composition where there is one, else the operator of the same meaning."""
    if op.kind in COMPOSED:
        return COMPOSED[op.kind](w, op)
    if op.kind in WITH_ATTRIBUTES:
        op_type, names = WITH_ATTRIBUTES[op.kind]
        attributes: dict[str, Any] = dict(zip(names, op.params))
        return w.emit(op_type, w.inputs, **attributes)
    if op.kind not in NAMES:
        raise w.error("this function has no operator in ONNX; keep it out of the streaming part")
    return w.emit(NAMES[op.kind], w.inputs)


def _gelu(w: NodeWriter, op: Elementwise) -> str:
    (x,) = w.inputs
    dtype = w.dtype()
    one, half = (w.number(value, dtype, name) for value, name in ((1, "one"), (0.5, "half")))
    if op.params[0]:
        square = w.emit("Mul", [x, x], "square")
        cube = w.emit("Mul", [square, x], "cube")
        small = w.emit("Mul", [cube, w.number(0.044715, dtype, "cubic")], "small")
        total = w.emit("Add", [x, small], "sum")
        scaled = w.emit("Mul", [total, w.number(math.sqrt(2 / math.pi), dtype, "scale")], "scaled")
        shape = w.emit("Tanh", [scaled], "tanh")
    else:
        scaled = w.emit("Div", [x, w.number(math.sqrt(2), dtype, "root")], "scaled")
        shape = w.emit("Erf", [scaled], "erf")
    gain = w.emit("Add", [shape, one], "gain")
    return w.emit("Mul", [w.emit("Mul", [x, gain], "double"), half])


def _swish(w: NodeWriter, op: Elementwise) -> str:
    (x,) = w.inputs
    alpha = op.params[0]
    scaled = x if alpha == 1 else w.emit("Mul", [x, w.number(alpha, w.dtype(), "alpha")], "scaled")
    return w.emit("Mul", [x, w.emit("Sigmoid", [scaled], "gate")])


def _mish(w: NodeWriter, op: Elementwise) -> str:
    (x,) = w.inputs
    return w.emit("Mul", [x, w.emit("Tanh", [w.emit("Softplus", [x], "softplus")], "gate")])


def _fmod(w: NodeWriter, op: Elementwise) -> str:
    return w.emit("Mod", w.inputs, fmod=1)


def _mod(w: NodeWriter, op: Elementwise) -> str:
    """Of floats, which ONNX only divides towards zero: x - floor(x / y) * y."""
    if not np.issubdtype(w.dtype(), np.floating):
        return w.emit("Mod", w.inputs)
    x, y = w.inputs
    whole = w.emit("Floor", [w.emit("Div", [x, y], "quotient")], "whole")
    return w.emit("Sub", [x, w.emit("Mul", [whole, y], "multiple")])


def _sum(w: NodeWriter, op: Elementwise) -> str:
    """ONNX has sums and means of floats only."""
    if np.issubdtype(w.dtype(), np.floating):
        return w.emit(NAMES[op.kind], w.inputs)
    total = w.inputs[0]
    count = len(w.inputs)
    for number, name in enumerate(w.inputs[1:], 2):
        last = number == count and op.kind == "sum"
        total = w.emit("Add", [total, name], "" if last else f"sum{number}")
    if op.kind == "mean":
        wide = w.cast(total, np.dtype(np.float64), "wide")
        mean = w.emit("Div", [wide, w.number(count, np.dtype(np.float64), "count")], "quotient")
        return w.cast(mean, w.makes[0].dtype)
    return total


def _prelu(w: NodeWriter, op: Elementwise) -> str:
    """The operator broadcasts the slope only."""
    if w.sizes() == w.made():
        return w.emit("PRelu", w.inputs)
    x, slope = w.inputs
    negative = w.emit("Less", [x, w.number(0, w.dtype(), "zero")], "negative")
    return w.emit("Where", [negative, w.emit("Mul", [x, slope], "scaled"), x])


def _mul_round(w: NodeWriter, op: Elementwise) -> str:
    return w.emit("Round", [w.emit("Mul", w.inputs, "product")])


def _shift(w: NodeWriter, op: Elementwise) -> str:
    return w.emit("BitShift", w.inputs, direction="LEFT" if op.kind == "shift_left" else "RIGHT")


COMPOSED: dict[str, Callable[[NodeWriter, Elementwise], str]] = {
    "gelu": _gelu,
    "swish": _swish,
    "mish": _mish,
    "fmod": _fmod,
    "mod": _mod,
    "sum": _sum,
    "mean": _sum,
    "prelu": _prelu,
    "mul_round": _mul_round,
    "shift_left": _shift,
    "shift_right": _shift,
}


@writes(Cast)
def write_cast(w: NodeWriter, op: Cast) -> str:
    """Another type."""
    return w.cast(w.inputs[0], op.dtype)
