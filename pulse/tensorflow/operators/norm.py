"""Normalisations."""

from pulse.graph import OutletId
from pulse.infer.inference_node import same_type_and_shape
from pulse.onnx.operators.norm_batch import normalise
from pulse.onnx.wiring import wire_onnx
from pulse.ops.norm import Softmax
from pulse.ops.reduce import Reduce
from pulse.tensorflow.data_format import from_second, has_channels_first, to_second
from pulse.tensorflow.node import TensorflowNode
from pulse.tensorflow.registry import rule, tensorflow_op


@tensorflow_op("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def batch_norm(node: TensorflowNode) -> OutletId:
    """Wire ``x * k + (offset - mean * k)``, with ``k = scale / sqrt(variance + epsilon)``.

    Without given statistics, each channel of the batch has its own: the form of Keras 2 for LayerNormalization, whose
    frames are channels.
    """
    mean, variance, centred = node.input(3), node.input(4), None
    if node.flag("is_training", True):
        mean = None
        centred, variance = _of_batch(node)
    return normalise(node, mean, variance, node.real("epsilon", 1e-4), has_channels_first(node), centred)


def _of_batch(node: TensorflowNode) -> tuple[OutletId, OutletId]:
    """Return the input without the mean of each channel, and the variance of each channel."""
    if len(node.outputs) > 1:
        raise node.error(
            "statistics of the batch as outputs belong to training; export the model for inference"
        )
    rank, first = node.fact(0).rank, has_channels_first(node)
    axes = tuple(axis for axis in range(rank) if axis != (1 if first else rank - 1))
    mean = node.wire(Reduce("mean", axes, True), [node.input(0)], "batch_means")
    difference = node.apply("sub", node.input(0), mean, suffix="difference")
    square = node.apply("mul", difference, difference, suffix="square")
    return difference, node.wire(Reduce("mean", axes, False), [square], "batch_variance")


@tensorflow_op("LRN")
def local_response(node: TensorflowNode) -> OutletId:
    """Wire ``x / (bias + alpha * s) ** beta``; s sums the squares of the channels at most depth_radius away."""
    size = 2 * node.integer("depth_radius", 5) + 1
    numbers = {"alpha": node.real("alpha", 1.0) * size, "bias": node.real("bias", 1.0)}
    beta = node.real("beta", 0.5)
    x = to_second(node, node.input(0))
    return from_second(node, wire_onnx(node, "LRN", [x], "normalised", size=size, beta=beta, **numbers))


@tensorflow_op("Softmax", "LogSoftmax")
def softmax(node: TensorflowNode) -> OutletId:
    """Wire softmax along the last axis."""
    return node.wire(Softmax(node.fact(0).rank - 1, node.op_type == "LogSoftmax"), [node.input(0)])


rule("Softmax", "LogSoftmax")(same_type_and_shape)
