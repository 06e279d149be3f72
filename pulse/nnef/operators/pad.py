"""Padding."""

import numpy as np

from pulse.nnef.read.node import NnefWire, NodeReader
from pulse.nnef.registry import reads, writes
from pulse.nnef.syntax import Expression, Name
from pulse.nnef.write.node import OperationWriter

BORDERS = {"constant": "constant", "reflect": "reflect", "edge": "replicated"}


@writes("Pad")
def write_pad(w: OperationWriter) -> Name:
    rank, pads = w.rank(), w.integers(1, "pads")
    axes = [axis % rank for axis in w.integers(3, "axes")] if w.has(3) else [*range(rank)]
    padding = [(0, 0)] * rank
    for index, axis in enumerate(axes):
        padding[axis] = pads[index], pads[len(axes) + index]
    mode = str(w.attribute("mode", "constant"))
    if mode not in BORDERS or any(min(pair) < 0 for pair in padding):
        raise w.error(
            f"cannot pad in the mode {mode} with {padding}",
            "use constant, reflect or edge, and a slice to cut",
        )
    if mode != "constant":
        return w.emit("pad", w.x(), padding=[*padding], border=BORDERS[mode])
    value = w.known_value(2) if w.has(2) else None
    if w.has(2) and value is None:
        raise w.error("only pad with constants", "give the node a constant value")
    border_value = 0.0 if value is None else float(value.ravel()[0])
    if border_value - border_value != 0 or (w.dtype().kind in "iu" and abs(border_value) >= 1 << 24):
        return _pad_by_joining(w, padding, border_value)
    return w.emit("pad", w.x(), padding=[*padding], border="constant", value=border_value)


def _pad_by_joining(w: OperationWriter, padding: list[tuple[int, int]], border_value: float) -> Name:
    """Pad with a value that the text cannot express, by joining constants before and after."""
    x, sizes = w.x(), list(w.sizes())
    for axis, (before, after) in enumerate(padding):
        parts: list[Expression] = [x]
        for count, index in ((before, 0), (after, len(parts) + 1)):
            if count:
                shape = [count if padded_axis == axis else size for padded_axis, size in enumerate(sizes)]
                parts.insert(index, w.tensor(np.full(shape, border_value, w.dtype()), f"border{axis}"))
        if len(parts) > 1:
            x = w.emit("concat", parts, suffix=f"axis{axis}", axis=axis)
            sizes[axis] += before + after
    return w.emit("copy", x)


@reads("pad", parameters="input padding border='constant' value=0.0")
def read_pad(node: NodeReader) -> NnefWire:
    x, padding, border = node.wire("input"), node.pairs("padding"), node.text("border")
    modes = {name: mode for mode, name in BORDERS.items()} | {"replicate": "edge"}
    if border not in modes or len(padding) != x.rank:
        raise node.error(
            f"padding must be a pair for each of {x.rank} axes, and the border one of {', '.join(modes)}"
        )
    sizes = [None if size is None else size + sum(pair) for size, pair in zip(x.sizes, padding)]
    inputs = [x, node.integers_tensor([pair[0] for pair in padding] + [pair[1] for pair in padding], "pads")]
    if border == "constant":
        inputs.append(node.constant(node.number("value"), x.dtype, "value"))
    return node.add("Pad", inputs, x.dtype, sizes, mode=modes[border])
