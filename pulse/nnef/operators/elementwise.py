"""Elementwise functions."""

from collections.abc import Mapping

import numpy as np

from pulse.facts import DType
from pulse.nnef.read.node import SINGLE, TRUTH, NnefWire, NodeReader
from pulse.nnef.registry import reads, writes
from pulse.nnef.syntax import Name
from pulse.nnef.write.node import OperationWriter
from pulse.ops.elementwise_functions import ELEMENTWISE, FunctionRow
from pulse.support.printable import printable

NAMES: Mapping[str, str] = {
    row.names.onnx: row.names.nnef for row in ELEMENTWISE.values() if row.names.onnx and row.names.nnef
}
"""Operators that both formats have: the name in ONNX -> the one in NNEF."""
FOLDED: Mapping[str, str] = {"Sum": "add", "Max": NAMES["Max"], "Min": NAMES["Min"]}
"""Operators of any number of inputs -> those of two."""
COMPOSED = ("Mul", *FOLDED, "Reciprocal", "Sigmoid", "Tanh", "Softplus", "HardSwish")
"""Operators that are written by a function of their own, although NNEF has them: tract's are less exact, or fewer."""
SAME = {"Identity": "copy"} | {kind: name for kind, name in NAMES.items() if kind not in COMPOSED}
"""Operators that are written as themselves."""


@writes(*SAME)
def write_same(w: OperationWriter) -> Name:
    return w.emit(SAME[w.kind], *w.operands())


@writes("Mul")
def write_product(w: OperationWriter) -> Name:
    """A position times a constant becomes a sum.

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
            x = w.operand(1 - slot, w.made_rank())
            if isinstance(x, Name):
                return _times(w, x, int(factor.item()))
    return w.emit("mul", *w.operands())


def _times(w: OperationWriter, x: Name, factor: int) -> Name:
    """Multiply by an integer through doubling, from the highest bit on."""
    if factor == 1:
        return w.emit("copy", x)
    total = x
    for number, bit in enumerate(bits := bin(factor)[3:], 1):
        last = number == len(bits)
        total = w.emit("add", total, total, suffix="" if last and bit == "0" else f"double{number}")
        if bit == "1":
            total = w.emit("add", total, x, suffix="" if last else f"more{number}")
    return total


@writes(*FOLDED)
def write_folded(w: OperationWriter) -> Name:
    total, *rest = w.operands()
    if not rest:
        return w.emit("copy", total)
    for number, each in enumerate(rest, 1):
        total = w.emit(FOLDED[w.kind], total, each, suffix="" if number == len(rest) else f"with{number}")
    assert isinstance(total, Name)
    return total


@writes("Mean")
def write_mean(w: OperationWriter) -> Name:
    total, *rest = w.operands()
    for number, each in enumerate(rest, 1):
        total = w.emit("add", total, each, suffix=f"with{number}")
    return w.emit("div", total, w.number(len(w.inputs), w.dtype()))


@writes("Reciprocal")
def write_reciprocal(w: OperationWriter) -> Name:
    return w.emit("div", w.number(1, w.dtype()), w.x())


@writes("Mod")
def write_mod(w: OperationWriter) -> Name:
    """The remainder has the divisor's sign; with ``fmod`` the dividend's, as tract's division rounds."""
    x, y = w.operands()
    dtype = w.dtype()
    if dtype.kind == "f":
        raise w.error("have no exact remainders of floats", "compute it with integers")
    quotient = w.emit("div", x, y, suffix="quotient")
    rest_suffix = "" if w.attribute("fmod", 0) or dtype.kind == "u" else "rest"
    rest = w.emit("sub", x, w.emit("mul", quotient, y, suffix="multiple"), suffix=rest_suffix)
    if not rest_suffix:
        return rest
    zero = w.number(0, dtype, "zero")
    some = w.emit("ne", rest, zero, suffix="some")
    below, under = w.emit("lt", rest, zero, suffix="below"), w.emit("lt", y, zero, suffix="under")
    differs = w.emit("tract_core_xor", below, under, suffix="differs")
    shifts = w.emit("and", some, differs, suffix="shifts")
    return w.emit("select", shifts, w.emit("add", rest, y, suffix="shifted"), rest)


@writes("BitShift")
def write_shift(w: OperationWriter) -> Name:
    return w.emit("tract_shl" if w.attribute("direction", "") == "LEFT" else "tract_shr", *w.operands())


@writes("Cast")
def write_cast(w: OperationWriter) -> Name:
    source, target = w.dtype(), w.made_dtype()
    if target == np.bool_ and source != np.bool_:
        return w.emit("ne", w.x(), w.number(0, source, "zero"))
    return w.cast(w.x(), target)


PARAMS = {row.names.onnx: row.names.params for row in ELEMENTWISE.values() if row.names.params}
"""Operator of ONNX -> its attributes and their defaults."""


def _params(w: OperationWriter) -> list[float]:
    return [w.attribute(name, default) for name, default in PARAMS[w.kind].items()]


@writes("LeakyRelu", "PRelu")
def write_sloped(w: OperationWriter) -> Name:
    rank = w.made_rank()
    x = w.operand(0, rank)
    slope = w.operand(1, rank) if w.kind == "PRelu" else w.number(_params(w)[0], w.dtype())
    below = w.emit("lt", x, w.number(0, w.dtype(), "zero"), suffix="below")
    return w.emit("select", below, w.emit("mul", x, slope, suffix="scaled"), x)


def _exponential(w: OperationWriter, scale: float, divisor: float, gain: float) -> Name:
    """Return ``gain * (x if x >= 0 else scale * (exp(x / divisor) - 1))``.

    Near 0, ``exp(a) - 1`` is ``2 t / (1 - t)`` of ``t = tanh(a / 2)``, which loses nothing.
    """
    x, dtype = w.x(), w.dtype()
    scaled = x if divisor == 1 else w.emit("div", x, w.number(divisor, dtype), suffix="scaled")
    half = w.emit("tanh", w.emit("mul", scaled, w.number(0.5, dtype), suffix="halved"), suffix="half")
    one = w.number(1, dtype)
    twice, rest = w.emit("add", half, half, suffix="twice"), w.emit("sub", one, half, suffix="rest")
    direct = w.emit("sub", w.emit("exp", scaled, suffix="exp"), one, suffix="far")
    small = w.emit("gt", scaled, w.number(-0.7, dtype, "edge"), suffix="small")
    grown = w.emit("select", small, w.emit("div", twice, rest, suffix="near"), direct, suffix="grown")
    curve = w.emit("mul", grown, w.number(scale, dtype, "scale"), suffix="curve")
    below = w.emit("lt", x, w.number(0, dtype, "zero"), suffix="below")
    if gain == 1:
        return w.emit("select", below, curve, x)
    return w.emit("mul", w.emit("select", below, curve, x, suffix="chosen"), w.number(gain, dtype, "gain"))


@writes("Elu")
def write_elu(w: OperationWriter) -> Name:
    (alpha,) = _params(w)
    return _exponential(w, alpha, 1, 1)


@writes("Selu")
def write_selu(w: OperationWriter) -> Name:
    alpha, gamma = _params(w)
    return _exponential(w, alpha, 1, gamma)


@writes("Celu")
def write_celu(w: OperationWriter) -> Name:
    (alpha,) = _params(w)
    return _exponential(w, alpha, alpha, 1)


@writes("Sigmoid")
def write_sigmoid(w: OperationWriter) -> Name:
    """In exponentials: tract's own sigmoid of -20 is 200 times too large."""
    power = w.emit("exp", w.emit("neg", w.x(), suffix="neg"), suffix="exp")
    one = w.number(1, w.dtype())
    return w.emit("div", one, w.emit("add", one, power, suffix="sum"))


@writes("Tanh")
def write_tanh(w: OperationWriter) -> Name:
    """Near 0 tract's tanh; farther out exponentials, because tract's is off by 10 units in the last place there."""
    x, one = w.x(), w.number(1, w.dtype())
    size = w.emit("abs", x, suffix="abs")
    power = w.emit(
        "exp", w.emit("neg", w.emit("add", size, size, suffix="twice"), suffix="neg"), suffix="exp"
    )
    rest, sum = w.emit("sub", one, power, suffix="rest"), w.emit("add", one, power, suffix="sum")
    by_exponentials = w.emit(
        "mul", w.emit("sign", x, suffix="sign"), w.emit("div", rest, sum, suffix="quotient"), suffix="far"
    )
    near = w.emit("lt", size, w.number(0.5, w.dtype()), suffix="near")
    return w.emit("select", near, w.emit("tanh", x, suffix="small"), by_exponentials)


@writes("Softplus")
def write_softplus(w: OperationWriter) -> Name:
    """``max(x, 0) + log(1 + exp(-|x|))``, which does not overflow."""
    x, dtype = w.x(), w.dtype()
    small = w.emit("exp", w.emit("neg", w.emit("abs", x, suffix="abs"), suffix="neg"), suffix="exp")
    rest = w.emit("log", w.emit("add", small, w.number(1, dtype), suffix="sum"), suffix="log")
    return w.emit("add", w.emit("max", x, w.number(0, dtype, "zero"), suffix="positive"), rest)


@writes("Softsign")
def write_softsign(w: OperationWriter) -> Name:
    x = w.x()
    return w.emit(
        "div", x, w.emit("add", w.emit("abs", x, suffix="abs"), w.number(1, w.dtype()), suffix="sum")
    )


@writes("ThresholdedRelu")
def write_thresholded(w: OperationWriter) -> Name:
    dtype = w.dtype()
    above = w.emit("gt", w.x(), w.number(_params(w)[0], dtype), suffix="above")
    return w.emit("select", above, w.x(), w.number(0, dtype, "zero"))


@writes("HardSigmoid")
def write_hard_sigmoid(w: OperationWriter) -> Name:
    alpha, beta = _params(w)
    return _hard_sigmoid(w, alpha, beta, "")


def _hard_sigmoid(w: OperationWriter, alpha: float, beta: float, suffix: str) -> Name:
    dtype = w.dtype()
    line = w.emit("mul", w.x(), w.number(alpha, dtype, "slope"), suffix="scaled")
    line = w.emit("add", line, w.number(beta, dtype, "shift"), suffix="line")
    low = w.emit("max", line, w.number(0, dtype, "zero"), suffix="low")
    return w.emit("min", low, w.number(1, dtype, "one"), suffix=suffix)


@writes("HardSwish")
def write_hard_swish(w: OperationWriter) -> Name:
    return w.emit("mul", w.x(), _hard_sigmoid(w, 1 / 6, 0.5, "gate"))


TYPES: Mapping[str, str] = {"f": "float", "i": "int", "u": "uint"}
KINDS: Mapping[str, FunctionRow] = {row.names.nnef: row for row in ELEMENTWISE.values() if row.names.nnef}
"""Functions of the table by their name in NNEF."""
UNARY: Mapping[str, str] = {
    **{name: row.names.onnx for name, row in KINDS.items() if row.arity == 1 and row.result == "same"},
    "copy": "Identity",
    "recip": "Reciprocal",
    "sqr": "",
    "square": "",
    "rsqrt": "",
}
"""Functions of one tensor; an empty name is made of several nodes."""
BINARY = tuple(name for name, row in KINDS.items() if row.arity in (2, -1))
"""Functions of two tensors."""


def parse_type(node: NodeReader, name: str) -> DType:
    """Return a type by tract's name, such as F32 and i64. Raises LoadError."""
    letter, digits = name[:1].lower(), name[1:]
    if name.lower() == "bool":
        return TRUTH
    if letter not in TYPES or digits not in ("8", "16", "32", "64") or (letter == "f" and digits == "8"):
        raise node.error(f"the type {printable(name)} is not supported")
    return np.dtype(f"{TYPES[letter]}{digits}")


@reads(*UNARY, takes="x")
def read_unary(node: NodeReader) -> NnefWire:
    x = node.wire("x", SINGLE)
    if node.operator in ("sqr", "square"):
        return node.add("Mul", [x, x], x.dtype, x.sizes)
    if node.operator == "rsqrt":
        root = node.add("Sqrt", [x], x.dtype, x.sizes, "root")
        return node.add("Reciprocal", [root], x.dtype, x.sizes)
    return node.add(UNARY[node.operator], [x], x.dtype, x.sizes)


@reads("not", takes="x")
def read_not(node: NodeReader) -> NnefWire:
    x = node.wire("x")
    return node.add("Not", [x], TRUTH, x.sizes)


@reads("round", takes="x")
def read_round(node: NodeReader) -> NnefWire:
    """Halves go away from zero, unlike ONNX's."""
    x = node.wire("x", SINGLE)
    half = node.graph.constant(np.array(0.5, x.dtype), f"{node.targets[0]}.half")
    size = node.add("Abs", [x], x.dtype, x.sizes, "abs")
    whole = node.add(
        "Floor", [node.add("Add", [size, half], x.dtype, x.sizes, "sum")], x.dtype, x.sizes, "whole"
    )
    return node.add("Mul", [node.add("Sign", [x], x.dtype, x.sizes, "sign"), whole], x.dtype, x.sizes)


@reads("tract_core_is_nan", takes="x")
def read_nan(node: NodeReader) -> NnefWire:
    x = node.wire("x", SINGLE)
    return node.add("IsNaN", [x], TRUTH, x.sizes)


@reads("tract_core_silu", takes="x")
def read_silu(node: NodeReader) -> NnefWire:
    x = node.wire("x", SINGLE)
    return node.add("Mul", [x, node.add("Sigmoid", [x], x.dtype, x.sizes, "gate")], x.dtype, x.sizes)


@reads("elu", takes="x alpha=1.0")
def read_elu(node: NodeReader) -> NnefWire:
    x = node.wire("x", SINGLE)
    return node.add("Elu", [x], x.dtype, x.sizes, alpha=node.number("alpha"))


@reads("leaky_relu", takes="x alpha")
def read_leaky(node: NodeReader) -> NnefWire:
    x = node.wire("x", SINGLE)
    return node.add("LeakyRelu", [x], x.dtype, x.sizes, alpha=node.number("alpha"))


@reads("prelu", takes="x alpha")
def read_prelu(node: NodeReader) -> NnefWire:
    x, alpha = node.align([(name, node.arguments[name]) for name in ("x", "alpha")])
    return node.add("PRelu", [x, alpha], x.dtype, node.broadcast([x, alpha]))


@reads(*BINARY, "ne", takes="x y")
def read_binary(node: NodeReader) -> NnefWire:
    wires = node.align([(name, node.arguments[name]) for name in ("x", "y")])
    sizes, dtype = node.broadcast(wires), wires[0].dtype
    if node.operator == "ne":
        return node.add("Not", [node.add("Equal", wires, TRUTH, sizes, "equal")], TRUTH, sizes)
    row = KINDS[node.operator]
    return node.add(row.names.onnx, wires, TRUTH if row.result == "bool" else dtype, sizes)


@reads("add_n", takes="x")
def read_sum(node: NodeReader) -> NnefWire:
    values = node.arguments["x"]
    if not isinstance(values, list) or not values:
        raise node.error("x must be a list of tensors")
    wires = node.align([(f"x{at}", value) for at, value in enumerate(values)])
    return node.add("Sum", wires, wires[0].dtype, node.broadcast(wires))


@reads("tract_shl", "tract_shr", takes="x y")
def read_shift(node: NodeReader) -> NnefWire:
    wires = node.align([(name, node.arguments[name]) for name in ("x", "y")])
    direction = "LEFT" if node.operator == "tract_shl" else "RIGHT"
    return node.add("BitShift", wires, wires[0].dtype, node.broadcast(wires), direction=direction)


@reads("tract_core_pow_const", takes="x exponent")
def read_power(node: NodeReader) -> NnefWire:
    x = node.wire("x", SINGLE)
    power = node.graph.constant(np.array(node.number("exponent"), x.dtype), f"{node.targets[0]}.exponent")
    return node.add("Pow", [x, power], x.dtype, x.sizes)


@reads("select", takes="condition true_value false_value")
def read_select(node: NodeReader) -> NnefWire:
    condition = node.wire("condition", TRUTH)
    values = node.align([(name, node.arguments[name]) for name in ("true_value", "false_value")])
    rank = max(wire.rank for wire in (condition, *values))
    wires = [
        node.add_axes(wire, range(wire.rank, rank), f"wide{slot}") if 0 < wire.rank < rank else wire
        for slot, wire in enumerate((condition, *values))
    ]
    return node.add("Where", wires, values[0].dtype, node.broadcast(wires))


@reads("tract_core_cast", takes="input to")
def read_cast(node: NodeReader) -> NnefWire:
    name = node.text("to")
    value = node.arguments["input"]
    dtype = parse_type(node, name)
    wire = node.as_wire(value, "input", dtype)
    return wire if wire.dtype == dtype and wire is not value else node.cast(wire, dtype)
