"""Operators of onnxruntime's own domain that its optimizer writes in place of standard ones."""

from collections.abc import Sequence
from dataclasses import replace

from pulse.graph import OutletId
from pulse.onnx.context import NodeContext
from pulse.onnx.operators.conv import conv
from pulse.onnx.registry import onnx_op
from pulse.ops.elementwise import Elementwise
from pulse.ops.matmul import MatMul
from pulse.ops.norm import LayerNorm
from pulse.ops.op import Op
from pulse.ops.shape import Transpose

ACTIVATIONS = {
    "Relu": ("relu", ()),
    "Tanh": ("tanh", ()),
    "Sigmoid": ("sigmoid", ()),
    "LeakyRelu": ("leaky_relu", (0.01,)),
    "HardSigmoid": ("hard_sigmoid", (0.2, 0.5)),
}
"""Activation of a fused node -> row of the elementwise table, and its parameters where none are given."""
EXACT, BY_TANH = 0.0, 1.0


def _gelu(node: NodeContext, form: float) -> OutletId:
    x = node.input(0)
    if node.has(1):
        x = node.wire(Elementwise("add"), [x, node.input(1)], "biased")
    return node.wire(Elementwise("gelu", (form,)), [x])


@onnx_op("com.microsoft::Gelu", "com.microsoft::BiasGelu")
def gelu(node: NodeContext) -> OutletId:
    """Gelu of x, or of x and a bias."""
    return _gelu(node, EXACT)


@onnx_op("com.microsoft::FastGelu")
def fast_gelu(node: NodeContext) -> OutletId:
    """Gelu by tanh, of x or of x and a bias."""
    return _gelu(node, BY_TANH)


@onnx_op("com.microsoft::QuickGelu")
def quick_gelu(node: NodeContext) -> OutletId:
    """X * sigmoid(alpha * x)."""
    return node.wire(Elementwise("swish", (node.real("alpha", 1.702),)), [node.input(0)])


@onnx_op("com.microsoft::FusedMatMul", "com.microsoft::TransposeMatMul")
def fused_mat_mul(node: NodeContext) -> OutletId:
    """The product of matrices, either of them transposed, times alpha."""
    if node.flag("transBatchA") or node.flag("transBatchB"):
        raise node.error("transposed batches are not covered")
    operands: list[OutletId] = []
    for slot, name in ((0, "A"), (1, "B")):
        x, rank = node.input(slot), node.fact(slot).rank
        if node.flag(f"trans{name}") and rank > 1:
            x = node.wire(Transpose((*range(rank - 2), rank - 1, rank - 2)), [x], f"{name}_turned")
        operands.append(x)
    alpha = node.real("alpha", 1.0)
    y = node.wire(MatMul(), operands, "product")
    if alpha != 1.0:
        y = node.wire(Elementwise("mul"), [y, node.scalar_constant(alpha, node.fact(0), "alpha")])
    return node.finished(y)


@onnx_op("com.microsoft::FusedConv")
def fused_conv(node: NodeContext) -> OutletId:
    """A convolution, plus another tensor where one is given, then an activation."""
    inner = replace(node, wire_name=f"{node.wire_name}.conv", inputs=node.inputs[:3])
    y = conv(inner)
    if node.has(3):
        y = node.wire(Elementwise("add"), [y, node.input(3)], "sum")
    name = node.text("activation", "")
    if name:
        y = node.wire(_activation(node, name), [y])
    return node.finished(y)


def _activation(node: NodeContext, name: str) -> Op:
    if name not in ACTIVATIONS:
        raise node.error(f"activation {name!r} is not covered; use {', '.join(ACTIVATIONS)}")
    kind, defaults = ACTIVATIONS[name]
    given = node.real_list("activation_params") if "activation_params" in node.attributes else ()
    return Elementwise(kind, given[: len(defaults)] or defaults)


@onnx_op("com.microsoft::SkipLayerNormalization")
def skip_layer_normalization(node: NodeContext) -> Sequence[OutletId]:
    """The sum of two tensors and a bias, normalised over the last axis; the sum is the fourth output."""
    total = node.wire(Elementwise("add"), [node.input(0), node.input(1)], "sum")
    if node.has(4):
        total = node.wire(Elementwise("add"), [total, node.input(4)], "biased")
    operands = [total, node.input(2)]
    shift = node.input(3) if node.has(3) else None
    epsilon = node.real("epsilon", 1e-12)
    axis = node.graph.fact(total).rank - 1
    y = node.wire(LayerNorm(axis, epsilon), operands if shift is None else [*operands, shift])
    if len(node.outputs) < 4 or not node.outputs[3]:
        return [y]
    if any(node.outputs[1:3]):
        raise node.error("mean and deviation are not covered; they are for training")
    return [y, y, y, node.named(node.outputs[3]).finished(total)]
