"""Elementwise operators: mostly a table, like the ops; functions missing in older opsets are composed."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from pulse.facts import BOOL, F16, F32, F64
from pulse.graph import OutletId
from pulse.infer.inference_node import InferenceNode
from pulse.infer.node_context import NodeContext
from pulse.infer.relations import FactRelation, HasType, SameShape, SameType
from pulse.infer.shapes import Broadcasting
from pulse.onnx.registry import onnx_op, rule
from pulse.onnx.tensors import onnx_dtype
from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.ops.elementwise import BitCast, Cast, Elementwise
from pulse.ops.elementwise_functions import ELEMENTWISE, ERFC_TAIL

OPERATORS = {row.names.onnx: kind for kind, row in ELEMENTWISE.items() if row.names.onnx}
"""ONNX operator -> the function of the table."""

OWN_READERS = ("Pow", "Where")
"""Operators of the table that are read by a function of their own: they may convert their inputs."""


def make_function(op_type: str, params: Sequence[float]) -> Elementwise:
    """Return the function that an operator is; parameters that are not given have their defaults."""
    function = OPERATORS[op_type]
    defaults = tuple(ELEMENTWISE[function].names.params.values())
    return Elementwise(function, (*params[: len(defaults)], *defaults[len(params) :]))


@onnx_op(*(op_type for op_type in OPERATORS if op_type not in OWN_READERS))
def wire_table_function(node: NodeContext) -> OutletId:
    """Wire the function of a row of the table; its parameters are float attributes."""
    defaults = ELEMENTWISE[OPERATORS[node.op_type]].names.params
    params = [node.real(name, default) for name, default in defaults.items()]
    return node.wire(make_function(node.op_type, params), node.given_inputs())


@onnx_op("Mod")
def mod(node: NodeContext) -> OutletId:
    """Wire the remainder with the sign of the divisor, or of the dividend (fmod)."""
    return node.apply("fmod" if node.flag("fmod") else "mod", node.input(0), node.input(1))


@onnx_op("Pow")
def power(node: NodeContext) -> OutletId:
    """Wire ``x ** y``, in the type of x; an integer to the power of a float in f64."""
    x, y = node.input(0), node.input(1)
    dtype = node.fact(0).dtype
    if np.issubdtype(dtype, np.integer) and np.issubdtype(node.fact(1).dtype, np.floating):
        f64 = F64
        wide = node.apply("pow", node.cast(x, f64, "wide"), node.cast(y, f64, "exponent"), suffix="real")
        return node.wire(Cast(dtype), [wide])
    return node.apply("pow", x, y)


FUNCTIONS = {**OPERATORS, "Mod": "mod", "BitShift": "shift_left", "IsInf": "isnan"}
"""ONNX operator -> the function of the table that it is, or one with the same types."""

LOGIC = ("And", "Or", "Xor", "Not")
"""Operators whose inputs are bool."""

OWN_RULES = ("PRelu", "Where", *LOGIC)
"""Operators of the table that have their own rule: they relate more than types and a common shape."""

SIZE_OPERATORS = ("Add", "Sub", "Mul")
"""Operators that sizes pass entry by entry, so that some may be unknown."""


def infer_function(node: InferenceNode) -> Iterator[FactRelation]:
    """Results have the type of the inputs, or bool; shapes are broadcast."""
    row = ELEMENTWISE[FUNCTIONS[node.op_type]]
    inputs = node.given_inputs()
    first, end = row.typed_by
    if row.result == "same":
        yield SameType([*inputs[first:end], node.output])
    else:
        yield SameType(inputs[first:end])
        yield HasType([node.output], BOOL)
    yield _shapes(node)


def _shapes(node: InferenceNode) -> FactRelation:
    """Return the relation between the shapes of an operator of the table."""
    if ELEMENTWISE[FUNCTIONS[node.op_type]].arity == 1:
        return SameShape([node.input(0), node.output])
    return Broadcasting(node.output, node.given_inputs())


rule(*SIZE_OPERATORS, parts=(0, 1))(infer_function)
rule(*(op_type for op_type in FUNCTIONS if op_type not in (*SIZE_OPERATORS, *OWN_RULES)))(infer_function)


@rule(*LOGIC)
def infer_logic(node: InferenceNode) -> Iterator[FactRelation]:
    """All bool; shapes are broadcast."""
    yield HasType([*node.given_inputs(), node.output], BOOL)
    yield _shapes(node)


@rule("PRelu")
def infer_prelu(node: InferenceNode) -> Iterator[FactRelation]:
    """The slope is broadcast to the shape of the input."""
    yield SameType([*node.given_inputs(), node.output])
    yield SameShape([node.input(0), node.output])
    yield Broadcasting(node.output, node.given_inputs())


@writes(Elementwise)
def write_elementwise(w: NodeWriter, op: Elementwise) -> str:
    """Write a composition if there is one, else the operator of the same meaning."""
    if op.kind in COMPOSED:
        return COMPOSED[op.kind](w, op)
    names = ELEMENTWISE[op.kind].names
    if not names.onnx:
        raise w.error("this function has no operator in ONNX; keep it out of the streaming part")
    attributes: dict[str, Any] = dict(zip(names.params, op.params))
    return w.emit(names.onnx, w.inputs, **attributes)


def _gelu(w: NodeWriter, op: Elementwise) -> str:
    (x,) = w.inputs
    dtype = w.dtype()
    one, half = (w.number(value, dtype, name) for value, name in ((1, "one"), (0.5, "half")))
    if op.params[0]:
        square = w.emit("Mul", [x, x], "square")
        cube = w.emit("Mul", [square, x], "cube")
        small = w.emit("Mul", [cube, w.number(0.044715, dtype, "cubic")], "small")
        total = w.emit("Add", [x, small], "sum")
        argument = w.emit("Mul", [total, w.number(math.sqrt(2 / math.pi), dtype, "scale")], "scaled")
        shape = w.emit("Tanh", [argument], "tanh")
    else:
        argument = w.emit("Div", [x, w.number(math.sqrt(2), dtype, "root")], "scaled")
        shape = w.emit("Erf", [argument], "erf")
    gain = w.emit("Add", [shape, one], "gain")
    return w.emit("Mul", [w.emit("Mul", [x, gain], "double"), half])


def _log1p(w: NodeWriter, op: Elementwise) -> str:
    """Write ``2 atanh(x / (x + 2))`` near zero, where the logarithm of x + 1 loses the digits of x."""
    (x,) = w.inputs
    one, two, half = (
        w.number(value, w.dtype(), name) for value, name in ((1, "one"), (2, "two"), (0.5, "half"))
    )
    quotient = w.emit("Div", [x, w.emit("Add", [x, two], "sum")], "quotient")
    near = w.emit("Mul", [w.emit("Atanh", [quotient], "atanh"), two], "near")
    far = w.emit("Log", [w.emit("Add", [x, one], "plus_one")], "far")
    return w.emit("Where", [w.emit("Less", [w.emit("Abs", [x], "abs"), half], "is_small"), near, far])


def _expm1(w: NodeWriter, op: Elementwise) -> str:
    """Write ``2 t / (1 - t)`` of ``t = tanh(x / 2)`` near zero, where 1 minus the power loses the digits of x."""
    (x,) = w.inputs
    one, half = (w.number(value, w.dtype(), name) for value, name in ((1, "one"), (0.5, "half")))
    tanh = w.emit("Tanh", [w.emit("Mul", [x, half], "halved")], "tanh")
    rest = w.emit("Sub", [one, tanh], "rest")
    near = w.emit("Div", [w.emit("Add", [tanh, tanh], "twice"), rest], "near")
    far = w.emit("Sub", [w.emit("Exp", [x], "power"), one], "far")
    return w.emit("Where", [w.emit("Less", [w.emit("Abs", [x], "abs"), half], "is_small"), near, far])


def _erfc(w: NodeWriter, op: Elementwise) -> str:
    """Write 1 - erf(x), and from 0.5 on, where that loses digits, a polynomial times exp(-x * x), except for f64."""
    (x,) = w.inputs
    one, half = (w.number(value, w.dtype(), name) for value, name in ((1, "one"), (0.5, "half")))
    error = w.emit("Erf", [x], "erf")
    if w.dtype() == F64:
        return w.emit("Sub", [one, error])
    near = w.emit("Sub", [one, error], "near")
    t = w.emit("Div", [one, w.emit("Add", [w.emit("Mul", [x, half], "halved"), one], "divisor")], "t")
    total = w.number(ERFC_TAIL[0], w.dtype(), "coefficient")
    for index, coefficient in enumerate(ERFC_TAIL[1:], 1):
        product = w.emit("Mul", [total, t], f"product{index}")
        total = w.emit(
            "Add", [product, w.number(coefficient, w.dtype(), f"coefficient{index}")], f"sum{index}"
        )
    power = w.emit("Exp", [w.emit("Neg", [w.emit("Mul", [x, x], "square")], "neg")], "power")
    far = w.emit("Mul", [w.emit("Mul", [total, t], "tail"), power], "far")
    return w.emit("Where", [w.emit("Less", [x, half], "is_near"), near, far])


def _atan2(w: NodeWriter, op: Elementwise) -> str:
    """Write the angle by the arctangent of the shorter side over the longer one; a zero has no sign."""
    y, x = w.inputs
    zero, quarter, half = (
        w.number(value, w.dtype(), name)
        for value, name in ((0, "zero"), (math.pi / 2, "quarter"), (math.pi, "half"))
    )
    rise, run = w.emit("Abs", [y], "rise"), w.emit("Abs", [x], "run")
    steep = w.emit("Greater", [rise, run], "steep")
    short, long = w.emit("Where", [steep, run, rise], "short"), w.emit("Where", [steep, rise, run], "long")
    equal = w.emit("Equal", [short, long], "equal")  # also two zeros, and two infinities
    slope = w.emit(
        "Where", [equal, w.emit("Sign", [long], "sign"), w.emit("Div", [short, long], "quotient")], "slope"
    )
    flat = w.emit("Atan", [slope], "flat")
    acute = w.emit("Where", [steep, w.emit("Sub", [quarter, flat], "complement"), flat], "acute")
    upper = w.emit(
        "Where",
        [w.emit("Less", [x, zero], "is_left"), w.emit("Sub", [half, acute], "mirrored"), acute],
        "upper",
    )
    return w.emit("Where", [w.emit("Less", [y, zero], "is_below"), w.emit("Neg", [upper], "lower"), upper])


def _swish(w: NodeWriter, op: Elementwise) -> str:
    (x,) = w.inputs
    alpha = op.params[0]
    argument = x if alpha == 1 else w.emit("Mul", [x, w.number(alpha, w.dtype(), "alpha")], "scaled")
    return w.emit("Mul", [x, w.emit("Sigmoid", [argument], "gate")])


def _mish(w: NodeWriter, op: Elementwise) -> str:
    (x,) = w.inputs
    return w.emit("Mul", [x, w.emit("Tanh", [w.emit("Softplus", [x], "softplus")], "gate")])


def _mod(w: NodeWriter, op: Elementwise) -> str:
    """Write the remainder of floats, which ONNX has with the sign of x only: plus y if the signs differ."""
    if not np.issubdtype(w.dtype(), np.floating):
        return w.emit("Mod", w.inputs)
    _, y = w.inputs
    zero = w.number(0, w.dtype(), "zero")
    rest = w.emit("Mod", w.inputs, "rest", fmod=1)
    above, below = w.emit("Greater", [rest, zero], "above"), w.emit("Less", [rest, zero], "below")
    signs = w.emit("Less", [y, zero], "is_negative")
    differs = w.emit("Where", [signs, above, below], "differs")
    return w.emit("Where", [differs, w.emit("Add", [rest, y], "shifted"), rest])


def _sum(w: NodeWriter, op: Elementwise) -> str:
    """ONNX sums and averages only floats."""
    if np.issubdtype(w.dtype(), np.floating):
        return w.emit(ELEMENTWISE[op.kind].names.onnx, w.inputs)
    total = w.inputs[0]
    count = len(w.inputs)
    for index, name in enumerate(w.inputs[1:], 2):
        last = index == count and op.kind == "sum"
        total = w.emit("Add", [total, name], "" if last else f"sum{index}")
    if op.kind == "mean":
        wide = w.cast(total, F64, "wide")
        mean = w.emit("Div", [wide, w.number(count, F64, "count")], "quotient")
        return w.cast(mean, w.output_facts[0].dtype)
    return total


def _prelu(w: NodeWriter, op: Elementwise) -> str:
    """Write PRelu. It broadcasts only the slope, and onnxruntime has it for f16 and f32: others are composed."""
    if w.dtype() in (F16, F32) and w.input_facts[0].shape == w.output_facts[0].shape:
        return w.emit("PRelu", w.inputs)
    x, slope = w.inputs
    negative = w.emit("Less", [x, w.number(0, w.dtype(), "zero")], "negative")
    return w.emit("Where", [negative, w.emit("Mul", [x, slope], "scaled"), x])


def _relu(w: NodeWriter, op: Elementwise) -> str:
    """Write Relu for floats; for integers, for which onnxruntime has it in some types only, a maximum."""
    if np.issubdtype(w.dtype(), np.floating):
        return w.emit("Relu", w.inputs)
    return w.emit("Max", [*w.inputs, w.number(0, w.dtype(), "zero")])


def _round_within(w: NodeWriter, op: Elementwise) -> str:
    low, high = (w.number(bound, w.dtype(), name) for bound, name in zip(op.params, ("low", "high")))
    rounded = w.emit("Round", w.inputs, "rounded")
    return w.emit("Min", [w.emit("Max", [rounded, low], "floor"), high])


def _shift(w: NodeWriter, op: Elementwise) -> str:
    return w.emit("BitShift", w.inputs, direction="LEFT" if op.kind == "shift_left" else "RIGHT")


COMPOSED: dict[str, Callable[[NodeWriter, Elementwise], str]] = {
    "gelu": _gelu,
    "log1p": _log1p,
    "expm1": _expm1,
    "erfc": _erfc,
    "atan2": _atan2,
    "swish": _swish,
    "mish": _mish,
    "fmod": lambda w, _: w.emit("Mod", w.inputs, fmod=1),
    "mod": _mod,
    "sum": _sum,
    "mean": _sum,
    "prelu": _prelu,
    "relu": _relu,
    "mul_round": lambda w, _: w.emit("Round", [w.emit("Mul", w.inputs, "product")]),
    "round_within": _round_within,
    "shift_left": _shift,
    "shift_right": _shift,
}


SHIFTS = {"LEFT": "shift_left", "RIGHT": "shift_right"}


@onnx_op("BitShift")
def bit_shift(node: NodeContext) -> OutletId:
    """Shift bits to higher or lower places."""
    direction = node.text("direction")
    node.require(direction in SHIFTS, f"direction {direction!r} is not supported; use LEFT or RIGHT")
    return node.apply(SHIFTS[direction], node.input(0), node.input(1))


@onnx_op("BitCast")
def bit_cast(node: NodeContext) -> OutletId:
    """Read the same bits as another type."""
    dtype = onnx_dtype(node.integer("to"), f"{node.wire_name} (BitCast)")
    return node.input(0) if node.fact(0).dtype == dtype else node.wire(BitCast(dtype), [node.input(0)])
