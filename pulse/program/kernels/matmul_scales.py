"""Sums over weights that are codes: each column has a scale, which the sum is multiplied with when it is complete.

``scales`` is None if the weights are floats; the compiler then leaves the whole question out.
"""

from typing import TypeAlias

from pulse.jit.pointer import Pointer
from pulse.jit.registry import device
from pulse.jit.simd import Vector, vfma, vload, vload_part, vzero

Scales: TypeAlias = Pointer | None


@device
def offset_scales(scales: Scales, count: int) -> Scales:
    """The scales from ``count`` columns further on."""
    if scales is None:
        return None
    return scales + count


@device
def apply_scales(total: Vector, scales: Scales, i: int) -> Vector:
    """The sums of the 16 columns from i."""
    if scales is None:
        return total
    return total * vload(scales, i)


@device
def begin_sum(first: Vector, scales: Scales) -> Vector:
    """What a sum begins with that ``first`` belongs to: itself, or zero where the scale comes before it."""
    if scales is None:
        return first
    return vzero()


@device
def end_sum(total: Vector, first: Vector, scales: Scales, i: int, rest: int) -> Vector:
    """The sums of the columns from i, of which ``rest`` exist, with ``first`` in them."""
    if scales is None:
        return total
    return vfma(total, vload_part(scales, i, rest), first)
