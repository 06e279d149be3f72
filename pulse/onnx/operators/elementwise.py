"""Elementwise operators: mostly a table, as the ops are."""

import numpy as np

from pulse.dim import TDim
from pulse.facts import is_symbolic
from pulse.graph import OutletId
from pulse.onnx.context import NodeContext
from pulse.onnx.registry import onnx_op
from pulse.onnx.tensors import onnx_dtype
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.shape import Expand, Reshape

PLAIN = {
    "Add": "add",
    "Sub": "sub",
    "Mul": "mul",
    "Div": "div",
    "Min": "min",
    "Max": "max",
    "Sum": "sum",
    "Mean": "mean",
    "PRelu": "prelu",
    "Abs": "abs",
    "Neg": "neg",
    "Exp": "exp",
    "Log": "log",
    "Sqrt": "sqrt",
    "Reciprocal": "reciprocal",
    "Floor": "floor",
    "Ceil": "ceil",
    "Round": "round",
    "Sign": "sign",
    "Sin": "sin",
    "Cos": "cos",
    "Tan": "tan",
    "Asin": "asin",
    "Acos": "acos",
    "Atan": "atan",
    "Sinh": "sinh",
    "Cosh": "cosh",
    "Asinh": "asinh",
    "Acosh": "acosh",
    "Atanh": "atanh",
    "Erf": "erf",
    "Relu": "relu",
    "HardSwish": "hard_swish",
    "Sigmoid": "sigmoid",
    "Tanh": "tanh",
    "Softplus": "softplus",
    "Softsign": "softsign",
    "Mish": "mish",
    "And": "and",
    "Or": "or",
    "Xor": "xor",
    "Not": "not",
    "IsNaN": "isnan",
    "Equal": "equal",
    "Greater": "greater",
    "GreaterOrEqual": "greater_equal",
    "Less": "less",
    "LessOrEqual": "less_equal",
    "Where": "where",
}
"""ONNX operator -> row of the elementwise table, where nothing but the inputs matters."""

WITH_PARAMS: dict[str, tuple[str, dict[str, float]]] = {
    "LeakyRelu": ("leaky_relu", {"alpha": 0.01}),
    "ThresholdedRelu": ("thresholded_relu", {"alpha": 1.0}),
    "Elu": ("elu", {"alpha": 1.0}),
    "Celu": ("celu", {"alpha": 1.0}),
    "Selu": ("selu", {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}),
    "HardSigmoid": ("hard_sigmoid", {"alpha": 0.2, "beta": 0.5}),
    "Swish": ("swish", {"alpha": 1.0}),
}
"""ONNX operator -> row, and its attributes with their defaults, in the order of the row's parameters."""


@onnx_op(*PLAIN)
def plain(node: NodeContext) -> OutletId:
    """A row of the table."""
    return node.wire(Elementwise(PLAIN[node.op_type]), node.given())


@onnx_op(*WITH_PARAMS)
def with_params(node: NodeContext) -> OutletId:
    """A row of the table with float attributes."""
    kind, defaults = WITH_PARAMS[node.op_type]
    params = tuple(node.real(name, default) for name, default in defaults.items())
    return node.wire(Elementwise(kind, params), [node.input(0)])


@onnx_op("Gelu")
def gelu(node: NodeContext) -> OutletId:
    """Gelu, exact or by tanh."""
    approximate = node.text("approximate", "none")
    if approximate not in ("none", "tanh"):
        raise node.error(f"approximate {approximate!r} is not covered")
    return node.wire(Elementwise("gelu", (float(approximate == "tanh"),)), [node.input(0)])


@onnx_op("Mod")
def mod(node: NodeContext) -> OutletId:
    """Remainder with the sign of the divisor, or of the dividend (fmod)."""
    return node.wire(Elementwise("fmod" if node.flag("fmod") else "mod"), [node.input(0), node.input(1)])


@onnx_op("Pow")
def power(node: NodeContext) -> OutletId:
    """X to the power of y, in the type of x; an integer to the power of a float in f64."""
    x, y = node.given()
    own = node.fact(0).dtype
    if np.issubdtype(own, np.integer) and np.issubdtype(node.fact(1).dtype, np.floating):
        f64 = np.dtype(np.float64)
        wide = node.wire(
            Elementwise("pow"), [node.cast(x, f64, "wide"), node.cast(y, f64, "exponent")], "real"
        )
        return node.wire(Cast(own), [wide])
    return node.wire(Elementwise("pow"), [x, y])


@onnx_op("Clip")
def clip(node: NodeContext) -> OutletId:
    """Bounds are attributes before opset 11, then inputs."""
    bounds = [("max", "min", 1), ("min", "max", 2)]
    found: list[tuple[str, OutletId]] = []
    for kind, attribute, slot in bounds:
        if node.opset < 11:
            if attribute in node.attributes:
                bound = node.scalar_constant(node.real(attribute), node.fact(0), attribute)
                found.append((kind, bound))
        elif node.has(slot):
            found.append((kind, _as_scalar(node, slot, attribute)))
    x = node.input(0)
    for number, (kind, bound) in enumerate(found):
        last = number == len(found) - 1
        x = node.wire(Elementwise(kind), [x, bound], "" if last else "lower")
    return x


def _as_scalar(node: NodeContext, slot: int, name: str) -> OutletId:
    fact = node.fact(slot)
    if fact.rank == 0:
        return node.input(slot)
    if any(dim != 1 for dim in fact.shape):
        raise node.error(f"{name} must be one number, got {fact}")
    empty: tuple[TDim, ...] = ()
    return node.wire(Reshape(empty), [node.input(slot)], f"{name}_scalar")


@onnx_op("Cast")
def cast(node: NodeContext) -> OutletId:
    """Convert to the type of an attribute."""
    dtype = onnx_dtype(node.integer("to"), f"{node.wire_name} (Cast)")
    return _cast(node, dtype)


@onnx_op("CastLike")
def cast_like(node: NodeContext) -> OutletId:
    """Convert to the type of another wire."""
    return _cast(node, node.fact(1).dtype)


def _cast(node: NodeContext, dtype: np.dtype[np.generic]) -> OutletId:
    fact = node.fact(0)
    if fact.dtype == dtype:
        return node.input(0)
    symbolic = fact.value is not None and is_symbolic(fact.value)
    if symbolic and np.issubdtype(dtype, np.integer):
        return node.input(0)
    return node.wire(Cast(dtype), [node.input(0)])


@onnx_op("OptionalHasElement")
def optional_has_element(node: NodeContext) -> OutletId:
    """Whether the input is given; a tensor is always there."""
    return node.constant(np.array(node.has(0)))


@onnx_op("Identity", "OptionalGetElement")
def identity(node: NodeContext) -> OutletId:
    """The same wire."""
    return node.input(0)


@onnx_op("Dropout")
def dropout(node: NodeContext) -> list[OutletId]:
    """Nothing happens outside of training, nor with a ratio of 0; from opset 12 on the mask keeps everything."""
    if node.has(2) and bool(node.scalar(2, "training_mode")):
        ratio = float(node.scalar(1, "ratio")) if node.has(1) else 0.5
        if ratio != 0:
            raise node.error(
                f"it drops a share of {ratio:g} at random (training mode); export the model for inference"
            )
    if node.opset < 12 or not any(node.outputs[1:]):
        return [node.input(0)]
    kept = node.constant(np.array(True), "kept")
    return [node.input(0), node.wire(Expand(node.fact(0).shape), [kept], "mask")]
