"""Writes to a part of a tensor's frames: PyTorch's exporter scatters them, by indices of all frames."""

from importlib import import_module
from typing import Any

OPEN_END = 1 << 62


def translations(torch: Any) -> dict[Any, Any]:
    """Return how ``x[..., a:b] = y`` is written for any number of frames.

    If b is open, y is joined to the frames before it. If b counts from the end, or is a size, frames are selected
    from y and x, as they are for every n-th frame (``x[..., a::n] = y``). Other writes, and those along axes of a
    constant size, remain as the exporter writes them.
    """
    op = import_module("onnxscript").opset18
    scatter = import_module("onnxscript.function_libs.torch_lib.ops.core").aten_slice_scatter

    def slice_scatter(
        self: Any, src: Any, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1
    ) -> Any:
        start = 0 if start is None else start
        end = OPEN_END if end is None else end
        if (
            self.shape is None
            or type(self.shape[dim]) is int
            or type(start) is not int
            or start < 0
            or (type(end) is int and 0 <= end < OPEN_END)
            or (step != 1 and (type(end) is not int or end < 0))
        ):
            return scatter(self, src, dim, start, end, step)
        axis = dim % len(self.shape)
        if step != 1:
            return _select_spread(op, self, src, axis, start, step)
        if type(end) is int and end >= OPEN_END:
            return op.Concat(_slice(op, self, axis, 0, start), src, axis=axis) if start else src
        return _select(op, self, src, axis, start, end)

    return {torch.ops.aten.slice_scatter.default: slice_scatter}


def _select(op: Any, x: Any, written: Any, axis: int, start: int, end: Any) -> Any:
    """Return x with other frames from start on; where they end depends on the length."""
    length = op.Shape(written, start=axis, end=axis + 1)
    if type(end) is int:
        after = _row(op, -end)
    else:
        after = op.Sub(op.Shape(x, start=axis, end=axis + 1), op.Add(length, _row(op, start)))
    pads = op.Concat(_row(op, start), after, axis=0)
    marks = op.Pad(_ones(op, x, axis, length), pads, None, _row(op, 0))
    return _choose(op, marks, op.Pad(written, pads, None, _row(op, axis)), x)


def _select_spread(op: Any, x: Any, written: Any, axis: int, start: int, step: int) -> Any:
    """Return x with other frames at ``start``, ``start + step``, …"""
    size = op.Shape(x, start=axis, end=axis + 1)

    def spread(frames: Any, axis: int) -> Any:
        pads = _row(op, 0, step - 1)
        padded = op.Pad(op.Unsqueeze(frames, _row(op, axis + 1)), pads, None, _row(op, axis + 1))
        sizes = op.Concat(_row(op, *[0] * axis, -1), op.Shape(frames, start=axis + 1), axis=0)
        flat = op.Reshape(padded, sizes)
        return op.Slice(
            op.Pad(flat, _row(op, start, step), None, _row(op, axis)), _row(op, 0), size, _row(op, axis)
        )

    ones = _ones(op, x, axis, op.Shape(written, start=axis, end=axis + 1))
    return _choose(op, spread(ones, 0), spread(written, axis), x)


def _ones(op: Any, x: Any, axis: int, length: Any) -> Any:
    """Return ``length`` ones along an axis of x, with size 1 for each later axis."""
    other_axes = _row(op, *[1] * (len(x.shape) - axis - 1))
    return op.Expand(op.Constant(value_float=1.0), op.Concat(length, other_axes, axis=0))


def _choose(op: Any, marks: Any, written: Any, x: Any) -> Any:
    """Return the written frames where marks are 1, and those of x where they are 0."""
    return op.Where(op.Greater(marks, op.Constant(value_float=0.0)), written, x)


def _slice(op: Any, x: Any, axis: int, first: int, last: int) -> Any:
    return op.Slice(x, _row(op, first), _row(op, last), _row(op, axis))


def _row(op: Any, *numbers: int) -> Any:
    """Return numbers as a tensor of one axis."""
    return op.Constant(value_ints=list(numbers))
