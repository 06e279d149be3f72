"""Looking up entries by index."""

from collections.abc import Sequence

import numpy as np

from pulse.dim import TDim
from pulse.errors import FactError
from pulse.facts import Array, DType, TypedFact, is_symbolic
from pulse.ops.check import Check, index_check
from pulse.ops.dims import require_axis
from pulse.ops.indices import require_integers
from pulse.ops.op import Env, Op, Pointwise, Relation, Whole
from pulse.support.record import record
from pulse.support.wording import count_of


@record
class Gather(Op):
    """Entries of one axis, by index; a negative index counts from the end.

    y[a..., i..., b...] = x[a..., indices[i...], b...]

    Inputs   x [A..., X, B...], indices [I...] of an integer type
    Output   y [A..., I..., B...]
    Stream   pointwise on A, B and I; whole on X
    Raises   FactError: the axis is out of range, indices are not integers
    Source   ONNX Gather-13
    """

    axis: int
    symbolic = copies = True
    detail_format = "axis {axis}"

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        x, indices = inputs
        require_axis(self.axis, x)
        require_integers(indices)
        self._check_range(x, indices)
        return [TypedFact(x.dtype, (*x.shape[: self.axis], *indices.shape, *x.shape[self.axis + 1 :]))]

    def _check_range(self, x: TypedFact, indices: TypedFact) -> None:
        size, value = x.shape[self.axis], indices.value
        if value is None or is_symbolic(value) or not size.is_const or not value.size:
            return
        if value.min() < -int(size) or value.max() >= int(size):
            raise FactError(
                f"indices {value.min()}..{value.max()} are out of range for {count_of(size, 'entry', 'entries')}"
            )

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        x, indices = inputs
        if is_symbolic(indices):
            numbers = [int(TDim.of(dim)) for dim in indices.ravel().tolist()]
            indices = np.array(numbers, np.int64).reshape(indices.shape)
        return [np.asarray(np.take(x, indices, self.axis))]

    def checks(self, shapes: Sequence[Sequence[int]], dtypes: Sequence[DType]) -> list[Check]:
        return [index_check(shapes[0][self.axis])]

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        x_axis, index_axis = axes
        if x_axis == self.axis:
            return Whole(
                "it looks up frames of the whole stream",
                "slice from a constant start, or gather along another axis, as from windows of the last frames "
                "(unfold); for the last frames of all, slice them (x[-1:]) and keep the time axis",
            )
        if x_axis is not None and index_axis is not None:
            return Whole("data and indices both stream", "let only one of them depend on time")
        if index_axis is not None:
            return Pointwise((self.axis + index_axis,))
        assert x_axis is not None
        return Pointwise((x_axis if x_axis < self.axis else x_axis + inputs[1].rank - 1,))
