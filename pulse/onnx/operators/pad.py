"""Padding of any axes."""

from typing import Any

import numpy as np

from pulse.dim import TDim, dim_max, dim_min
from pulse.graph import OutletId
from pulse.infer.inference_node import same_type_and_rank
from pulse.infer.node_context import NodeContext
from pulse.onnx.registry import onnx_op, rule
from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.ops.concat import Concat
from pulse.ops.conv import NO_PAD, Pads
from pulse.ops.dims import require_at_least
from pulse.ops.gather import Gather
from pulse.ops.op import PadMode
from pulse.ops.pad import Pad
from pulse.ops.slice import Slice
from pulse.support.wording import count_of

MODES: dict[str, PadMode] = {"constant": "constant", "edge": "edge", "reflect": "reflect"}


@onnx_op("Pad")
def pad(node: NodeContext) -> OutletId:
    """Pad: by an attribute before opset 11, then by inputs; a negative pad is a slice."""
    mode = node.text("mode", "constant")
    node.require(mode in (*MODES, "wrap"), f"mode {mode!r} is not supported; {', '.join(MODES)} and wrap are")
    rank = node.fact(0).rank
    befores, afters = _amounts(node, rank)
    x = node.input(0)
    zero = TDim.of(0)
    pads = tuple((dim_max(0, before), dim_max(0, after)) for before, after in zip(befores, afters))
    has_padding = any(pair != (zero, zero) for pair in pads)
    cropped = [
        axis for axis in range(rank) if dim_max(0, -befores[axis]) != 0 or dim_max(0, -afters[axis]) != 0
    ]
    for axis in cropped:
        size = node.fact(0).shape[axis]
        end = size - dim_max(0, -afters[axis])
        suffix = f"crop{axis}" if has_padding or axis != cropped[-1] else ""
        x = node.wire(Slice(axis, dim_max(0, -befores[axis]), end), [x], suffix)
    if not has_padding:
        return x
    return _wrap(node, x, pads) if mode == "wrap" else node.wire(Pad(pads, MODES[mode], _fill(node)), [x])


def _wrap(node: NodeContext, x: OutletId, pads: Pads) -> OutletId:
    """Wrap an axis: prepend its last frames, and append its first ones."""
    axes = [axis for axis, pair in enumerate(pads) if pair != (0, 0)]
    for axis in axes:
        (before, after), size = pads[axis], node.graph.fact(x).shape[axis]
        suffix = "" if axis == axes[-1] else f"wrap{axis}"
        if all(dim.is_const for dim in (before, after, size)):
            indices = np.arange(-int(before), int(size) + int(after)) % max(1, int(size))
            x = node.wire(Gather(axis), [x, node.constant(indices, f"indices{axis}")], suffix)
            continue
        require_at_least(size, dim_max(before, after), f"wrap padding {before}:{after} of axis {axis}")
        last = node.wire(Slice(axis, size - before, size), [x], f"last{axis}")
        first = node.wire(Slice(axis, TDim.of(0), after), [x], f"first{axis}")
        x = node.wire(Concat(axis), [last, x, first], suffix)
    return x


def _amounts(node: NodeContext, rank: int) -> tuple[list[TDim], list[TDim]]:
    if node.opset < 11:
        amounts = tuple(TDim.of(size) for size in node.integer_list("pads"))
    else:
        amounts = node.dims(1, "pads")
    axes = list(range(rank))
    if node.has(3):
        axes = [node.axis(axis, rank) for axis in node.integers(3, "axes")]
    if len(amounts) != 2 * len(axes):
        raise node.error(
            f"{count_of(len(amounts), 'pad')} for {count_of(len(axes), 'axis', 'axes')}; two for each axis are needed"
        )
    befores, afters = [TDim.of(0)] * rank, [TDim.of(0)] * rank
    for index, axis in enumerate(axes):
        befores[axis], afters[axis] = amounts[index], amounts[index + len(axes)]
    return befores, afters


def _fill(node: NodeContext) -> float:
    if node.opset < 11:
        return node.real("value", 0.0)
    fill: Any = node.scalar(2, "fill value") if node.has(2) else 0.0
    return float(fill)


@onnx_op("CenterCropPad")
def center_crop_pad(node: NodeContext) -> OutletId:
    """Cut axes, or pad them with zeros, on both sides to a size."""
    x, fact = node.input(0), node.fact(0)
    goals = node.dims(1, "shape")
    axis_numbers = node.integer_list("axes", range(fact.rank))
    axes = [node.axis(axis, fact.rank) for axis in axis_numbers]
    if len(goals) != len(axes):
        raise node.error(f"{count_of(len(goals), 'size')} for {count_of(len(axes), 'axis', 'axes')}")
    pads = [NO_PAD] * fact.rank
    for axis, goal in zip(axes, goals):
        size = fact.shape[axis]
        first = dim_max(0, size - goal) // 2
        if not goal.prove_ge(size).yes:
            x = node.wire(Slice(axis, first, first + dim_min(goal, size)), [x], f"cut{axis}")
        missing = dim_max(0, goal - size)
        pads[axis] = missing // 2, missing - missing // 2
    if all(pair == (0, 0) for pair in pads):
        return node.name_result(x)
    return node.wire(Pad(tuple(pads)), [x])


rule("Pad", uniform=True)(same_type_and_rank)


@writes(Pad)
def write_pad(w: NodeWriter, op: Pad) -> str:
    """Write padding around each axis."""
    if op.mode == "symmetric":
        return _mirror(w, op)
    pads = [int(pair[side]) for side in (0, 1) for pair in op.pads]
    inputs = [w.inputs[0], w.integers(pads, "pads")]
    if op.mode == "constant":
        inputs.append(w.number(op.fill, w.dtype(), "fill"))
    return w.emit("Pad", inputs, mode=op.mode)


def _mirror(w: NodeWriter, op: Pad) -> str:
    """Look frames up, axis by axis: no version of the operator repeats the frame at the border."""
    pairs = [(int(before), int(after)) for before, after in op.pads]
    axes = [axis for axis, pair in enumerate(pairs) if pair != (0, 0)]
    x = w.inputs[0]
    for axis in axes:
        indices = np.pad(np.arange(w.sizes()[axis], dtype=np.int64), pairs[axis], mode="symmetric")
        last = axis == axes[-1]
        x = w.emit("Gather", [x, w.constant(indices, "indices")], "" if last else f"axis_{axis}", axis=axis)
    return x if axes else w.emit("Identity", [x])
