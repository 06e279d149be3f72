"""Running sums, and running products, which are scans."""

import numpy as np

from pulse.dim import ZERO, TDim
from pulse.facts import dtype_name
from pulse.graph import OutletId
from pulse.infer.inference_node import same_type_and_shape
from pulse.infer.node_context import NodeContext
from pulse.infer.scan_body import ScanBody
from pulse.onnx.operators.time import only_valid
from pulse.onnx.registry import onnx_op, rule
from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.ops.conv import NO_PAD
from pulse.ops.cumulative import CumSum, CumSumStream, sum_dtype
from pulse.ops.elementwise import Elementwise
from pulse.ops.pad import Pad
from pulse.ops.scan import ScanAxis
from pulse.ops.shape import Expand
from pulse.ops.slice import Slice
from pulse.wiring import wire


@onnx_op("CumProd")
def cum_prod(node: NodeContext) -> OutletId:
    """Wire x[0] * … * x[j] along an axis, without x[j] itself if it is exclusive, backwards in reverse."""
    x = node.fact(0)
    axis = node.axis(int(node.scalar(1, "axis")), x.rank)
    size = x.shape[axis]
    if size.is_const:
        return _scan_by_doubling(node, axis, int(size))
    frame = x.without_axis(axis)
    scan_axis = ScanAxis(axis, node.flag("reverse"))
    one = node.constant(np.ones((), x.dtype), "one")
    first = one if not frame.rank else node.wire(Expand(frame.shape), [one], "first")
    scanned = ScanBody()
    before = scanned.add_state("P", frame, first)
    factors = [before, scanned.add_frames("x", frame, node.input(0), scan_axis)]
    after = wire(scanned.graph, "product", Elementwise("mul"), factors)[0]
    result = before if node.flag("exclusive") else after
    return scanned.wire(node, node.wire_name, [after], [result], scan_axis)[0]


def _scan_by_doubling(node: NodeContext, axis: int, size: int) -> OutletId:
    """Scan an axis of known length by products of 1, 2, 4, … neighbours, so that frames of another axis can stream."""
    x, reverse = node.input(0), node.flag("reverse")
    one = 1 if np.issubdtype(node.fact(0).dtype, np.integer) else 1.0

    def shift(outlet: OutletId, frames: int, name: str) -> OutletId:
        """Delay by a number of frames, and fill with ones; in reverse, advance."""
        pads = [NO_PAD] * node.fact(0).rank
        pads[axis] = (ZERO, TDim.of(frames)) if reverse else (TDim.of(frames), ZERO)
        first = frames if reverse else 0
        padded = node.wire(Pad(tuple(pads), fill=one), [outlet], f"{name}_wide")
        return node.wire(Slice(axis, TDim.of(first), TDim.of(first + size)), [padded], name)

    if node.flag("exclusive") and size:
        x = shift(x, 1, "before")
    reach = 1
    while reach < size:
        x = node.apply("mul", x, shift(x, reach, f"moved{reach}"), suffix=f"product{reach}")
        reach *= 2
    return node.name_result(x)


@onnx_op("CumSum")
def cum_sum(node: NodeContext) -> OutletId:
    """Wire running sums along a constant axis."""
    axis = node.axis(node.integer_at(1, "axis"), node.fact(0).rank)
    node.require(dtype_name(node.fact(0).dtype) != "bool", "sums of bool are not defined; cast it to numbers")
    return node.wire(CumSum(axis, node.flag("exclusive"), node.flag("reverse")), [node.input(0)])


rule("CumSum")(same_type_and_shape)


@writes(CumSum)
def write_cum_sum(w: NodeWriter, op: CumSum) -> list[str]:
    """Write the sums of one pulse; the total if it is read."""
    (x,) = w.inputs
    attributes = {"exclusive": int(op.exclusive), "reverse": int(op.reverse)}
    axis = w.clock.number(op.axis)
    sums = w.emit("CumSum", [_widen(w, x), axis], "sums" if _is_widened(w) else "", **attributes)
    results = [_narrow(w, sums)]
    return [*results, w.reduce("ReduceSum", x, (op.axis,), "total") if w.output_is_used[1] else ""]


@writes(CumSumStream)
def write_cum_sum_stream(w: NodeWriter, op: CumSumStream) -> list[str]:
    """Write running sums: the sum so far is the state; frames outside the stream add nothing to it."""
    axis, pulse = op.op.axis, w.sizes()[op.op.axis]
    (initial,) = op.initial_state()
    state = w.graph.add_state(f"{w.name}.state", initial.astype(sum_dtype(w.dtype())))
    x = only_valid(w, w.inputs[0], axis, pulse, op.offset, op.length if w.output_is_used[1] else None)
    source = _widen(w, x)
    running = w.emit("CumSum", [source, w.clock.number(axis)], "running", exclusive=int(op.op.exclusive))
    sums = w.emit("Add", [running, state], "sums" if _is_widened(w) else "")
    total = _last_frame(w, sums, axis, pulse, "sum")
    if op.op.exclusive:
        total = w.emit("Add", [total, _last_frame(w, source, axis, pulse, "newest")], "whole")
    w.graph.keep(state, total)
    results = [_narrow(w, sums)]
    if not w.output_is_used[1]:
        return [*results, ""]
    return [*results, _narrow(w, total, "total")]


def _is_widened(w: NodeWriter) -> bool:
    """Return whether the sums have another dtype than the terms."""
    return sum_dtype(w.dtype()) != w.dtype()


def _widen(w: NodeWriter, x: str) -> str:
    """Return the terms in the dtype of their sums."""
    return w.cast(x, sum_dtype(w.dtype()), "wide") if _is_widened(w) else x


def _narrow(w: NodeWriter, sums: str, name: str = "") -> str:
    """Return the sums in the dtype of the terms."""
    return w.cast(sums, w.dtype(), name) if _is_widened(w) else sums


def _last_frame(w: NodeWriter, x: str, axis: int, frames: int, name: str) -> str:
    """Return the last frame of a pulse."""
    return x if frames == 1 else w.crop(x, axis, frames - 1, frames, name)
