"""Activations and bounds, also as onnxruntime fuses them."""

import math
from collections.abc import Iterator

from pulse.graph import OutletId
from pulse.infer.inference_node import InferenceNode, same_type_and_shape
from pulse.infer.node_context import NodeContext
from pulse.infer.relations import FactRelation, SameShape, SameType
from pulse.onnx.registry import onnx_op, rule


@onnx_op("IsInf")
def is_inf(node: NodeContext) -> OutletId:
    """Whether an element is an infinity, of both signs or one."""
    signs = [
        (sign, name)
        for sign, name in ((1, "positive"), (-1, "negative"))
        if node.flag(f"detect_{name}", True)
    ]
    node.require_floats(0)
    x = node.input(0)
    infinite = [node.apply("equal", x, sign * math.inf, suffix=name) for sign, name in signs]
    if not infinite:
        return node.apply("less", x, x)
    return node.name_result(infinite[0] if len(infinite) == 1 else node.apply("or", *infinite))


@onnx_op("Shrink")
def shrink(node: NodeContext) -> OutletId:
    """Move towards zero by ``bias`` outside -lambd … lambd, zero inside."""
    x, limit, bias = node.input(0), node.real("lambd", 0.5), node.real("bias", 0.0)
    below = node.apply("less", x, -limit, suffix="below")
    above = node.apply("greater", x, limit, suffix="above")
    up, down = node.apply("add", x, bias, suffix="up"), node.apply("sub", x, bias, suffix="down")
    return node.apply("where", below, up, node.apply("where", above, down, 0, suffix="inner"))


@onnx_op("SwiGLU")
def swiglu(node: NodeContext) -> OutletId:
    """Wire swish of one tensor times the other."""
    gate = node.apply("swish", node.input(0), suffix="gate", params=(node.real("alpha", 1.0),))
    return node.apply("mul", gate, node.input(1))


@onnx_op("com.microsoft::Gelu", "com.microsoft::BiasGelu", "com.microsoft::FastGelu")
def bias_gelu(node: NodeContext) -> OutletId:
    """Wire gelu of x, or of x and a bias; FastGelu computes it by tanh."""
    x = node.input(0)
    if node.has(1):
        x = node.apply("add", x, node.input(1), suffix="biased")
    return node.apply("gelu", x, params=(float(node.op_type.endswith("FastGelu")),))


@onnx_op("com.microsoft::QuickGelu")
def quick_gelu(node: NodeContext) -> OutletId:
    """Wire ``x * sigmoid(alpha * x)``."""
    return node.apply("swish", node.input(0), params=(node.real("alpha", 1.702),))


@onnx_op("Gelu")
def gelu(node: NodeContext) -> OutletId:
    """Wire gelu, exact or by tanh."""
    approximate = node.text("approximate", "none")
    node.require(approximate in ("none", "tanh"), f"approximate {approximate!r} is not supported")
    return node.apply("gelu", node.input(0), params=(float(approximate == "tanh"),))


@onnx_op("Clip")
def clip(node: NodeContext) -> OutletId:
    """Limit to bounds: attributes before opset 11, then inputs."""
    limits: list[tuple[str, OutletId | float]] = []
    for function, attribute, slot in (("max", "min", 1), ("min", "max", 2)):
        if node.opset < 11:
            if attribute in node.attributes:
                limits.append((function, node.real(attribute)))
        elif node.has(slot):
            limits.append((function, node.as_scalar(node.input(slot), attribute)))
    x = node.input(0)
    for index, (function, bound) in enumerate(limits):
        last = index == len(limits) - 1
        x = node.apply(function, x, bound, suffix="" if last else "lower")
    return x


@rule("Clip")
def infer_clip(node: InferenceNode) -> Iterator[FactRelation]:
    """Type and shape stay; bounds are of the same type."""
    yield SameType([*node.given_inputs(), node.output])
    yield SameShape([node.input(0), node.output])


rule("Gelu", "Shrink")(same_type_and_shape)
