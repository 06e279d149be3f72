"""Sums over weights that are codes: the complete sum of each column is multiplied by the column's scale.

``scales`` is None if the weights are floats; the compiler then removes these branches.
"""

from typing import TypeAlias

from pulse.jit.language.simd import Vector, vfma, vload, vload_part, vzero
from pulse.jit.registry import device
from pulse.jit.rows.pointer import Pointer

Scales: TypeAlias = Pointer | None
"""A number for each column; None for weights that are floats."""


@device
def offset_scales(scales: Scales, count: int) -> Scales:
    """Return the scales of the columns from ``count`` on."""
    if scales is None:
        return None
    return scales + count


@device
def apply_scales(total: Vector, scales: Scales, i: int) -> Vector:
    """Multiply the sums of the 16 columns from i by their scales."""
    if scales is None:
        return total
    return total * vload(scales, i)


@device
def begin_sum(first: Vector, scales: Scales) -> Vector:
    """Return the initial value of a sum that includes ``first``: ``first``, or zero if it is added after the scale."""
    if scales is None:
        return first
    return vzero()


@device
def end_sum(total: Vector, first: Vector, scales: Scales, i: int, rest: int) -> Vector:
    """Return the final sums of the columns from i, of which ``rest`` exist, including ``first``."""
    if scales is None:
        return total
    return vfma(total, vload_part(scales, i, rest), first)
