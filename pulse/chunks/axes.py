"""The time axis of a chunk."""

from collections.abc import Sequence

import numpy as np

from pulse.facts import DType


def time_axis(shape: Sequence[int], dtype: DType) -> tuple[int, str] | None:
    """Return the axis of the frames of an input's chunk, and why; None if its shape does not decide.

    Booleans never decide: they mask entries of caches as often as frames.
    """
    return None if np.issubdtype(dtype, np.bool_) else _axis_by_shape(shape, dtype)


def _axis_by_shape(shape: Sequence[int], dtype: DType) -> tuple[int, str] | None:
    """Return the axis of a chunk's frames, and why; None if the shape does not decide.

    A floating tensor of up to two axes, at most one of them longer than one, is sound: its longest axis. Otherwise the
    chunk is one frame of features: the only axis of size 1 other than the first.
    """
    longer = [axis for axis, size in enumerate(shape) if size != 1]
    if 1 <= len(shape) <= 2 and len(longer) <= 1 and np.issubdtype(dtype, np.floating):
        return (longer[0] if longer else len(shape) - 1), "samples of sound"
    ones = [axis for axis in range(1, len(shape)) if shape[axis] == 1]
    return (ones[0], "one frame of features") if len(ones) == 1 else None


def output_axes(
    shape: Sequence[int], dtype: DType, chunk: Sequence[int], axis: int, frames: int
) -> list[tuple[int, str]]:
    """Return the possible axes of an output's frames, and why: several if its shape does not decide, none without one.

    An axis may have frames if it has as many as the chunk has new ones, if it is the input's time axis and one of both
    numbers is a multiple of the other, or if it has size 1: one frame per chunk. The order of the elements decides
    which of these are rivals.

    chunk, axis, frames   the streaming input's sizes, time axis, and new frames in a chunk
    """
    is_alike = len(shape) == len(chunk)
    if is_alike and shape[axis] == frames:
        return [(axis, "like the input")]
    if frames == 1:
        return _axis_of_one_frame(shape, dtype, axis if is_alike else None)
    equal = [other for other, size in enumerate(shape) if size == frames]
    alike = (
        [axis]
        if is_alike and shape[axis] and max(shape[axis], frames) % min(shape[axis], frames) == 0
        else []
    )
    reasons = {
        **dict.fromkeys(alike, "like the input"),
        **dict.fromkeys(equal, "the one with as many frames as the input"),
    }
    if not reasons:
        return _axis_of_one_frame(shape, dtype, axis if is_alike else None)
    first = min(reasons)
    if shape[first] != 1:
        ones = [
            other
            for other in range(1, len(shape))
            if shape[other] == 1 and not (is_alike and chunk[other] == 1) and (alike or other > first)
        ]
        reasons |= dict.fromkeys(ones, "one frame per chunk")
    return list(reasons.items())


def axis_of_one_frame(shape: Sequence[int]) -> int | None:
    """Return the axis along which outputs of one frame per chunk are joined: of size 1, not the first if possible."""
    ones = [axis for axis, size in enumerate(shape) if size == 1]
    return next((axis for axis in ones if axis), ones[0] if ones else None)


def _axis_of_one_frame(shape: Sequence[int], dtype: DType, axis: int | None) -> list[tuple[int, str]]:
    """Return the axis of an output of one frame or of sound; ``axis``: the input's time axis if ranks are equal."""
    axis_and_reason = _axis_by_shape(shape, dtype)
    if axis_and_reason is not None:
        is_one = shape[axis_and_reason[0]] == 1
        return [(axis_and_reason[0], "one frame per chunk") if is_one else axis_and_reason]
    if axis is not None:
        return [(axis, "like the input")]
    single = axis_of_one_frame(shape)
    return [] if single is None else [(single, "one frame per chunk")]
