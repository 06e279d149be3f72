"""Padding of any axes."""

from typing import Any

import numpy as np

from pulse.dim import TDim, dim_max
from pulse.graph import OutletId
from pulse.onnx.context import NodeContext
from pulse.onnx.registry import onnx_op
from pulse.ops.concat import Concat
from pulse.ops.conv import Pads
from pulse.ops.gather import Gather
from pulse.ops.op import PadMode, require_at_least
from pulse.ops.pad import Pad
from pulse.ops.slice import Slice

MODES: dict[str, PadMode] = {"constant": "constant", "edge": "edge", "reflect": "reflect"}


@onnx_op("Pad")
def pad(node: NodeContext) -> OutletId:
    """Pads are an attribute before opset 11, then inputs; a negative pad is a slice."""
    mode = node.text("mode", "constant")
    if mode not in (*MODES, "wrap"):
        raise node.error(f"mode {mode!r} is not covered; {', '.join(MODES)} and wrap are")
    rank = node.fact(0).rank
    befores, afters = _amounts(node, rank)
    x = node.input(0)
    zero = TDim.of(0)
    pads = tuple((dim_max(0, before), dim_max(0, after)) for before, after in zip(befores, afters))
    padded = any(pair != (zero, zero) for pair in pads)
    cropped = [
        axis for axis in range(rank) if dim_max(0, -befores[axis]) != 0 or dim_max(0, -afters[axis]) != 0
    ]
    for axis in cropped:
        size = node.fact(0).shape[axis]
        end = size - dim_max(0, -afters[axis])
        suffix = f"crop{axis}" if padded or axis != cropped[-1] else ""
        x = node.wire(Slice(axis, dim_max(0, -befores[axis]), end), [x], suffix)
    if not padded:
        return x
    return _wrapped(node, x, pads) if mode == "wrap" else node.wire(Pad(pads, MODES[mode], _fill(node)), [x])


def _wrapped(node: NodeContext, x: OutletId, pads: Pads) -> OutletId:
    """The last frames of an axis in front of it, and the first ones behind."""
    axes = [axis for axis, pair in enumerate(pads) if pair != (0, 0)]
    for axis in axes:
        (before, after), size = pads[axis], node.graph.fact(x).shape[axis]
        suffix = "" if axis == axes[-1] else f"wrap{axis}"
        if all(dim.is_const for dim in (before, after, size)):
            places = np.arange(-int(before), int(size) + int(after)) % max(1, int(size))
            x = node.wire(Gather(axis), [x, node.constant(places, f"places{axis}")], suffix)
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
        raise node.error(f"{len(amounts)} pads for {len(axes)} axes; two for each axis are needed")
    befores, afters = [TDim.of(0)] * rank, [TDim.of(0)] * rank
    for place, axis in enumerate(axes):
        befores[axis], afters[axis] = amounts[place], amounts[place + len(axes)]
    return befores, afters


def _fill(node: NodeContext) -> float:
    if node.opset < 11:
        return node.real("value", 0.0)
    fill: Any = node.scalar(2, "fill value") if node.has(2) else 0.0
    return float(fill)
