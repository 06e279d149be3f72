"""Overlapping frames of one axis."""

from collections.abc import Sequence

import numpy as np

from pulse.dim import TDim
from pulse.errors import FactError
from pulse.facts import Array, TypedFact
from pulse.ops.conv import windows
from pulse.ops.dims import require_axis
from pulse.ops.op import Env, Op, Pointwise, Relation, Window
from pulse.support.record import record
from pulse.support.wording import count_of


@record
class Frames(Op):
    """Cut one axis into frames that may overlap, like the windows of a convolution.

    y[..., j, i, ...] = x[..., j*hop + i, ...]

    Input    x [..., X, ...]
    Output   y [..., (X - size) // hop + 1, size, ...]
    Stream   window(size, hop) on X, pointwise on the others
    Raises   FactError: the axis is out of range, size or hop is not positive
    """

    axis: int
    size: int
    hop: int
    copies = keeps_values = True
    detail_format = "axis {axis} of {size} by {hop}"

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        (x,) = inputs
        require_axis(self.axis, x)
        if self.size < 1 or self.hop < 1:
            raise FactError(
                f"frames of {count_of(self.size, 'sample')} with a hop of {self.hop}: both must be at least 1"
            )
        count = (x.shape[self.axis] - self.size) // self.hop + 1
        return [
            TypedFact(x.dtype, (*x.shape[: self.axis], count, TDim.of(self.size), *x.shape[self.axis + 1 :]))
        ]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        last = np.moveaxis(inputs[0], self.axis, -1)
        view = windows(last, (self.size,), (self.hop,), (1,))
        return [np.moveaxis(view, (-2, -1), (self.axis, self.axis + 1))]

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        axis = axes[0]
        assert axis is not None
        if axis != self.axis:
            return Pointwise((axis + (axis > self.axis),))
        return Window(axis, span=self.size, stride=self.hop, op=self)
