# pyright: basic
"""Circular shifts along time, and assignments by a mask, which PyTorch's exporter writes by indices of all frames."""

from typing import Any


def roll_frames(torch: Any, x: Any, shifts: Any, dims: Any = None) -> Any:
    """Return ``torch.roll(x, 3, -1)`` along an axis of any length as a join of its last and its first frames.

    Returns None if the shift is a size, several axes are shifted, or all have constant sizes. A stream that is shorter
    than the shift has other frames, but then all of them come from the other end, so that no model of them streams.
    """
    shift, axis = (
        value[0] if isinstance(value, tuple | list) and len(value) == 1 else value for value in (shifts, dims)
    )
    if type(shift) is not int or type(axis) is not int or not isinstance(x.shape[axis], torch.SymInt):
        return None
    if not shift:
        return x.clone()
    axis %= x.dim()
    place = (slice(None),) * axis
    return torch.cat([x[(*place, slice(-shift, None))], x[(*place, slice(None, -shift))]], axis)


def fill_by_mask(torch: Any, x: Any, index: Any, value: Any) -> Any:
    """Run ``x[mask] = 0``; returns None for other assignments."""
    if not torch.is_tensor(index) or index.dtype != torch.bool or index.dim() > x.dim():
        return None
    if torch.is_tensor(value) and value.dim():
        return None
    mask = index.reshape(*index.shape, *(1,) * (x.dim() - index.dim()))
    return x.masked_fill_(mask, value)
