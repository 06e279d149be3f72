"""Entries written at indices that are computed while running."""

from collections.abc import Callable, Sequence

import numpy as np

from pulse.errors import FactError
from pulse.facts import Array, DType, TypedFact, dtype_name
from pulse.ops.check import Check, index_check
from pulse.ops.dims import unify
from pulse.ops.indices import (
    INDEX_ADVICE,
    along_relation,
    checks_of_columns,
    grid,
    index_depth,
    require_along,
    require_integers,
    wrap_index,
)
from pulse.ops.op import Env, Op, Pointwise, Relation, Whole
from pulse.support.record import record
from pulse.support.wording import count_of

COMBINE: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}
"""How an update is combined with the present entry; with reduction "none" it replaces the entry."""


def write(y: Array, location: tuple[Array, ...], updates: Array, reduction: str) -> None:
    """Write updates in order; of several for one entry, the last one stays, or all are combined."""
    if reduction == "none":
        y[location] = updates
    else:
        combine = COMBINE[reduction]
        for element, update in zip(
            zip(*(index.ravel() for index in location)), updates.reshape(-1, *y.shape[len(location) :])
        ):
            y[element] = combine(y[element], update)


def require_type(x: TypedFact, updates: TypedFact) -> None:
    """Require updates of the type of x. Raises FactError: another type."""
    if x.dtype != updates.dtype:
        raise FactError(f"updates of {dtype_name(updates.dtype)} do not fit {dtype_name(x.dtype)}")


@record
class ScatterND(Op):
    """A copy of x in which the slices x[indices[i...]] are updated.

    y = x;  y[indices[i..., 0], …, indices[i..., K-1]] = updates[i..., :]

    Inputs   x [D0 … DK-1, R...], indices [I..., K] of an integer type, updates [I..., R...]
    Output   y as x
    Stream   pointwise on R; else whole
    Raises   FactError: types or shapes do not fit
    Source   ONNX ScatterND-18
    """

    reduction: str = "none"
    steps = 0
    detail_format = "{reduction}"

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        x, indices, updates = inputs
        require_integers(indices)
        require_type(x, updates)
        depth = index_depth(x, indices)
        shape = (*indices.shape[:-1], *x.shape[depth:])
        if updates.rank != len(shape):
            raise FactError(f"updates {updates} need {count_of(len(shape), 'axis', 'axes')}")
        for axis, (dim, update_dim) in enumerate(zip(shape, updates.shape)):
            unify(dim, update_dim, f"updates, axis {axis}")
        return [TypedFact(x.dtype, x.shape)]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        x, indices, updates = inputs
        y = x.copy()
        location = tuple(wrap_index(indices[..., axis], x.shape[axis]) for axis in range(indices.shape[-1]))
        write(y, location, updates, self.reduction)
        return [y]

    def checks(self, shapes: Sequence[Sequence[int]], dtypes: Sequence[DType]) -> list[Check]:
        return checks_of_columns(shapes, 0)

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        x, indices, _ = inputs
        x_axis, index_axis, update_axis = axes
        depth = index_depth(x, indices)
        if x_axis is None or x_axis < depth or index_axis is not None:
            return Whole("its indices choose among frames of the whole stream", INDEX_ADVICE)
        if update_axis != x_axis - depth + indices.rank - 1:
            return Whole("updates do not stream on the axis on which the data stream", INDEX_ADVICE)
        return Pointwise((x_axis,))


@record
class ScatterElements(Op):
    """A copy of x in which single elements are updated.

    y = x;  y[a..., indices[a..., i, b...], b...] = updates[a..., i, b...]

    Inputs   x [A..., X, B...], indices [A'..., I, B'...] of an integer type with A' <= A, B' <= B, updates alike
    Output   y as x
    Stream   pointwise on A and B if all inputs stream; else whole
    Raises   FactError: types or shapes do not fit
    Source   ONNX ScatterElements-18
    """

    axis: int
    reduction: str = "none"
    steps = 0
    detail_format = "axis {axis} {reduction}"

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        x, indices, updates = inputs
        require_integers(indices)
        require_type(x, updates)
        require_along(x, indices, self.axis)
        if updates.rank != x.rank:
            raise FactError(f"updates {updates} need {count_of(x.rank, 'axis', 'axes')}")
        for axis, (dim, update_dim) in enumerate(zip(indices.shape, updates.shape)):
            unify(dim, update_dim, f"indices and updates, axis {axis}")
        return [TypedFact(x.dtype, x.shape)]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        x, indices, updates = inputs
        y = x.copy()
        location = grid(indices.shape)
        location[self.axis] = wrap_index(indices, x.shape[self.axis])
        write(y, tuple(location), updates, self.reduction)
        return [y]

    def checks(self, shapes: Sequence[Sequence[int]], dtypes: Sequence[DType]) -> list[Check]:
        return [index_check(shapes[0][self.axis])]

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        return along_relation(inputs, axes, self.axis)
