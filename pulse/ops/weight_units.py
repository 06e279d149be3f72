"""Weights: constant operands of products, which a program may store in fewer bits."""

from pulse.record import record


@record
class UnitLayout:
    """A weight seen in another shape, and the axes of that shape that one output unit sums over."""

    shape: tuple[int, ...]
    summed: tuple[int, ...]
