"""Patterns of stored tables, such as masks and positions, which a model slices to the length of the stream."""

from collections.abc import Sequence

import numpy as np

from pulse.facts import Array
from pulse.pulsify.bands.pattern import NEVER, Interval, Pattern, affine, exact_numbers

MAX_EXAMINED_ELEMENTS = 1 << 12
"""Maximum number of elements of a constant that are examined one by one."""


def stored_pattern(value: Array, axes: Sequence[int], period: int, distance: int) -> Pattern:
    """Return the pattern of a table along the axes that are sliced to the stream's length.

    No stream is longer than they are.

    period, distance  see ``PatternExtent``
    """
    everywhere = _pattern_within(value)
    if not axes:
        return Pattern.constant(exact_numbers(value)) if value.size <= MAX_EXAMINED_ELEMENTS else everywhere
    if len(axes) > 2 or value.size == 0:
        return Pattern.unknown(everywhere.bounds)
    early, late = value, value
    for axis in axes:
        frames = value.shape[axis]
        early = early.take(range(max(0, frames - period)), axis)
        late = late.take(range(min(period, frames), frames), axis)
    if np.array_equal(early, late):
        below = above = everywhere.bounds
        if len(axes) == 2:
            below, above = _bounds_beyond(value, axes, distance), _bounds_beyond(value, axes[::-1], distance)
        return Pattern({}, everywhere.bounds, everywhere.bounds, below, above)
    return _steps(value, axes[0], distance) if len(axes) == 1 else Pattern.unknown(everywhere.bounds)


def _bounds_beyond(value: Array, axes: Sequence[int], distance: int) -> Interval:
    """Return bounds of the entries whose first axis is far ahead of the second."""
    matrix = np.moveaxis(value, axes, (-2, -1))
    rows, columns = np.ogrid[: matrix.shape[-2], : matrix.shape[-1]]
    entries = matrix[..., rows - columns >= distance]
    return _pattern_within(entries).bounds if entries.size else NEVER


def _steps(value: Array, axis: int, distance: int) -> Pattern:
    """Return the pattern of stored positions: equal steps along one axis."""
    numbers = np.moveaxis(value, axis, 0).reshape(value.shape[axis], -1)
    steps = np.diff(numbers.astype(np.float64), axis=0)
    if not steps.size or (steps != steps[0, 0]).any() or (numbers[0] != numbers[0, 0]).any():
        return Pattern.unknown(_pattern_within(value).bounds)
    first, slope = exact_numbers(numbers[0, 0]), exact_numbers(steps[0, 0])
    return affine({axis - value.ndim: slope}, (first, first), distance)


def _pattern_within(value: Array) -> Pattern:
    if not value.size:
        return Pattern.unknown()
    return Pattern.constant(exact_numbers(np.asarray(value.min())), exact_numbers(np.asarray(value.max())))
