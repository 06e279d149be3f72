"""Slices."""

import numpy as np

from pulse.dim import TDim
from pulse.nnef.read.node import NnefWire, NodeReader
from pulse.nnef.registry import reads, writes
from pulse.nnef.syntax import Call, Expression, Name
from pulse.nnef.write.bounds import ARITHMETIC
from pulse.nnef.write.node import OperationWriter
from pulse.support.wording import spell

AXIS_END = (1 << 63) - 1
"""The end of a slice that goes to the end of the axis."""
MIN_OPEN_END = 1 << 31
"""An end from here on means the end of the axis."""
MAX_PARTS = 1 << 12
"""Into how many parts an axis is taken apart."""


@writes("Slice")
def write_slice(w: OperationWriter) -> Name:
    """Write forward slices as one node; an axis that is reversed is read by index."""
    rank = w.rank()
    if any(name in w.scope.shared.bounds for name in w.inputs[1:3]):
        return _cut_by_text(w)
    starts, stops = w.integers(1, "starts"), w.integers(2, "ends")
    axes = [axis % rank for axis in w.integers(3, "axes")] if w.has(3) else [*range(len(starts))]
    steps = w.integers(4, "steps") if w.has(4) else [1] * len(starts)
    x = w.x()
    for index, (axis, start, stop, step) in enumerate(zip(axes, starts, stops, steps), 1):
        x = _cut(w, x, axis, (start, stop, step), "" if index == len(axes) else f"axis{axis}")
    return x


def _cut_by_text(w: OperationWriter) -> Name:
    """Cut an axis with bounds that are computed from lengths."""
    (axis,), (step,) = w.integers(3, "axes"), w.integers(4, "steps")
    texts = w.scope.shared.bounds
    begin, end = (
        Name(texts[w.inputs[slot]]) if w.inputs[slot] in texts else w.integers(slot, "bounds")[0]
        for slot in (1, 2)
    )
    if end == AXIS_END:
        end = 0
    stride: list[tuple[str, Expression]] = [("stride", [step])] if step > 1 else []
    return w.assign(Call("slice", (w.x(),), (("axes", [axis]), ("begin", [begin]), ("end", [end]), *stride)))


def _cut(w: OperationWriter, x: Name, axis: int, frames: tuple[int, int, int], suffix: str) -> Name:
    """Slice one axis; an axis whose size depends on a symbol cannot be reversed."""
    start, stop, step = frames
    text = w.scope.fact(w.inputs[0])[1][axis]
    if isinstance(text, str) and step > 0:
        return _cut_symbolic(w, x, axis, frames, text, suffix)
    size = w.size(axis)
    indices = range(*slice(start, stop, step).indices(size))
    if not indices:
        raise w.error("have no tensors without elements", "give the model inputs that are not empty")
    if indices == range(size):
        return w.emit("copy", x, suffix=suffix)
    if indices.step == 1:
        return w.crop(x, axis, indices.start, indices.stop, suffix)
    index = w.tensor(np.array([*indices], np.int64), f"places{axis}")
    return w.emit("tract_core_gather", x, index, suffix=suffix, axis=axis)


def _cut_symbolic(
    w: OperationWriter, x: Name, axis: int, frames: tuple[int, int, int], size: str, suffix: str
) -> Name:
    """Cut an axis; bounds that count from the end are sums with the symbol."""
    start, stop, step = frames
    if not ARITHMETIC.fullmatch(size):
        raise w.error(
            f"cannot express the size {size or 'of its input'}", f"fix the length with {spell('inputs')}"
        )
    begin: Expression = start if start >= 0 else Name(f"{size}-{-start}")
    end: Expression = Name(size) if stop >= MIN_OPEN_END else stop if stop > 0 else Name(f"{size}-{-stop}")
    stride: list[tuple[str, Expression]] = [("stride", [step])] if step > 1 else []
    return w.assign(
        Call("slice", (x,), (("axes", [axis]), ("begin", [begin]), ("end", [end]), *stride)), suffix
    )


@reads("slice", parameters="input axes begin end stride=[]")
def read_slice(node: NodeReader) -> NnefWire:
    """Slice; an end of 0 is the end of the axis, and negative bounds count from it."""
    x = node.wire("input")
    axes, begins, ends = node.axes("axes", x.rank), node.bounds("begin"), node.bounds("end")
    steps = node.integers("stride") if node.arguments["stride"] != [] else [1] * len(axes)
    if not len(axes) == len(begins) == len(ends) == len(steps) or any(step == 0 for step in steps):
        raise node.error("axes, begin, end and stride must be lists of one length, no stride 0")
    ends = [AXIS_END if end == 0 and step > 0 else end for end, step in zip(ends, steps)]
    sizes = [*x.sizes]
    for axis, begin, end, step in zip(axes, begins, ends, steps):
        size = sizes[axis]
        if size is None or isinstance(begin, TDim) or isinstance(end, TDim):
            sizes[axis] = None
        else:
            sizes[axis] = len(range(*slice(begin, end, step).indices(size)))
    tensors = [
        node.bounds_tensor(numbers, what)
        for numbers, what in ((begins, "begin"), (ends, "end"), (axes, "axes"))
    ]
    return node.add("Slice", [x, *tensors, node.integers_tensor(steps, "stride")], x.dtype, sizes)


@reads("split", parameters="value axis ratios")
def read_split(node: NodeReader) -> list[NnefWire]:
    x, ratios = node.wire("value"), node.integers("ratios")
    axis = node.axis("axis", x.rank)
    size, total = x.sizes[axis], sum(ratios)
    if size is None or min(ratios, default=0) < 1 or size % total:
        raise node.error(f"an axis of {size} is not split into parts of {ratios}")
    stops = np.cumsum(ratios) * (size // total)
    return [
        node.slice_axis(x, axis, int(stop) - ratio * (size // total), int(stop), f"slice{slot}")
        for slot, (stop, ratio) in enumerate(zip(stops, ratios))
    ]


@reads("unstack", parameters="value axis")
def read_unstack(node: NodeReader) -> list[NnefWire]:
    x = node.wire("value")
    axis = node.axis("axis", x.rank)
    size = x.sizes[axis]
    if size is None or size > MAX_PARTS:
        raise node.error(f"an axis of {size} is not unstacked")
    parts = [node.slice_axis(x, axis, index, index + 1, f"slice{index}") for index in range(size)]
    return [node.remove_axes(part, [axis], f"part{index}") for index, part in enumerate(parts)]


@reads("tract_core_downsample", parameters="input axis stride modulo")
def read_downsample(node: NodeReader) -> NnefWire:
    x, stride, modulo = node.wire("input"), node.integer("stride"), node.integer("modulo")
    axis = node.axis("axis", x.rank)
    if stride < 1 or modulo < 0:
        raise node.error(f"every {stride}-th frame from {modulo} on is not supported")
    sizes = [None if index == axis else size for index, size in enumerate(x.sizes)]
    tensors = [
        node.integers_tensor([number], what)
        for number, what in ((modulo, "begin"), (AXIS_END, "end"), (axis, "axes"), (stride, "stride"))
    ]
    return node.add("Slice", [x, *tensors], x.dtype, sizes)
