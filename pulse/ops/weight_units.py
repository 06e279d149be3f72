"""Weights: constant operands of products, which a program may store in fewer bits."""

from pulse.support.record import record


@record
class RowLayout:
    """Where the rows lie that weights are multiplied by.

    slot    the operand; None: a state inside of the op, see ``Op.with_rounded_state``
    axis    its axis that is summed over
    groups  the rows that this axis is made of
    """

    slot: int | None
    axis: int = 0
    groups: int = 1


@record
class UnitLayout:
    """A weight seen in another shape, and the axes of that shape that one output unit sums over.

    rows  what the weight is multiplied by; None: not rows
    """

    shape: tuple[int, ...]
    summed: tuple[int, ...]
    rows: RowLayout | None = None
