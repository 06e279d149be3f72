"""InferenceFact: partial facts of a wire before the model is analysed; facts of one wire are combined or contradict."""

from collections.abc import Sequence
from typing import TypeAlias, cast

import numpy as np

from pulse.dim import TDim
from pulse.errors import FactError
from pulse.facts import Array, DType, TypedFact, dtype_name, is_symbolic, shape_of
from pulse.support.record import record

Dim: TypeAlias = TDim | None
"""A size, or None if unknown."""
Dims: TypeAlias = tuple[Dim, ...]


@record(eq=False)
class InferenceFact:
    """The known facts of a wire before it is analysed; None is unknown.

    dtype   the type
    shape   the sizes from the first axis on, None for unknown ones
    value   an array; an array of objects may hold dims, and None for unknown entries
    open    more axes may follow ``shape``; a shape of None is open by itself
    """

    dtype: DType | None = None
    shape: Dims | None = None
    value: Array | None = None
    open: bool = False

    @classmethod
    def of(cls, fact: TypedFact) -> "InferenceFact":
        """Return the same facts as a typed fact."""
        return cls(fact.dtype, fact.shape, fact.value)

    @classmethod
    def like(cls, value: Array) -> "InferenceFact":
        """Return the type and shape of an array."""
        return cls(value.dtype, shape_of(*value.shape))

    @classmethod
    def prefix(cls, *dims: Dim) -> "InferenceFact":
        """Return the first axes of a shape of unknown rank."""
        return cls(shape=dims, open=True)

    @property
    def rank(self) -> int | None:
        """The number of axes; None if unknown."""
        return None if self.shape is None or self.open else len(self.shape)

    @property
    def dims(self) -> Dims:
        """The stated sizes, first axis first."""
        return self.shape or ()

    def dim(self, axis: int) -> Dim:
        """Return the size of an axis; an axis counted from the end needs a known rank."""
        if axis < 0:
            axis = axis + self.rank if self.rank is not None else len(self.dims)
        return self.dims[axis] if 0 <= axis < len(self.dims) else None

    def to_typed(self) -> TypedFact | None:
        """Return the typed fact; None unless type and every dim are known."""
        if self.dtype is None or self.rank is None:
            return None
        dims = tuple(dim for dim in self.dims if dim is not None)
        value = self.value if self.value is not None and not has_gaps(self.value) else None
        return TypedFact(self.dtype, dims, value) if len(dims) == self.rank else None

    def __str__(self) -> str:
        dims = ["?" if dim is None else str(dim) for dim in self.dims] + ["…"] * (self.rank is None)
        text = ",".join([*dims, "?" if self.dtype is None else dtype_name(self.dtype)])
        if self.value is not None and self.value.size <= 8:
            text += f" = {_value_text(self.value)}"
        return text


def has_gaps(value: Array) -> bool:
    """Return whether some entries of a value are unknown."""
    return is_symbolic(value) and any(entry is None for entry in value.ravel().tolist())


def _value_text(value: Array) -> str:
    entries = [
        "?" if entry is None else f"{entry:.6g}" if isinstance(entry, float) else str(entry)
        for entry in cast("list[object]", value.ravel().tolist())
    ]
    return entries[0] if value.ndim == 0 else f"[{', '.join(entries)}]"


def meet(first: InferenceFact, *others: InferenceFact) -> InferenceFact:
    """Return the combined facts of one wire; ``first`` itself if the others add nothing.

    The result does not depend on the order. Where two dims may be equal, an expression of the inputs' symbols goes
    before a number, and the shortest before others. Raises FactError: facts contradict each other.
    """
    facts = [first, *(other for other in others if not _adds_nothing(first, other))]
    if len(facts) == 1:
        return first
    dtype = _dtype(facts)
    shape, is_open = _shape(facts)
    value = _value(facts)
    nothing_new = (dtype, shape, is_open) == (first.dtype, first.shape, first.open) and value is first.value
    return first if nothing_new else InferenceFact(dtype, shape, value, is_open)


def _adds_nothing(fact: InferenceFact, other: InferenceFact) -> bool:
    """Return whether ``fact`` already includes all of ``other``, in equal terms; equality is not proved."""
    if other.dtype is not None and other.dtype != fact.dtype:
        return False
    if other.value is not None and other.value is not fact.value:
        return False
    if other.shape is None:
        return True
    fits = len(other.dims) <= len(fact.dims) if other.open else other.rank == fact.rank
    return fits and all(new is None or new is old or new == old for new, old in zip(other.dims, fact.dims))


def _contradiction(facts: Sequence[InferenceFact], reason: str) -> FactError:
    return FactError(f"{' and '.join(dict.fromkeys(map(str, facts)))} contradict each other: {reason}")


def _dtype(facts: Sequence[InferenceFact]) -> DType | None:
    dtypes = dict.fromkeys(fact.dtype for fact in facts if fact.dtype is not None)
    if len(dtypes) > 1:
        raise _contradiction(facts, f"types {' and '.join(sorted(map(dtype_name, dtypes)))}")
    return next(iter(dtypes), None)


def _shape(facts: Sequence[InferenceFact]) -> tuple[Dims | None, bool]:
    with_shape = [fact for fact in facts if fact.shape is not None]
    if not with_shape:
        return None, False
    ranks = sorted({fact.rank for fact in with_shape if fact.rank is not None})
    min_rank = max(len(fact.dims) for fact in with_shape)
    if len(ranks) > 1 or (ranks and min_rank > ranks[0]):
        raise _contradiction(with_shape, f"{ranks[0]} and {max(min_rank, ranks[-1])} axes")
    return tuple(_dim(with_shape, axis) for axis in range(min_rank)), not ranks


def _dim(facts: Sequence[InferenceFact], axis: int) -> Dim:
    sizes = [fact.dims[axis] for fact in facts if axis < len(fact.dims)]
    first = next((size for size in sizes if size is not None), None)
    if all(size is None or size is first for size in sizes):
        return first
    try:
        return same_dim([size for size in sizes if size is not None])
    except FactError as error:
        raise _contradiction(
            [fact for fact in facts if axis < len(fact.dims)], f"axis {axis}: {error}"
        ) from error


def same_dim(dims: Sequence[TDim]) -> TDim:
    """Return the representative of equal dims. Raises FactError: one always differs from it."""
    preferred = min(dims, key=_preference)
    for dim in dims:
        if dim != preferred and dim.prove_eq(preferred).no:
            low, high = sorted((preferred, dim), key=_preference)
            raise FactError(f"{low} and {high} differ")
    return preferred


def _preference(dim: TDim) -> tuple[bool, int, str]:
    text = str(dim)
    return dim.is_const, len(text), text


def _value(facts: Sequence[InferenceFact]) -> Array | None:
    values = [fact.value for fact in facts if fact.value is not None]
    if not values or all(value is values[0] for value in values):
        return values[0] if values else None
    if len({value.shape for value in values}) > 1:
        raise _contradiction(facts, "values of different shapes")
    if not any(is_symbolic(value) for value in values):
        if not all(np.array_equal(value, values[0], equal_nan=value.dtype.kind == "f") for value in values):
            raise _contradiction(facts, "values differ")
        return values[0]
    columns = zip(*(cast("list[object]", value.ravel().tolist()) for value in values))
    try:
        entries = [_entry(column) for column in columns]
    except FactError as error:
        raise _contradiction(facts, f"values: {error}") from error
    return values[0] if _equal_entries(entries, values[0]) else make_value(entries, values[0].shape)


def _entry(column: Sequence[object]) -> Dim:
    dims = [TDim.of(entry) for entry in column if entry is not None]
    return same_dim(dims) if dims else None


def _equal_entries(entries: Sequence[Dim], value: Array) -> bool:
    return all(
        (entry is None) == (old is None) and (entry is None or entry == old)
        for entry, old in zip(entries, value.ravel().tolist())
    )


def make_value(entries: Sequence[Dim], shape: Sequence[int]) -> Array:
    """Return a value from its entries: numbers if all of them are, otherwise dims and None."""
    numbers = [int(entry) for entry in entries if entry is not None and entry.is_const]
    if len(numbers) == len(entries):
        return np.array(numbers, np.int64).reshape(shape)
    value = np.empty(len(entries), dtype=object)
    value[:] = list(entries)
    return value.reshape(shape)
