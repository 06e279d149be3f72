"""Products with their activation, which onnxruntime's optimiser joins to one node."""

from collections.abc import Mapping
from dataclasses import replace

from pulse.graph import OutletId
from pulse.infer.node_context import NodeContext
from pulse.infer.translators import wire_node
from pulse.onnx.operators.conv import conv
from pulse.onnx.operators.matmul import gemm
from pulse.onnx.registry import TRANSLATORS, onnx_op

BOUND_OPSET = 7
"""The opset of activations: there the bounds of Clip are attributes."""
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "Clip": ("min", "max"),
    "Elu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "LeakyRelu": ("alpha",),
    "Relu": (),
    "Selu": ("alpha", "gamma"),
    "Sigmoid": (),
    "Softplus": (),
    "Softsign": (),
    "Tanh": (),
    "ThresholdedRelu": ("alpha",),
}
"""Activation of a fused node -> its parameters, in the order of activation_params."""


@onnx_op("com.microsoft::FusedConv")
def fused_conv(node: NodeContext) -> OutletId:
    """Wire a convolution, plus an optional tensor, then an activation."""
    y = conv(_part(node, "conv"))
    if node.has(3):
        y = node.apply("add", y, node.input(3), suffix="sum")
    parameters = node.real_list("activation_params") if "activation_params" in node.attributes else ()
    return _activate(node, y, dict(zip(PARAMETERS.get(node.text("activation", ""), ()), parameters)))


@onnx_op("com.microsoft::FusedGemm")
def fused_gemm(node: NodeContext) -> OutletId:
    """Wire a product of matrices plus a third one, as Gemm does, then an activation."""
    prefix = "activation_"
    parameters = {
        name.removeprefix(prefix): node.real(name) for name in node.attributes if name.startswith(prefix)
    }
    return _activate(node, gemm(_part(node, "gemm")), parameters)


def _part(node: NodeContext, name: str) -> NodeContext:
    """Return the node without its activation, and without inputs beyond the bias."""
    return replace(node, wire_name=f"{node.wire_name}.{name}", inputs=node.inputs[:3])


def _activate(node: NodeContext, y: OutletId, parameters: Mapping[str, float]) -> OutletId:
    """Wire the activation that the node names, if any. Raises LoadError: it is not supported."""
    name = node.text("activation", "")
    if not name:
        return node.name_result(y)
    node.require(name in PARAMETERS, f"activation {name!r} is not supported; use {', '.join(PARAMETERS)}")
    part = replace(node, op_type=name, opset=BOUND_OPSET, attributes=parameters, inputs=(y,))
    return node.name_result(wire_node(TRANSLATORS[name], part)[0])
