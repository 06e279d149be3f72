"""Weights: constant operands of products, which a program may store in fewer bits."""

from typing import Literal, TypeAlias

from pulse.support.record import record

ActivationForm: TypeAlias = Literal["int8", "bf16"]
"""What the rows that weights are multiplied by may be rounded to; see ``pulse.ops.quantize_activations``."""


@record
class ActivationLayout:
    """The layout of the rows that weights are multiplied by.

    slot    the operand; None: a state inside the op, see ``Op.with_rounded_state``
    axis    its axis that is summed over
    groups  the rows that this axis is made of
    """

    slot: int | None
    axis: int = 0
    groups: int = 1


@record
class UnitLayout:
    """A weight viewed in another shape, and the axes of that shape that one output unit sums over.

    shape   the other shape
    summed  the summed axes of that shape
    rows    the rows that multiply the weight; None: no rows
    """

    shape: tuple[int, ...]
    summed: tuple[int, ...]
    rows: ActivationLayout | None = None
