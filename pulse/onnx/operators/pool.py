"""Pools over windows, and over whole spatial axes."""

from pulse.dim import TDim, ceil_div, dim_max, dim_min, ge
from pulse.graph import OutletId
from pulse.onnx.context import NodeContext
from pulse.onnx.operators.conv import spatial_list, window_pads
from pulse.onnx.registry import onnx_op
from pulse.ops.pool import MaxPlace, Pool, PoolKind
from pulse.ops.reduce import Reduce, ReduceKind

KINDS: dict[str, PoolKind] = {"MaxPool": "max", "AveragePool": "average", "LpPool": "lp"}


def _ceil_extra(size: TDim, before: TDim, after: TDim, span: int, stride: int) -> TDim:
    """Frames to add behind so that no input frame is left out (ceil_mode).

    A last window that would begin in the padding behind is left out.
    """
    total = before + size + after
    last = dim_min(ceil_div(total - span, stride), (size + before - 1) // stride)
    return dim_max(0, last * stride + span - total)


def _shortfall(total: TDim, span: int, stride: int) -> TDim:
    """Frames missing to one window, where less than a stride is missing.

    There onnxruntime still gives one frame, because it divides towards zero; the specification divides down.
    """
    return (1 - ge(total, span)) * dim_max(0, ge(total, span - stride + 1) * (span - total))


@onnx_op(*KINDS)
def pool(node: NodeContext) -> list[OutletId]:
    """A pool over windows; of a maximum the places too, where they are asked for."""
    rank = max(0, node.fact(0).rank - 2)
    if "kernel_shape" not in node.attributes:
        raise node.error("attribute kernel_shape is missing")
    kernel = spatial_list(node, "kernel_shape", rank, 1)
    sizes = node.fact(0).shape[2:]
    strides = spatial_list(node, "strides", rank, 1)
    dilations = spatial_list(node, "dilations", rank, 1)
    spans = [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations)]
    pads = window_pads(node, sizes, spans, strides)
    extra: tuple[TDim, ...] = ()
    if node.flag("ceil_mode"):
        extra = tuple(
            _ceil_extra(size, before, after, span, stride)
            for size, (before, after), span, stride in zip(sizes, pads, spans, strides)
        )
        pads = tuple((before, after + more) for (before, after), more in zip(pads, extra))
    elif node.op_type == "MaxPool":
        pads = tuple(
            (before, after + _shortfall(before + size + after, span, stride))
            for size, (before, after), span, stride in zip(sizes, pads, spans, strides)
        )
    op = Pool(
        KINDS[node.op_type],
        kernel,
        strides,
        dilations,
        pads,
        node.flag("count_include_pad"),
        extra if any(more != 0 for more in extra) else (),
        node.integer("p", 2),
    )
    y = node.wire(op, [node.input(0)])
    if op.kind != "max" or not any(node.outputs[1:]):
        return [y]
    places = MaxPlace(op, node.flag("storage_order"))
    return [y, node.wire(places, [node.input(0)], "places")]


@onnx_op("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(node: NodeContext) -> OutletId:
    """A reduction of every spatial axis."""
    norms: dict[int, ReduceKind] = {1: "l1", 2: "l2"}
    kind: ReduceKind = "mean" if node.op_type == "GlobalAveragePool" else "max"
    if node.op_type == "GlobalLpPool":
        exponent = node.integer("p", 2)
        if exponent not in norms:
            raise node.error(f"p {exponent} is not covered; 1 and 2 are")
        kind = norms[exponent]
    rank = node.fact(0).rank
    return node.wire(Reduce(kind, tuple(range(2, rank)), True), [node.input(0)])
