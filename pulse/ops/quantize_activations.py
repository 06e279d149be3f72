"""Rows rounded to int8 codes, each with its own scale, or to bf16."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulse.errors import FactError
from pulse.facts import Array, TypedFact
from pulse.ops.dims import require_axis
from pulse.ops.op import Env, Op, Pointwise, Relation, Whole
from pulse.ops.quantize_codes import MAX_CODE, MIN_MAGNITUDE
from pulse.ops.weight_units import ActivationForm
from pulse.ops.work import Work
from pulse.support.bf16 import from_bf16, to_bf16
from pulse.support.record import record
from pulse.support.wording import count_of

ROUNDING_STEPS = {"int8": 5, "bf16": 1}
"""Operations per element: magnitude, maximum, product, rounding, product; or rounding alone."""


def round_to_form(x: NDArray[Any], form: ActivationForm = "int8", axis: int = -1) -> NDArray[Any]:
    """Return rows along an axis rounded to a form; the type does not change.

    int8: ``rint(x * (127 / m)) * (m / 127)`` with m, the largest magnitude of the row; a row with an infinity or NaN
    is NaN, one below ``MIN_MAGNITUDE`` zero. bf16: the nearest bf16 of each element, as f32, halves to even.
    """
    if form == "bf16":
        return from_bf16(to_bf16(x)).astype(x.dtype, copy=False)
    one: Any = x.dtype.type(1)
    with np.errstate(all="ignore"):
        largest: NDArray[Any] = np.abs(x).max(axis=axis, keepdims=True, initial=0)
        factor: NDArray[Any] = one * MAX_CODE / largest
        scale: NDArray[Any] = largest / (one * MAX_CODE)
        factor[largest < MIN_MAGNITUDE] = 0
        scale[~np.isfinite(largest)] = np.nan
        return np.asarray(np.rint(x * factor) * scale, x.dtype)


@record
class RoundActivations(Op):
    """The elements along an axis rounded to int8 codes, times the scale of their row, or to bf16.

    y = rint(x * (127 / m)) * (m / 127), m the largest magnitude of the row; the axis is made of ``groups`` rows. With
    the form bf16: the nearest bf16

    Input    x [..., R * groups, ...], of a float type
    Output   y, of the shape of x
    Stream   pointwise on the other axes, whole on R
    Raises   FactError: the axis is out of range, or the elements are not a multiple of a row
    """

    axis: int
    groups: int = 1
    form: ActivationForm = "int8"

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        (x,) = inputs
        require_axis(self.axis, x)
        if not np.issubdtype(x.dtype, np.floating) or not (x.shape[self.axis] % self.groups).prove_eq(0).yes:
            raise FactError(
                f"{count_of(self.groups, 'row')} of floats cannot be made of {x} along axis {self.axis}"
            )
        return [TypedFact(x.dtype, x.shape)]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        (x,) = inputs
        rows = x.reshape(*x.shape[: self.axis], self.groups, -1, *x.shape[self.axis + 1 :]) if x.size else x
        return [round_to_form(rows, self.form, self.axis + 1).reshape(x.shape) if x.size else x]

    def work(self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Work:
        return Work.of_each(inputs[0], ROUNDING_STEPS[self.form])

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        axis = axes[0]
        if axis is None or axis == self.axis:
            return Whole("its rows lie along time", "round the rows of another axis")
        return Pointwise((axis,))

    def detail(self) -> str:
        groups = f" groups {self.groups}" if self.groups > 1 else ""
        return f"axis {self.axis}{groups} {self.form}"
