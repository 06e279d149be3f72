"""Entries written and read at indices that are computed while running."""

from collections.abc import Callable, Sequence

import numpy as np

from pulse.errors import FactError
from pulse.facts import Array, DType, TypedFact, dtype_name
from pulse.ops.check import Check, index_check
from pulse.ops.dims import unify
from pulse.ops.op import Env, Op, Pointwise, Relation, Whole
from pulse.support.record import record

COMBINE: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}
"""How an update is combined with the present entry; with reduction "none" it replaces the entry."""
INDEX_ADVICE = "use constant indices, or stream along an axis that they do not index"


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


def grid(shape: Sequence[int]) -> list[Array]:
    """Return the index of each element of a tensor, an array for each axis."""
    every: Array = np.indices(tuple(shape))
    return [every[axis] for axis in range(len(shape))]


def check_integers(fact: TypedFact) -> None:
    """Require indices of an integer type. Raises FactError: another type."""
    if not np.issubdtype(fact.dtype, np.integer):
        raise FactError(f"indices must be integers, got {dtype_name(fact.dtype)}")


def check_types(x: TypedFact, updates: TypedFact) -> None:
    """Require updates of the type of x. Raises FactError: another type."""
    if x.dtype != updates.dtype:
        raise FactError(f"updates of {dtype_name(updates.dtype)} do not fit {dtype_name(x.dtype)}")


def wrap_index(index: Array, size: int) -> Array:
    """Return indices counted from the front. Raises IndexError: one is out of range."""
    if index.size and (index.min() < -size or index.max() >= size):
        raise IndexError(f"indices {index.min()}..{index.max()} are out of range for {size} entries")
    return np.where(index < 0, index + size, index)


def column_checks(shapes: Sequence[Sequence[int]], batch: int) -> list[Check]:
    """Return checks of indices whose last axis names a place on the axes after the batch axes."""
    x, indices = shapes[:2]
    return [index_check(x[batch + column], column) for column in range(indices[-1])]


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

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        x, indices, updates = inputs
        check_integers(indices)
        check_types(x, updates)
        depth = index_depth(x, indices)
        shape = (*indices.shape[:-1], *x.shape[depth:])
        if updates.rank != len(shape):
            raise FactError(f"updates {updates} need {len(shape)} axes")
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
        return column_checks(shapes, 0)

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        x, indices, _ = inputs
        x_axis, index_axis, update_axis = axes
        depth = index_depth(x, indices)
        if x_axis is None or x_axis < depth or index_axis is not None:
            return Whole("its indices choose among frames of the whole stream", INDEX_ADVICE)
        if update_axis != x_axis - depth + indices.rank - 1:
            return Whole("updates do not stream on the axis on which the data stream", INDEX_ADVICE)
        return Pointwise((x_axis,))

    def detail(self) -> str:
        return self.reduction


def index_depth(x: TypedFact, indices: TypedFact) -> int:
    """Return how many axes of x each index names. Raises FactError: none, or more than x has."""
    if indices.rank == 0 or not indices.shape[-1].is_const or not 0 < int(indices.shape[-1]) <= x.rank:
        raise FactError(f"the last axis of indices {indices} must name 1 to {x.rank} axes of {x}")
    return int(indices.shape[-1])


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

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        x, indices, updates = inputs
        check_integers(indices)
        check_types(x, updates)
        check_along(x, indices, self.axis)
        if updates.rank != x.rank:
            raise FactError(f"updates {updates} need {x.rank} axes")
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

    def detail(self) -> str:
        return f"axis {self.axis} {self.reduction}"


def check_along(x: TypedFact, indices: TypedFact, axis: int) -> None:
    """Require indices of the rank of x that are not longer than x on the other axes. Raises FactError: they are."""
    if indices.rank != x.rank or not 0 <= axis < x.rank:
        raise FactError(f"axis {axis} of {x} does not fit indices {indices}")
    for index, (dim, index_dim) in enumerate(zip(x.shape, indices.shape)):
        if index != axis and dim.prove_ge(index_dim).no:
            raise FactError(f"indices {indices} are longer than {x} on axis {index}")


def along_relation(inputs: Sequence[TypedFact], axes: Sequence[int | None], axis: int) -> Relation:
    """Return a pointwise relation if every input streams on one axis that is not the indexed one."""
    x_axis = axes[0]
    if x_axis is None or any(other != x_axis for other in axes) or x_axis == axis:
        return Whole("its indices choose among frames of the whole stream", INDEX_ADVICE)
    lengths = {fact.shape[x_axis] for fact in inputs}
    if len(lengths) > 1:
        return Whole("its inputs have streams of different lengths", "slice them to one length")
    return Pointwise((x_axis,))
