"""Slices."""

import numpy as np

from pulse.nnef.registry import writes
from pulse.nnef.syntax import Name
from pulse.nnef.write.node import NodeWriter


@writes("Slice")
def write_slice(w: NodeWriter) -> Name:
    """Forward cuts as one slice; an axis that goes backwards is read by index."""
    sizes = w.sizes()
    starts, stops = w.integers(1, "starts"), w.integers(2, "ends")
    axes = [axis % len(sizes) for axis in w.integers(3, "axes")] if w.has(3) else [*range(len(starts))]
    steps = w.integers(4, "steps") if w.has(4) else [1] * len(starts)
    places = {
        axis: range(sizes[axis])[slice(start, _stop(stop, step), step)]
        for axis, start, stop, step in zip(axes, starts, stops, steps)
    }
    if any(not found for found in places.values()):
        raise w.error("have no tensors without elements", "give the model inputs that are not empty")
    cut = {axis: found for axis, found in places.items() if len(found) != sizes[axis] or found.step < 0}
    if not cut:
        return w.emit("copy", w.x())
    x = w.x()
    for number, (axis, found) in enumerate(cut.items(), 1):
        suffix = "" if number == len(cut) else f"axis{axis}"
        if found.step == 1:
            x = w.crop(x, axis, found.start, found.stop, suffix)
        else:
            index = w.tensor(np.array([*found], np.int64), f"places{axis}")
            x = w.emit("tract_core_gather", x, index, suffix=suffix, axis=axis)
    return x


def _stop(stop: int, step: int) -> int | None:
    """The end of a slice in Python; far below zero it means up to the first frame."""
    return None if step < 0 and stop < -(1 << 31) else stop
