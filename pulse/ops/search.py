"""The largest or smallest entries of an axis."""

from collections.abc import Sequence

import numpy as np

from pulse.dim import TDim
from pulse.errors import FactError
from pulse.facts import I64, Array, TypedFact
from pulse.ops.dims import require_axis
from pulse.ops.op import Env, Op, Pointwise, Relation, Whole
from pulse.support.record import record


@record
class TopK(Op):
    """The ``count`` largest or smallest entries of an axis, in order, and where they are.

    Of equal entries the first comes first; NaN counts as larger than any number.

    Input    x [..., X, ...]
    Outputs  values [..., count, ...] of the type of x, indices [..., count, ...] i64
    Stream   pointwise on the other axes, whole on X
    Raises   FactError: the axis is out of range, or has fewer entries
    Source   ONNX TopK-11
    """

    axis: int
    count: int
    largest: bool = True
    steps = 1

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        (x,) = inputs
        require_axis(self.axis, x)
        if self.count < 0 or x.shape[self.axis].prove_ge(TDim.of(self.count)).no:
            raise FactError(f"{self.count} entries are requested, axis {self.axis} of {x} has fewer")
        shape = (*x.shape[: self.axis], TDim.of(self.count), *x.shape[self.axis + 1 :])
        return [TypedFact(x.dtype, shape), TypedFact(I64, shape)]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        (x,) = inputs
        if self.largest:
            backwards = np.argsort(np.flip(x, self.axis), self.axis, kind="stable")
            order = x.shape[self.axis] - 1 - np.flip(backwards, self.axis)
        else:
            order = np.argsort(x, self.axis, kind="stable")
        indices = np.take(order, range(self.count), self.axis)
        return [np.take_along_axis(x, indices, self.axis), indices.astype(np.int64, copy=False)]

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        axis = axes[0]
        assert axis is not None
        if axis == self.axis:
            return Whole(
                "the largest or smallest frames of a stream are known only at its end",
                "search along another axis, or take the maximum of a window of frames (a pool)",
            )
        return Pointwise((axis, axis))

    def detail(self) -> str:
        return f"axis {self.axis} {'largest' if self.largest else 'smallest'} {self.count}"
