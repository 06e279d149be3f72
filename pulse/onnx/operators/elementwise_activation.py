"""Activations and bounds, also as onnxruntime fuses them."""

import math
from collections.abc import Iterator

import numpy as np

from pulse.dim import TDim
from pulse.graph import OutletId
from pulse.infer.relations import FactRelation, SameShape, SameType
from pulse.onnx.clues import Clues, same_type_and_shape
from pulse.onnx.context import NodeContext
from pulse.onnx.registry import onnx_op
from pulse.onnx.rules import rule
from pulse.ops.elementwise import Elementwise
from pulse.ops.shape import Reshape


@onnx_op("IsInf")
def is_inf(node: NodeContext) -> OutletId:
    """Whether an element is an infinity, of both signs or one."""
    signs = [
        (sign, name)
        for sign, name in ((1, "positive"), (-1, "negative"))
        if node.flag(f"detect_{name}", True)
    ]
    x, fact = node.input(0), node.fact(0)
    infinite = [
        node.wire(
            Elementwise("equal"), [x, node.scalar_constant(sign * math.inf, fact, f"{name}_infinity")], name
        )
        for sign, name in signs
    ]
    if not infinite:
        return node.wire(Elementwise("less"), [x, x])
    return node.name_result(infinite[0] if len(infinite) == 1 else node.wire(Elementwise("or"), infinite))


@onnx_op("Shrink")
def shrink(node: NodeContext) -> OutletId:
    """Towards zero by ``bias`` outside -lambd … lambd, zero inside."""
    x, fact = node.input(0), node.fact(0)
    limit, bias = node.real("lambd", 0.5), node.real("bias", 0.0)
    numbers = {"low": -limit, "high": limit, "bias": bias, "zero": 0.0}
    low, high, bias_wire, zero = (
        node.constant(np.array(value).astype(fact.dtype), name) for name, value in numbers.items()
    )
    below, above = (
        node.wire(Elementwise("less"), [x, low], "below"),
        node.wire(Elementwise("greater"), [x, high], "above"),
    )
    up, down = (
        node.wire(Elementwise("add"), [x, bias_wire], "up"),
        node.wire(Elementwise("sub"), [x, bias_wire], "down"),
    )
    inner = node.wire(Elementwise("where"), [above, down, zero], "inner")
    return node.wire(Elementwise("where"), [below, up, inner])


@onnx_op("SwiGLU")
def swiglu(node: NodeContext) -> OutletId:
    """Swish of one tensor times the other."""
    gate = node.wire(Elementwise("swish", (node.real("alpha", 1.0),)), [node.input(0)], "gate")
    return node.wire(Elementwise("mul"), [gate, node.input(1)])


EXACT, BY_TANH = 0.0, 1.0
"""The values of the parameter of ``gelu``."""


def _gelu(node: NodeContext, form: float) -> OutletId:
    x = node.input(0)
    if node.has(1):
        x = node.wire(Elementwise("add"), [x, node.input(1)], "biased")
    return node.wire(Elementwise("gelu", (form,)), [x])


@onnx_op("com.microsoft::Gelu", "com.microsoft::BiasGelu")
def bias_gelu(node: NodeContext) -> OutletId:
    """Gelu of x, or of x and a bias."""
    return _gelu(node, EXACT)


@onnx_op("com.microsoft::FastGelu")
def fast_gelu(node: NodeContext) -> OutletId:
    """Gelu by tanh, of x or of x and a bias."""
    return _gelu(node, BY_TANH)


@onnx_op("com.microsoft::QuickGelu")
def quick_gelu(node: NodeContext) -> OutletId:
    """``x * sigmoid(alpha * x)``."""
    return node.wire(Elementwise("swish", (node.real("alpha", 1.702),)), [node.input(0)])


@onnx_op("Gelu")
def gelu(node: NodeContext) -> OutletId:
    """Gelu, exact or by tanh."""
    approximate = node.text("approximate", "none")
    if approximate not in ("none", "tanh"):
        raise node.error(f"approximate {approximate!r} is not supported")
    return node.wire(Elementwise("gelu", (float(approximate == "tanh"),)), [node.input(0)])


@onnx_op("Clip")
def clip(node: NodeContext) -> OutletId:
    """Bounds are attributes before opset 11, then inputs."""
    bounds = [("max", "min", 1), ("min", "max", 2)]
    limits: list[tuple[str, OutletId]] = []
    for kind, attribute, slot in bounds:
        if node.opset < 11:
            if attribute in node.attributes:
                bound = node.scalar_constant(node.real(attribute), node.fact(0), attribute)
                limits.append((kind, bound))
        elif node.has(slot):
            limits.append((kind, _as_scalar(node, slot, attribute)))
    x = node.input(0)
    for number, (kind, bound) in enumerate(limits):
        last = number == len(limits) - 1
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


@rule("Clip")
def infer_clip(clues: Clues) -> Iterator[FactRelation]:
    """Type and shape stay; bounds are of the same type."""
    yield SameType([*clues.given_inputs(), clues.output])
    yield SameShape([clues.input(0), clues.output])


rule("Gelu", "Shrink")(same_type_and_shape)
