"""Elementwise functions."""

from collections.abc import Mapping

import numpy as np

from pulse.facts import BOOL, F32, DType
from pulse.nnef.read.node import NnefWire, NodeReader
from pulse.nnef.registry import reads, writes
from pulse.nnef.syntax import Name
from pulse.nnef.write.node import OperationWriter
from pulse.ops.elementwise_functions import ELEMENTWISE, FunctionEntry
from pulse.support.printable import printable

NNEF_NAMES: Mapping[str, str] = {
    row.names.onnx: row.names.nnef for row in ELEMENTWISE.values() if row.names.onnx and row.names.nnef
}
"""Operators that both formats have: the name in ONNX -> the one in NNEF."""
BINARY_FORMS: Mapping[str, str] = {"Sum": "add", "Max": NNEF_NAMES["Max"], "Min": NNEF_NAMES["Min"]}
"""Operators of any number of inputs -> operators of two."""
COMPOSED = ("Mul", *BINARY_FORMS, "Reciprocal", "Sigmoid", "Tanh", "Softplus", "HardSwish")
"""Operators that are written by a function of their own, although NNEF has them: tract's are less exact, or fewer."""
UNCHANGED = {"Identity": "copy"} | {kind: name for kind, name in NNEF_NAMES.items() if kind not in COMPOSED}
"""Operators that are written as themselves."""


@writes(*UNCHANGED)
def write_same(w: OperationWriter) -> Name:
    return w.emit(UNCHANGED[w.op_type], *w.operands())


@writes("Mul")
def write_product(w: OperationWriter) -> Name:
    """Turn the product of a position and a constant into a sum.

    tract 0.23 takes an integer factor for a mask of the other operand, and then refuses the scan that carries it.
    """
    for slot in (0, 1):
        factor = w.known_value(slot)
        if (
            factor is not None
            and factor.size == 1
            and factor.dtype.kind == "i"
            and 0 < factor.item() < 1 << 31
        ):
            x = w.operand(1 - slot, w.output_rank())
            if isinstance(x, Name):
                return _multiply(w, x, int(factor.item()))
    return w.emit("mul", *w.operands())


def _multiply(w: OperationWriter, x: Name, factor: int) -> Name:
    """Multiply by an integer through doubling, from the highest bit on."""
    if factor == 1:
        return w.emit("copy", x)
    total = x
    for index, bit in enumerate(bits := bin(factor)[3:], 1):
        last = index == len(bits)
        total = w.emit("add", total, total, suffix="" if last and bit == "0" else f"double{index}")
        if bit == "1":
            total = w.emit("add", total, x, suffix="" if last else f"plus{index}")
    return total


@writes(*BINARY_FORMS)
def write_folded(w: OperationWriter) -> Name:
    total, *others = w.operands()
    if not others:
        return w.emit("copy", total)
    for index, operand in enumerate(others, 1):
        total = w.emit(
            BINARY_FORMS[w.op_type], total, operand, suffix="" if index == len(others) else f"with{index}"
        )
    assert isinstance(total, Name)
    return total


@writes("Mean")
def write_mean(w: OperationWriter) -> Name:
    total, *others = w.operands()
    for index, operand in enumerate(others, 1):
        total = w.emit("add", total, operand, suffix=f"with{index}")
    return w.apply("div", total, len(w.inputs))


writes("Reciprocal")(lambda w: w.apply("div", 1, w.x()))


@writes("Mod")
def write_mod(w: OperationWriter) -> Name:
    """Write the remainder with the divisor's sign; with ``fmod`` the dividend's, as tract's division rounds."""
    x, y = w.operands()
    if w.dtype().kind == "f":
        raise w.error("have no exact remainders of floats", "compute it with integers")
    quotient = w.emit("div", x, y, suffix="quotient")
    rest_suffix = "" if w.attribute("fmod", 0) or w.dtype().kind == "u" else "rest"
    remainder = w.emit("sub", x, w.emit("mul", quotient, y, suffix="multiple"), suffix=rest_suffix)
    if not rest_suffix:
        return remainder
    below, under = w.apply("lt", remainder, 0, suffix="below"), w.apply("lt", y, 0, suffix="under")
    differs = w.emit("tract_core_xor", below, under, suffix="differs")
    shifts = w.emit("and", w.apply("ne", remainder, 0, suffix="has_remainder"), differs, suffix="shifts")
    return w.emit("select", shifts, w.emit("add", remainder, y, suffix="shifted"), remainder)


@writes("BitShift")
def write_shift(w: OperationWriter) -> Name:
    return w.emit("tract_shl" if w.attribute("direction", "") == "LEFT" else "tract_shr", *w.operands())


@writes("Cast")
def write_cast(w: OperationWriter) -> Name:
    target, _ = w.scope.fact(w.outputs[0])
    if target == np.bool_ and w.dtype() != np.bool_:
        return w.apply("ne", w.x(), 0)
    return w.cast(w.x(), target)


ATTRIBUTE_DEFAULTS = {row.names.onnx: row.names.params for row in ELEMENTWISE.values() if row.names.params}
"""Operator of ONNX -> its attributes and their defaults."""


def _params(w: OperationWriter) -> list[float]:
    return [w.attribute(name, default) for name, default in ATTRIBUTE_DEFAULTS[w.op_type].items()]


@writes("LeakyRelu", "PRelu")
def write_sloped(w: OperationWriter) -> Name:
    rank = w.output_rank()
    x = w.operand(0, rank)
    slope = w.operand(1, rank) if w.op_type == "PRelu" else _params(w)[0]
    below = w.apply("lt", x, 0, suffix="below")
    return w.emit("select", below, w.apply("mul", x, slope, suffix="scaled"), x)


def _exponential(w: OperationWriter, scale: float, divisor: float, gain: float) -> Name:
    """Return ``gain * (x if x >= 0 else scale * (exp(x / divisor) - 1))``.

    Near 0, ``exp(a) - 1`` is ``2 t / (1 - t)`` of ``t = tanh(a / 2)``, which loses nothing.
    """
    x = w.x()
    scaled = x if divisor == 1 else w.apply("div", x, divisor, suffix="scaled")
    half = w.emit("tanh", w.apply("mul", scaled, 0.5, suffix="halved"), suffix="half")
    twice, rest = w.emit("add", half, half, suffix="twice"), w.apply("sub", 1, half, suffix="rest")
    direct = w.apply("sub", w.emit("exp", scaled, suffix="exp"), 1, suffix="direct")
    small = w.apply("gt", scaled, -0.7, suffix="small")
    grown = w.emit("select", small, w.emit("div", twice, rest, suffix="near"), direct, suffix="grown")
    curve, below = w.apply("mul", grown, scale, suffix="curve"), w.apply("lt", x, 0, suffix="below")
    chosen = w.emit("select", below, curve, x, suffix="" if gain == 1 else "chosen")
    return chosen if gain == 1 else w.apply("mul", chosen, gain)


@writes("Elu", "Celu")
def write_elu(w: OperationWriter) -> Name:
    (alpha,) = _params(w)
    return _exponential(w, alpha, alpha if w.op_type == "Celu" else 1, 1)


@writes("Selu")
def write_selu(w: OperationWriter) -> Name:
    alpha, gamma = _params(w)
    return _exponential(w, alpha, 1, gamma)


@writes("Sigmoid")
def write_sigmoid(w: OperationWriter) -> Name:
    """Write exponentials: tract's own sigmoid of -20 is 200 times too large."""
    power = w.emit("exp", w.emit("neg", w.x(), suffix="neg"), suffix="exp")
    return w.apply("div", 1, w.apply("add", 1, power, suffix="sum"))


@writes("Tanh")
def write_tanh(w: OperationWriter) -> Name:
    """Write tract's tanh near 0; farther out exponentials, since tract's is off by 10 units in the last place there."""
    x = w.x()
    size = w.emit("abs", x, suffix="abs")
    twice = w.emit("add", size, size, suffix="twice")
    power = w.emit("exp", w.emit("neg", twice, suffix="neg"), suffix="exp")
    rest, sum = w.apply("sub", 1, power, suffix="rest"), w.apply("add", 1, power, suffix="sum")
    quotient = w.emit("div", rest, sum, suffix="quotient")
    by_exponentials = w.emit("mul", w.emit("sign", x, suffix="sign"), quotient, suffix="by_exponentials")
    near = w.apply("lt", size, 0.5, suffix="near")
    return w.emit("select", near, w.emit("tanh", x, suffix="small"), by_exponentials)


@writes("Softplus")
def write_softplus(w: OperationWriter) -> Name:
    """``max(x, 0) + log(1 + e)`` of ``e = exp(-|x|)``, as ``2 atanh(e / (e + 2))``: no power overflows or is lost."""
    x = w.x()
    small = w.emit("exp", w.emit("neg", w.emit("abs", x, suffix="abs"), suffix="neg"), suffix="exp")
    half = w.emit(
        "atanh", w.emit("div", small, w.apply("add", small, 2, suffix="sum"), suffix="part"), suffix="half"
    )
    rest = w.emit("add", half, half, suffix="log")
    return w.emit("add", w.apply("max", x, 0, suffix="positive"), rest)


@writes("Softsign")
def write_softsign(w: OperationWriter) -> Name:
    return w.emit("div", w.x(), w.apply("add", w.emit("abs", w.x(), suffix="abs"), 1, suffix="sum"))


@writes("ThresholdedRelu")
def write_thresholded(w: OperationWriter) -> Name:
    above = w.apply("gt", w.x(), _params(w)[0], suffix="above")
    return w.apply("select", above, w.x(), 0)


@writes("HardSigmoid")
def write_hard_sigmoid(w: OperationWriter) -> Name:
    alpha, beta = _params(w)
    return _hard_sigmoid(w, alpha, beta, "")


def _hard_sigmoid(w: OperationWriter, alpha: float, beta: float, suffix: str) -> Name:
    line = w.apply("add", w.apply("mul", w.x(), alpha, suffix="scaled"), beta, suffix="line")
    return w.apply("min", w.apply("max", line, 0, suffix="low"), 1, suffix=suffix)


writes("HardSwish")(lambda w: w.emit("mul", w.x(), _hard_sigmoid(w, 1 / 6, 0.5, "gate")))


TYPE_NAMES: Mapping[str, str] = {"f": "float", "i": "int", "u": "uint"}
TABLE: Mapping[str, FunctionEntry] = {row.names.nnef: row for row in ELEMENTWISE.values() if row.names.nnef}
"""Functions of the table by their name in NNEF."""
UNARY: Mapping[str, str] = {
    **{name: row.names.onnx for name, row in TABLE.items() if row.arity == 1 and row.result == "same"},
    "copy": "Identity",
    "recip": "Reciprocal",
    "sqr": "",
    "square": "",
    "rsqrt": "",
}
"""Functions of one tensor; an empty name is made of several nodes."""
BINARY = tuple(name for name, row in TABLE.items() if row.arity in (2, -1))
"""Functions of two tensors."""


def parse_type(node: NodeReader, name: str) -> DType:
    """Return a type by tract's name, such as F32 and i64. Raises LoadError: the name is unknown."""
    letter, digits = name[:1].lower(), name[1:]
    if name.lower() == "bool":
        return BOOL
    if letter not in TYPE_NAMES or digits not in ("8", "16", "32", "64") or (letter == "f" and digits == "8"):
        raise node.error(f"the type {printable(name)} is not supported")
    return np.dtype(f"{TYPE_NAMES[letter]}{digits}")


@reads(*UNARY, parameters="x")
def read_unary(node: NodeReader) -> NnefWire:
    x = node.wire("x", F32)
    if node.operator in ("sqr", "square"):
        return node.apply("Mul", x, x)
    if node.operator == "rsqrt":
        return node.apply("Reciprocal", node.apply("Sqrt", x, suffix="root"))
    return node.apply(UNARY[node.operator], x)


reads("not", parameters="x")(lambda node: node.apply("Not", node.wire("x"), dtype=BOOL))


@reads("round", parameters="x")
def read_round(node: NodeReader) -> NnefWire:
    """Halves go away from zero, unlike ONNX's."""
    x = node.wire("x", F32)
    size = node.apply("Abs", x, suffix="abs")
    whole = node.apply("Floor", size, suffix="whole")
    is_up = node.apply(
        "GreaterOrEqual", node.apply("Sub", size, whole, suffix="rest"), 0.5, suffix="is_up", dtype=BOOL
    )
    rounded = node.apply(
        "Where", is_up, node.apply("Add", whole, 1, suffix="next"), whole, suffix="size", dtype=x.dtype
    )
    return node.apply("Mul", node.apply("Sign", x, suffix="sign"), rounded)


reads("tract_core_is_nan", parameters="x")(lambda node: node.apply("IsNaN", node.wire("x", F32), dtype=BOOL))


@reads("tract_core_silu", parameters="x")
def read_silu(node: NodeReader) -> NnefWire:
    x = node.wire("x", F32)
    return node.apply("Mul", x, node.apply("Sigmoid", x, suffix="gate"))


@reads("elu", parameters="x alpha=1.0")
def read_elu(node: NodeReader) -> NnefWire:
    return node.apply("Elu", node.wire("x", F32), alpha=node.number("alpha"))


@reads("leaky_relu", parameters="x alpha")
def read_leaky(node: NodeReader) -> NnefWire:
    return node.apply("LeakyRelu", node.wire("x", F32), alpha=node.number("alpha"))


@reads("prelu", parameters="x alpha")
def read_prelu(node: NodeReader) -> NnefWire:
    x, alpha = node.align([(name, node.arguments[name]) for name in ("x", "alpha")])
    return node.add("PRelu", [x, alpha], x.dtype, node.broadcast([x, alpha]))


@reads(*BINARY, "ne", parameters="x y")
def read_binary(node: NodeReader) -> NnefWire:
    wires = node.align([(name, node.arguments[name]) for name in ("x", "y")])
    sizes, dtype = node.broadcast(wires), wires[0].dtype
    if node.operator == "ne":
        return node.add("Not", [node.add("Equal", wires, BOOL, sizes, "equal")], BOOL, sizes)
    row = TABLE[node.operator]
    return node.add(row.names.onnx, wires, BOOL if row.result == "bool" else dtype, sizes)


@reads("add_n", parameters="x")
def read_sum(node: NodeReader) -> NnefWire:
    values = node.arguments["x"]
    if not isinstance(values, list) or not values:
        raise node.error("x must be a list of tensors")
    wires = node.align([(f"x{index}", value) for index, value in enumerate(values)])
    return node.add("Sum", wires, wires[0].dtype, node.broadcast(wires))


@reads("tract_shl", "tract_shr", parameters="x y")
def read_shift(node: NodeReader) -> NnefWire:
    wires = node.align([(name, node.arguments[name]) for name in ("x", "y")])
    direction = "LEFT" if node.operator == "tract_shl" else "RIGHT"
    return node.add("BitShift", wires, wires[0].dtype, node.broadcast(wires), direction=direction)


@reads("tract_core_pow_const", parameters="x exponent")
def read_power(node: NodeReader) -> NnefWire:
    return node.apply("Pow", node.wire("x", F32), node.number("exponent"))


@reads("select", parameters="condition true_value false_value")
def read_select(node: NodeReader) -> NnefWire:
    condition = node.wire("condition", BOOL)
    values = node.align([(name, node.arguments[name]) for name in ("true_value", "false_value")])
    rank = max(wire.rank for wire in (condition, *values))
    wires = [
        node.add_axes(wire, range(wire.rank, rank), f"wide{slot}") if 0 < wire.rank < rank else wire
        for slot, wire in enumerate((condition, *values))
    ]
    return node.add("Where", wires, values[0].dtype, node.broadcast(wires))


@reads("tract_core_cast", parameters="input to")
def read_cast(node: NodeReader) -> NnefWire:
    name = node.text("to")
    value = node.arguments["input"]
    dtype = parse_type(node, name)
    wire = node.as_wire(value, "input", dtype)
    return wire if wire.dtype == dtype and wire is not value else node.cast(wire, dtype)
