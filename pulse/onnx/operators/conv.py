"""Convolutions, and the padding rules that they share with pools. The translators compute the lengths of axes."""

from collections.abc import Iterator, Sequence
from typing import Any

from pulse.dim import TDim, dim_max
from pulse.graph import OutletId
from pulse.infer.inference_node import InferenceNode
from pulse.infer.nhwc import same_pair, split_total
from pulse.infer.node_context import NodeContext
from pulse.infer.relations import FactRelation, HasRank, SameRank, SameSize, SameType, SizeMultiple
from pulse.infer.wire_facts import Axis
from pulse.onnx.registry import onnx_op, rule
from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.ops.conv import Conv, ConvTranspose, Pads, kernel_spans, no_pads
from pulse.support.wording import count_of

AUTO_PADS = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")


def auto_pad(node: NodeContext) -> str:
    """Return the padding rule. Raises LoadError: it is unknown."""
    rule = node.text("auto_pad", "NOTSET") or "NOTSET"
    node.require(rule in AUTO_PADS, f"auto_pad {rule!r} is not supported")
    return rule


def spatial_list(node: NodeContext, name: str, rank: int, minimum: int) -> tuple[int, ...]:
    """Return an attribute with one integer for each spatial axis, ``minimum`` by default.

    Raises LoadError: their number is wrong, or one is less.
    """
    values = node.integer_list(name, (minimum,) * rank)
    if len(values) != rank:
        raise node.error(
            f"attribute {name} has {count_of(len(values), 'entry', 'entries')} for "
            f"{count_of(rank, 'spatial axis', 'spatial axes')}"
        )
    if any(value < minimum for value in values):
        raise node.error(
            f"attribute {name} {list(values)} has an entry below {minimum}; export the model again"
        )
    return values


def attribute_pads(node: NodeContext, rank: int) -> Pads:
    """Return the attribute ``pads``: all befores, then all afters.

    Raises LoadError: their number is wrong, or one is negative.
    """
    values = node.integer_list("pads", (0,) * (2 * rank))
    if len(values) != 2 * rank:
        raise node.error(
            f"attribute pads has {count_of(len(values), 'entry', 'entries')} for "
            f"{count_of(rank, 'spatial axis', 'spatial axes')}"
        )
    if any(value < 0 for value in values):
        raise node.error(f"negative pads {list(values)} are not supported; slice before")
    return tuple((TDim.of(values[axis]), TDim.of(values[axis + rank])) for axis in range(rank))


def window_pads(
    node: NodeContext, sizes: Sequence[TDim], spans: Sequence[int], strides: Sequence[int]
) -> Pads:
    """Return the padding of a convolution or pool over spatial axes of these sizes."""
    rule = auto_pad(node)
    if rule == "NOTSET":
        return attribute_pads(node, len(sizes))
    if rule == "VALID":
        return no_pads(len(sizes))
    upper = rule == "SAME_UPPER"
    return tuple(same_pair(size, span, stride, upper) for size, span, stride in zip(sizes, spans, strides))


def _kernel(node: NodeContext) -> tuple[int, ...]:
    x, w = node.fact(0), node.fact(1)
    if w.rank < 3 or x.rank != w.rank:
        raise node.error(f"x ({x}) and the kernel ({w}) need the same rank, of at least 3")
    node.require(all(dim.is_const for dim in w.shape), f"the kernel's shape {w} must be constant")
    kernel = tuple(int(dim) for dim in w.shape[2:])
    node.require(0 not in kernel and int(w.shape[0]) != 0, f"the kernel {w} is empty; export the model again")
    if "kernel_shape" in node.attributes and node.integer_list("kernel_shape") != kernel:
        raise node.error(f"kernel_shape {node.attributes['kernel_shape']} differs from the kernel {w}")
    return kernel


def _group(node: NodeContext) -> int:
    """Return the number of groups, which both channels and kernels are cut into.

    Raises LoadError: it does not divide them.
    """
    node.divisor("group", node.fact(0).shape[1], "channels of its input", 1)
    return node.divisor("group", node.fact(1).shape[0], "kernels", 1)


@onnx_op("Conv")
def conv(node: NodeContext) -> OutletId:
    """Wire a convolution."""
    kernel = _kernel(node)
    rank = len(kernel)
    strides = spatial_list(node, "strides", rank, 1)
    dilations = spatial_list(node, "dilations", rank, 1)
    pads = window_pads(node, node.fact(0).shape[2:], kernel_spans(kernel, dilations), strides)
    return node.wire(Conv(strides, dilations, pads, _group(node)), node.given_inputs())


@onnx_op("ConvTranspose")
def conv_transpose(node: NodeContext) -> OutletId:
    """Wire a transposed convolution; its padding may be stated by the output's size (output_shape, SAME rules)."""
    kernel = _kernel(node)
    rank = len(kernel)
    strides = spatial_list(node, "strides", rank, 1)
    dilations = spatial_list(node, "dilations", rank, 1)
    extra = spatial_list(node, "output_padding", rank, 0)
    sizes = node.fact(0).shape[2:]
    rule = auto_pad(node)
    same = rule.startswith("SAME")
    if "output_shape" in node.attributes:
        output_sizes = [TDim.of(size) for size in spatial_list(node, "output_shape", rank, 0)]
    elif same:
        output_sizes = [size * stride for size, stride in zip(sizes, strides)]
    else:
        pads = no_pads(rank) if rule == "VALID" else attribute_pads(node, rank)
        return node.wire(ConvTranspose(strides, dilations, pads, extra, _group(node)), node.given_inputs())
    totals = [
        (size - 1) * stride + extra_frames + span - goal
        for size, stride, extra_frames, span, goal in zip(
            sizes, strides, extra, kernel_spans(kernel, dilations), output_sizes
        )
    ]
    if any(not total.is_const for total in totals):
        raise node.error(
            f"output_shape {[str(goal) for goal in output_sizes]} does not follow the input's length"
        )
    pads = tuple(split_total(dim_max(0, total), rule == "SAME_UPPER") for total in totals)
    longer = tuple(extra_frames + max(0, -int(total)) for extra_frames, total in zip(extra, totals))
    return node.wire(ConvTranspose(strides, dilations, pads, longer, _group(node)), node.given_inputs())


@rule("Conv", uniform=True)
def infer_conv(node: InferenceNode) -> Iterator[FactRelation]:
    """Relate the shapes of x [N, C, X...], w [O, C/group, K...], b [O] -> y [N, O, Y...]."""
    x, w, y = node.input(0), node.input(1), node.output
    yield from _match_operands(node)
    yield SizeMultiple(Axis(x, 1), Axis(w, 1), node.integer("group", 1))
    yield SameSize([Axis(y, 1), Axis(w, 0), *_bias(node)])
    yield SameSize([Axis(x, 0), Axis(y, 0)])


@rule("ConvTranspose", uniform=True)
def infer_conv_transpose(node: InferenceNode) -> Iterator[FactRelation]:
    """Relate the shapes of x [N, C, X...], w [C, O/group, K...], b [O] -> y [N, O, Y...]."""
    x, w, y = node.input(0), node.input(1), node.output
    yield from _match_operands(node)
    yield SameSize([Axis(x, 1), Axis(w, 0)])
    yield SizeMultiple(Axis(y, 1), Axis(w, 1), node.integer("group", 1))
    yield SameSize([Axis(y, 1), *_bias(node)])
    yield SameSize([Axis(x, 0), Axis(y, 0)])


def _match_operands(node: InferenceNode) -> Iterator[FactRelation]:
    yield SameType([*node.given_inputs(), node.output])
    yield SameRank([node.input(0), node.input(1), node.output])
    if node.has(2):
        yield HasRank([node.input(2)], 1)


def _bias(node: InferenceNode) -> list[Axis]:
    return [Axis(node.input(2), 0)] if node.has(2) else []


def pads_of(pads: Pads) -> list[int]:
    """Return the pads of ONNX: all before, then all after."""
    return [int(pair[side]) for side in (0, 1) for pair in pads]


writes(Conv)(lambda w, op: w.emit("Conv", w.inputs, **_attributes(w, op)))


@writes(ConvTranspose)
def write_conv_transpose(w: NodeWriter, op: ConvTranspose) -> str:
    """Write ConvTranspose."""
    return w.emit("ConvTranspose", w.inputs, **_attributes(w, op), output_padding=list(op.output_padding))


def _attributes(w: NodeWriter, op: Conv | ConvTranspose) -> dict[str, Any]:
    return {
        "kernel_shape": list(w.sizes(1)[2:]),
        "strides": list(op.strides),
        "dilations": list(op.dilations),
        "pads": pads_of(op.pads),
        "group": op.group,
    }
