"""Pools over windows, and over whole spatial axes."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from pulse.dim import TDim, ceil_div, dim_max, dim_min
from pulse.facts import F32, U8
from pulse.graph import OutletId
from pulse.infer.inference_node import InferenceNode
from pulse.infer.node_context import NodeContext
from pulse.infer.relations import FactRelation, HasRank, SameRank, SameSize, SameType
from pulse.infer.wire_facts import Axis
from pulse.onnx.operators.conv import pads_of, spatial_list, window_pads
from pulse.onnx.registry import onnx_op, rule
from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.ops.conv import kernel_spans
from pulse.ops.elementwise import Cast
from pulse.ops.pool import MaxPlace, Pool, PoolKind
from pulse.ops.reduce import Reduce, ReduceKind

CODES = (U8, np.dtype(np.int8))
POOL_KINDS: dict[str, PoolKind] = {"MaxPool": "max", "AveragePool": "average", "LpPool": "lp"}


def _ceil_extra(size: TDim, before: TDim, after: TDim, span: int, stride: int) -> TDim:
    """Return frames to append so that no input frame is omitted (ceil_mode).

    A last window that would begin in the padding at the end is omitted.
    """
    total = before + size + after
    last = dim_min(ceil_div(total - span, stride), (size + before - 1) // stride)
    return dim_max(0, last * stride + span - total)


def _shortfall(total: TDim, span: int, stride: int) -> TDim:
    """Return the frames missing to a whole window, if fewer than a stride.

    There onnxruntime still returns one frame, because it divides towards zero; the specification rounds down. Written
    without conditions, the sum of all frames is seen to grow with the stream.
    """
    return dim_max(total, dim_min(span, span * (total - span + stride))) - total


@onnx_op(*POOL_KINDS)
def pool(node: NodeContext) -> list[OutletId]:
    """Wire a pool over windows; of a maximum also the indices, if the node has that output."""
    rank = max(0, node.fact(0).rank - 2)
    if "kernel_shape" not in node.attributes:
        raise node.error("attribute kernel_shape is missing; export the model again")
    kernel = spatial_list(node, "kernel_shape", rank, 1)
    sizes = node.fact(0).shape[2:]
    strides = spatial_list(node, "strides", rank, 1)
    dilations = spatial_list(node, "dilations", rank, 1)
    spans = kernel_spans(kernel, dilations)
    pads = window_pads(node, sizes, spans, strides)
    extra: tuple[TDim, ...] = ()
    if node.flag("ceil_mode"):
        extra = tuple(
            _ceil_extra(size, before, after, span, stride)
            for size, (before, after), span, stride in zip(sizes, pads, spans, strides)
        )
        pads = tuple((before, after + added) for (before, after), added in zip(pads, extra))
    elif node.op_type == "MaxPool":
        pads = tuple(
            (before, after + _shortfall(before + size + after, span, stride))
            for size, (before, after), span, stride in zip(sizes, pads, spans, strides)
        )
    op = Pool(
        kind=POOL_KINDS[node.op_type],
        kernel=kernel,
        strides=strides,
        dilations=dilations,
        pads=pads,
        count_include_pad=node.flag("count_include_pad"),
        extra=extra if any(added != 0 for added in extra) else (),
        p=node.integer("p", 2),
    )
    y = _pool_codes(node, op) if node.fact(0).dtype in CODES else node.wire(op, [node.input(0)])
    if op.kind != "max" or not any(node.outputs[1:]):
        return [y]
    op_of_places = MaxPlace(op, node.flag("storage_order"))
    return [y, node.wire(op_of_places, [node.input(0)], "indices")]


def _pool_codes(node: NodeContext, op: Pool) -> OutletId:
    """Pool 8-bit integers in f32, which holds them exactly; a window of padding alone has the smallest one."""
    dtype = node.fact(0).dtype
    y = node.wire(op, [node.cast(node.input(0), F32, "wide")], "value")
    y = node.apply("max", y, int(np.iinfo(dtype).min), suffix="bounded")
    return node.wire(Cast(dtype), [y])


@onnx_op("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(node: NodeContext) -> OutletId:
    """Reduce every spatial axis."""
    norms: dict[int, ReduceKind] = {1: "l1", 2: "l2"}
    kind: ReduceKind = "mean" if node.op_type == "GlobalAveragePool" else "max"
    if node.op_type == "GlobalLpPool":
        exponent = node.integer("p", 2)
        node.require(exponent in norms, f"p {exponent} is not supported; use 1 or 2")
        kind = norms[exponent]
    rank = node.fact(0).rank
    return node.wire(Reduce(kind, tuple(range(2, rank)), True), [node.input(0)])


@rule("MaxPool", "AveragePool", "LpPool", uniform=True)
def infer_pool(node: InferenceNode) -> Iterator[FactRelation]:
    """Relate the shapes of x [N, C, X...] -> y [N, C, Y...], with one spatial axis for each of the kernel."""
    x, y = node.input(0), node.output
    yield SameType([x, y])
    yield HasRank([x, *node.outlets], len(node.integer_list("kernel_shape")) + 2)
    yield from _keep_channels(node)


@rule("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", uniform=True)
def infer_global_pool(node: InferenceNode) -> Iterator[FactRelation]:
    """Relate the shapes of x [N, C, X...] -> y [N, C, 1...]."""
    yield SameType([node.input(0), node.output])
    yield SameRank([node.input(0), node.output])
    yield from _keep_channels(node)


def _keep_channels(node: InferenceNode) -> Iterator[FactRelation]:
    for axis in (0, 1):
        yield SameSize([Axis(node.input(0), axis), Axis(node.output, axis)])


@writes(Pool)
def write_pool(w: NodeWriter, op: Pool) -> str:
    """Write the operator if it has the needed attributes, else a convolution with ones."""
    (x,) = w.inputs
    window: dict[str, Any] = {
        "kernel_shape": list(op.kernel),
        "strides": list(op.strides),
        "pads": pads_of(op.pads),
    }
    dilated = any(step != 1 for step in op.dilations)
    if op.kind == "max":
        return w.emit("MaxPool", [x], dilations=list(op.dilations), **window)
    if op.kind == "average" and not dilated and not any(extra != 0 for extra in op.extra):
        return w.emit("AveragePool", [x], count_include_pad=int(op.count_include_pad), **window)
    if op.kind == "lp" and not dilated:
        return w.emit("LpPool", [x], p=op.p, **window)
    if op.kind == "lp":
        power = w.number(op.p, w.dtype(), "p")
        powers = w.emit("Pow", [w.emit("Abs", [x], "abs"), power], "powers")
        total = _write_sums(w, op, powers, "sums")
        return w.emit("Pow", [total, w.number(1 / op.p, w.dtype(), "root")])
    if op.kind == "sum":
        return _write_sums(w, op, x)
    divisor = op.divisor(np.empty(w.sizes(), np.float32), {})
    total = _write_sums(w, op, x, "sums")
    return w.emit("Div", [total, w.constant(np.asarray(divisor).astype(w.dtype()), "divisor")])


def _write_sums(w: NodeWriter, op: Pool, x: str, suffix: str = "") -> str:
    """Return the sum of every window: each channel convolved with ones."""
    batch, channels, *spatial = w.sizes()
    kernel = np.ones((1, 1, *op.kernel), w.dtype())
    single = (batch, channels) == (1, 1)
    rows = x if single else w.reshape(x, (batch * channels, 1, *spatial), "rows")
    sums = w.emit(
        "Conv",
        [rows, w.constant(kernel, "ones")],
        suffix if single else "row_sums",
        kernel_shape=list(op.kernel),
        strides=list(op.strides),
        dilations=list(op.dilations),
        pads=pads_of(op.pads),
    )
    return sums if single else w.reshape(sums, w.output_shape(), suffix)


@writes(MaxPlace)
def write_max_place(w: NodeWriter, op: MaxPlace) -> str:
    """Write the second output of the operator."""
    max_pool = op.pool
    _, indices = w.emit_all(
        "MaxPool",
        w.inputs,
        ("largest", "indices"),
        kernel_shape=list(max_pool.kernel),
        strides=list(max_pool.strides),
        dilations=list(max_pool.dilations),
        pads=pads_of(max_pool.pads),
        storage_order=int(op.column_major),
    )
    return indices
