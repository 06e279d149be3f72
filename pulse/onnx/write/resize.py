"""Resizing: frames that are looked up and mixed."""

from fractions import Fraction

import numpy as np

from pulse.facts import Array
from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.ops.resize import Interpolate, Polyphase


@writes(Polyphase)
def write_polyphase(w: NodeWriter, op: Polyphase) -> str:
    """Each group of output frames from its place among the input frames."""
    groups = w.made()[op.axis] // len(op.taps)
    most = max(len(taps) for taps in op.taps)
    filled = [(*taps, *((taps[0][0], 0.0),) * (most - len(taps))) for taps in op.taps]
    frames = np.array([[frame for frame, _ in taps] for taps in filled])
    weights = np.array([[weight for _, weight in taps] for taps in filled])
    starts = np.arange(groups)[:, None, None] * op.stride
    nearest = most == 1
    return _mixed(
        w, op.axis, (starts + frames).reshape(-1, most), None if nearest else np.tile(weights, (groups, 1))
    )


@writes(Interpolate)
def write_interpolate(w: NodeWriter, op: Interpolate) -> str:
    """An axis that does not stream: its length is a number."""
    frames, length = w.sizes()[op.axis], w.made()[op.axis]
    ratio = Fraction(length, frames) if op.ratio is None else op.ratio
    return _mixed(w, op.axis, *op.sampling.table(ratio, frames, length))


def _mixed(w: NodeWriter, axis: int, frames: Array, weights: Array | None) -> str:
    """Along an axis the frames ``[length, k]`` with their weights; None of the nearest one."""
    (x,) = w.inputs
    if weights is None:
        return w.emit("Gather", [x, w.integers(frames[:, 0].tolist(), "frames")], axis=axis)
    floating = np.issubdtype(w.dtype(), np.floating)
    wide = w.dtype() if floating else np.dtype(np.float64)
    source = x if floating else w.cast(x, wide, "wide")
    ones = (1,) * (len(w.sizes()) - 1 - axis)
    parts: list[str] = []
    for number, (places, shares) in enumerate(zip(frames.T, weights.T)):
        part = w.emit("Gather", [source, w.integers(places.tolist(), "places")], f"near{number}", axis=axis)
        share = w.constant(shares.reshape(-1, *ones).astype(wide), f"share{number}")
        parts.append(w.emit("Mul", [part, share], f"part{number}"))
    if floating:
        return w.emit("Sum", parts)
    return w.cast(w.emit("Sum", parts, "mixed"), w.dtype())
