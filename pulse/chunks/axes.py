"""The time axis of a chunk."""

from collections.abc import Sequence

import numpy as np

from pulse.facts import DType


def time_axis(shape: Sequence[int], dtype: DType) -> tuple[int, str] | None:
    """Return the axis of a chunk's frames, and why; None if the shape does not decide.

    A floating tensor of up to two axes, at most one of them longer than one, is sound: its longest axis. Otherwise the
    chunk is one frame of features: the only axis of size 1 other than the first.
    """
    longer = [axis for axis, size in enumerate(shape) if size != 1]
    if 1 <= len(shape) <= 2 and len(longer) <= 1 and np.issubdtype(dtype, np.floating):
        return (longer[0] if longer else len(shape) - 1), "samples of sound"
    ones = [axis for axis in range(1, len(shape)) if shape[axis] == 1]
    return (ones[0], "one frame of features") if len(ones) == 1 else None


def output_axis(
    shape: Sequence[int], dtype: DType, rank: int, axis: int, frames: int
) -> tuple[int, str] | None:
    """Return the axis of an output's frames, and why; None if the output has none.

    rank, axis, frames   the streaming input's rank, time axis, and new frames in a chunk
    """
    if len(shape) == rank and shape[axis] == frames:
        return axis, "like the input"
    equal = [other for other, size in enumerate(shape) if size == frames != 1]
    if len(equal) == 1:
        return equal[0], "the one with as many frames as the input"
    axis_and_reason = time_axis(shape, dtype)
    if axis_and_reason is not None:
        return axis_and_reason[0], "one frame per chunk" if shape[
            axis_and_reason[0]
        ] == 1 else axis_and_reason[1]
    if len(shape) == rank:
        return axis, "like the input"
    return next(((other, "one frame per chunk") for other, size in enumerate(shape) if size == 1), None)
