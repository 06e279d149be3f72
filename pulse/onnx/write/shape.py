"""Changes of shape and order."""

import numpy as np

from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.ops.concat import Concat
from pulse.ops.frames import Frames
from pulse.ops.pad import Pad
from pulse.ops.search import TopK
from pulse.ops.shape import AddAxis, Expand, RemoveAxis, Reshape, Tile, Transpose
from pulse.ops.slice import Decimate, Slice
from pulse.ops.within import Within


@writes(Within)
def write_within(w: NodeWriter, op: Within) -> str:
    """The wire itself: what reads it may notice by itself, or not."""
    return w.inputs[0]


@writes(Reshape)
def write_reshape(w: NodeWriter, op: Reshape) -> str:
    """To the sizes of a pulse."""
    return w.reshape(w.inputs[0], w.made())


@writes(Transpose)
def write_transpose(w: NodeWriter, op: Transpose) -> str:
    """Axes in another order."""
    return w.transpose(w.inputs[0], op.perm)


@writes(AddAxis)
def write_add_axis(w: NodeWriter, op: AddAxis) -> str:
    """A new axis."""
    return w.add_axis(w.inputs[0], op.axis)


@writes(RemoveAxis)
def write_remove_axis(w: NodeWriter, op: RemoveAxis) -> str:
    """An axis less."""
    return w.remove_axis(w.inputs[0], op.axis)


@writes(Expand)
def write_expand(w: NodeWriter, op: Expand) -> str:
    """To the sizes of a pulse."""
    return w.emit("Expand", [w.inputs[0], w.integers(w.made(), "shape")])


@writes(Tile)
def write_tile(w: NodeWriter, op: Tile) -> str:
    """The repeats as they are."""
    return w.emit("Tile", [w.inputs[0], w.integers([int(times) for times in op.repeats], "repeats")])


@writes(Concat)
def write_concat(w: NodeWriter, op: Concat) -> str:
    """Tensors side by side."""
    return w.emit("Concat", w.inputs, axis=op.axis)


@writes(Slice)
def write_slice(w: NodeWriter, op: Slice) -> str:
    """Constant bounds: those of a pulse."""
    return w.crop(w.inputs[0], op.axis, int(op.start), int(op.end), step=op.step)


@writes(Decimate)
def write_decimate(w: NodeWriter, op: Decimate) -> str:
    """A slice with a step."""
    return w.crop(w.inputs[0], op.axis, op.first, w.sizes()[op.axis], step=op.step)


@writes(Frames)
def write_frames(w: NodeWriter, op: Frames) -> str:
    """Looked up: row j holds the places of frame j."""
    places = np.add.outer(np.arange(w.made()[op.axis]) * op.hop, np.arange(op.size)).astype(np.int64)
    return w.emit("Gather", [w.inputs[0], w.constant(places, "places")], axis=op.axis)


@writes(Pad)
def write_pad(w: NodeWriter, op: Pad) -> str:
    """Around each axis."""
    if op.mode == "symmetric":
        return _mirrored(w, op)
    pads = [int(pair[side]) for side in (0, 1) for pair in op.pads]
    inputs = [w.inputs[0], w.integers(pads, "pads")]
    if op.mode == "constant":
        inputs.append(w.number(op.fill, w.dtype(), "fill"))
    return w.emit("Pad", inputs, mode=op.mode)


def _mirrored(w: NodeWriter, op: Pad) -> str:
    """Looked up, axis by axis: no version of the operator repeats the frame at the border."""
    pairs = [(int(before), int(after)) for before, after in op.pads]
    axes = [axis for axis, pair in enumerate(pairs) if pair != (0, 0)]
    x = w.inputs[0]
    for axis in axes:
        places = np.pad(np.arange(w.sizes()[axis], dtype=np.int64), pairs[axis], mode="symmetric")
        last = axis == axes[-1]
        x = w.emit("Gather", [x, w.constant(places, "places")], "" if last else f"axis_{axis}", axis=axis)
    return x if axes else w.emit("Identity", [x])


@writes(TopK)
def write_top_k(w: NodeWriter, op: TopK) -> list[str]:
    """Sorted, of equal entries the first one first."""
    inputs = [w.inputs[0], w.integers([op.count], "k")]
    return w.emit_all("TopK", inputs, ("", ""), axis=op.axis, largest=int(op.largest), sorted=1)
