"""Convolutions: channels last become channels second by transposes, which cost nothing once compiled."""

from collections.abc import Iterator, Sequence

from pulse.dim import TDim, dim_max
from pulse.graph import OutletId
from pulse.infer import nhwc
from pulse.infer.inference_node import InferenceNode
from pulse.infer.relations import FactRelation, HasRank, SameShape, SameSize, SameType
from pulse.infer.wire_facts import Axis
from pulse.onnx.wiring import wire_onnx
from pulse.ops.conv import ConvTranspose, span_of
from pulse.ops.shape import Reshape
from pulse.support.wording import count_of
from pulse.tensorflow.data_format import (
    from_second,
    has_channels_first,
    read_pads,
    spatial_attribute,
    to_second,
)
from pulse.tensorflow.node import TensorflowNode
from pulse.tensorflow.registry import rule, tensorflow_op


@tensorflow_op("Conv2D", "Conv3D")
def conv(node: TensorflowNode) -> OutletId:
    """Wire a convolution; the kernel is [spatial..., channels of a group, kernels]."""
    x, kernel = node.fact(0), node.fact(1)
    rank = x.rank
    if rank != kernel.rank or rank != (4 if node.op_type == "Conv2D" else 5):
        raise node.error(f"x ({x}) and the kernel ({kernel}) do not fit")
    channels = x.shape[1 if has_channels_first(node) else -1]
    kernel_channels = kernel.shape[-2]
    if (
        not channels.is_const
        or not kernel_channels.is_const
        or int(kernel_channels) < 1
        or int(channels) % int(kernel_channels)
    ):
        raise node.error(f"x of {count_of(channels, 'channel')} does not fit a kernel of {kernel_channels}")
    return _convolve(node, (rank - 1, rank - 2, *range(rank - 2)), int(channels) // int(kernel_channels))


def _convolve(
    node: TensorflowNode, perm: Sequence[int], group: int, kernel: OutletId | None = None
) -> OutletId:
    rank = node.fact(0).rank
    x = to_second(node, node.input(0))
    w = node.transpose(node.input(1) if kernel is None else kernel, perm, "kernel")
    steps = {
        "strides": spatial_attribute(node, "strides", rank),
        "dilations": spatial_attribute(node, "dilations", rank),
    }
    y = wire_onnx(node, "Conv", [x, w], "convolved", group=group, **steps, **read_pads(node, rank))
    return from_second(node, y)


@tensorflow_op("DepthwiseConv2dNative")
def depthwise(node: TensorflowNode) -> OutletId:
    """Convolve each channel with its own kernels: [height, width, channels, kernels of each]."""
    kernel = node.fact(1)
    if kernel.rank != 4 or node.fact(0).rank != 4 or not all(dim.is_const for dim in kernel.shape):
        raise node.error(f"x ({node.fact(0)}) and the kernel ({kernel}) do not fit")
    height, width, channels, multiplier = kernel.shape
    flat = node.wire(Reshape((height, width, TDim.of(1), channels * multiplier)), [node.input(1)], "flat")
    return _convolve(node, (3, 2, 0, 1), int(channels), flat)


@tensorflow_op("Conv2DBackpropInput")
def conv_transpose(node: TensorflowNode) -> OutletId:
    """Wire a transposed convolution; inputs are the shape of its output, the kernel [h, w, out, in], and x."""
    rank = 4
    kernel, x = node.fact(1), node.fact(2)
    if kernel.rank != rank or x.rank != rank or not all(dim.is_const for dim in kernel.shape):
        raise node.error(f"x ({x}) and the kernel ({kernel}) do not fit")
    strides, dilations = spatial_attribute(node, "strides", rank), spatial_attribute(node, "dilations", rank)
    first = has_channels_first(node)
    sizes, out_sizes = list(x.shape), list(node.dims(0, "input_sizes"))
    if len(out_sizes) not in (2, rank):
        raise node.error(f"its output's shape has {count_of(len(out_sizes), 'entry', 'entries')}")
    inner = sizes[2:] if first else sizes[1:-1]
    goals = out_sizes if len(out_sizes) == 2 else out_sizes[2:] if first else out_sizes[1:-1]
    spans = [span_of(int(kernel.shape[axis]), dilations[axis]) for axis in range(2)]
    totals = [
        (size - 1) * stride + span - goal for size, stride, span, goal in zip(inner, strides, spans, goals)
    ]
    if any(not total.is_const for total in totals):
        raise node.error(
            f"its output's sizes {[str(goal) for goal in goals]} do not follow its input's sizes"
        )
    pads = tuple(nhwc.split_total(dim_max(0, total)) for total in totals)
    extra = tuple(max(0, -int(total)) for total in totals)
    if any(missing >= stride > 0 for missing, stride in zip(extra, strides)) and any(extra):
        raise node.error(f"its output's sizes {[str(goal) for goal in goals]} are too long for its input")
    w = node.transpose(node.input(1), (3, 2, 0, 1), "kernel")
    channels_second = to_second(node, node.input(2))
    op = ConvTranspose(tuple(strides), tuple(dilations), pads, extra, 1)
    return from_second(node, node.wire(op, [channels_second, w], "convolved"))


@tensorflow_op("BiasAdd", "BiasAddV1")
def bias_add(node: TensorflowNode) -> OutletId:
    """Add a number for each channel."""
    rank, bias = node.fact(0).rank, node.input(1)
    if has_channels_first(node) and rank > 2:
        shape = (node.fact(1).shape[0], *(TDim.of(1),) * (rank - 2))
        bias = node.wire(Reshape(shape), [bias], "column")
    return node.apply("add", node.input(0), bias)


@rule("Conv2D", "DepthwiseConv2dNative")
def infer_conv(node: InferenceNode) -> Iterator[FactRelation]:
    """Relate the shapes of x [N, H, W, C], kernel [KH, KW, C, O] -> y of four axes."""
    x, kernel, y = node.input(0), node.input(1), node.output
    yield HasRank([x, kernel, y], 4)
    yield SameType([x, kernel, y])
    yield SameSize([Axis(x, 0), Axis(y, 0)])
    if node.text("data_format", "NHWC") == "NHWC":
        yield SameSize([Axis(x, 3), Axis(kernel, 2)])


@rule("BiasAdd")
def infer_bias(node: InferenceNode) -> Iterator[FactRelation]:
    """The shape stays; the bias has a number for each channel."""
    x, bias = node.input(0), node.input(1)
    yield SameType([x, bias, node.output])
    yield HasRank([bias], 1)
    yield SameShape([x, node.output])
    if node.text("data_format", "NHWC") == "NHWC":
        yield SameSize([Axis(x, -1), Axis(bias, 0)])
