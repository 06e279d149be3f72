"""Indices that are computed while running: what operators that read or write entries at them require."""

from collections.abc import Sequence

import numpy as np

from pulse.errors import FactError
from pulse.facts import Array, TypedFact, dtype_name
from pulse.ops.check import Check, index_check
from pulse.ops.op import Pointwise, Relation, Whole
from pulse.support.wording import count_of

INDEX_ADVICE = "use constant indices, or stream along an axis that they do not index"


def grid(shape: Sequence[int]) -> list[Array]:
    """Return the index of each element of a tensor, an array for each axis."""
    every: Array = np.indices(tuple(shape))
    return [every[axis] for axis in range(len(shape))]


def require_integers(fact: TypedFact) -> None:
    """Require indices of an integer type. Raises FactError: another type."""
    if not np.issubdtype(fact.dtype, np.integer):
        raise FactError(f"indices must be integers, got {dtype_name(fact.dtype)}")


def wrap_index(index: Array, size: int) -> Array:
    """Return indices counted from the front. Raises IndexError: one is out of range."""
    if index.size and (index.min() < -size or index.max() >= size):
        raise IndexError(
            f"indices {index.min()}..{index.max()} are out of range for {count_of(size, 'entry', 'entries')}"
        )
    return np.where(index < 0, index + size, index)


def checks_of_columns(shapes: Sequence[Sequence[int]], batch: int) -> list[Check]:
    """Return checks of indices whose last axis names a place on the axes after the batch axes."""
    x, indices = shapes[:2]
    return [index_check(x[batch + column], column) for column in range(indices[-1])]


def index_depth(x: TypedFact, indices: TypedFact) -> int:
    """Return how many axes of x each index names. Raises FactError: none, or more than x has."""
    if indices.rank == 0 or not indices.shape[-1].is_const or not 0 < int(indices.shape[-1]) <= x.rank:
        raise FactError(f"the last axis of indices {indices} must name 1 to {x.rank} axes of {x}")
    return int(indices.shape[-1])


def require_along(x: TypedFact, indices: TypedFact, axis: int) -> None:
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
