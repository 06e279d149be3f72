"""Elementwise ops: a function of the table, and the conversion to another type."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from pulse.errors import FactError
from pulse.facts import BOOL, Array, DType, TypedFact, dtype_name, is_symbolic
from pulse.ops.check import Check, conversion_check
from pulse.ops.dims import broadcast_shapes
from pulse.ops.elementwise_functions import ELEMENTWISE
from pulse.ops.op import Env, Op, Pointwise, Relation, Whole
from pulse.ops.work import Work
from pulse.support.record import record
from pulse.support.wording import count_of


def _same_dtype(inputs: Sequence[TypedFact], subject: str) -> DType:
    dtypes = {fact.dtype for fact in inputs}
    if len(dtypes) > 1:
        raise FactError(f"{subject}: inputs of different types: {', '.join(sorted(map(dtype_name, dtypes)))}")
    return inputs[0].dtype


@lru_cache(maxsize=1024)
def _takes(function: str, dtypes: tuple[DType, ...], params: tuple[float, ...]) -> bool:
    """Return whether a function has results of its inputs' type: floats are not shifted, and exp takes no integers."""
    row = ELEMENTWISE[function]
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(row.run(*(np.ones(1, dtype) for dtype in dtypes), *params))
    except TypeError:
        return False
    return row.result == "bool" or np.can_cast(result.dtype, dtypes[row.typed_by[0]], "same_kind")


class BroadcastingOp(Op):
    """An op of single entries of its inputs, which broadcast."""

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        """Return a pointwise relation on the common stream axis of all inputs.

        An input without one must not vary along it.
        """
        rank = max(fact.rank for fact in inputs)
        meeting = {axis + rank - fact.rank for fact, axis in zip(inputs, axes) if axis is not None}
        if len(meeting) > 1:
            return Whole(
                f"streams meet on different axes {sorted(meeting)}",
                "transpose one of them, or limit its reach (a window) so that no frame meets every other frame",
            )
        (axis,) = meeting
        for fact, input_axis in zip(inputs, axes):
            own_axis = axis - (rank - fact.rank)
            if input_axis is None and own_axis >= 0 and fact.shape[own_axis] != 1:
                return Whole(
                    f"a tensor of constant length {fact.shape[own_axis]} meets the stream axis",
                    "slice a table to the stream's length, or make the tensor broadcast over time",
                )
        return Pointwise((axis,))


@record
class Elementwise(BroadcastingOp):
    """A function of the table, applied with numpy broadcasting.

    Inputs   tensors that broadcast together
    Output   y of their common shape
    Stream   pointwise
    """

    kind: str
    params: tuple[float, ...] = ()

    def work(self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Work:
        is_variadic = ELEMENTWISE[self.kind].arity < 0
        return Work.of_each(outputs[0], max(1, len(inputs) - 1) if is_variadic else 1)

    def identity_input(self, inputs: Sequence[TypedFact]) -> int | None:
        return 0 if ELEMENTWISE[self.kind].arity < 0 and len(inputs) == 1 else None

    @property
    def symbolic(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return ELEMENTWISE[self.kind].symbolic is not None

    @property
    def name(self) -> str:
        return self.kind

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        row = ELEMENTWISE[self.kind]
        if row.arity >= 0 and len(inputs) != row.arity:
            raise FactError(f"{self.kind} takes {count_of(row.arity, 'input')}, got {len(inputs)}")
        if not inputs:
            raise FactError(f"{self.kind} takes at least one input, got none")
        first, end = row.typed_by
        for condition in inputs[:first]:
            if condition.dtype != np.bool_:
                raise FactError(f"{self.kind}: the condition must be bool, got {dtype_name(condition.dtype)}")
        dtype = _same_dtype(inputs[first:end], self.kind)
        dtypes = tuple(fact.dtype for fact in inputs)
        if not _takes(self.kind, dtypes, self.params):
            raise FactError(
                f"{self.kind} is not defined for {', '.join(map(dtype_name, dict.fromkeys(dtypes)))}"
            )
        shape = broadcast_shapes([fact.shape for fact in inputs], self.kind)
        return [TypedFact(BOOL if row.result == "bool" else dtype, shape)]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        row = ELEMENTWISE[self.kind]
        if row.symbolic is not None and any(is_symbolic(value) for value in inputs):
            return [np.asarray(row.symbolic(*inputs))]
        with np.errstate(all="ignore"):
            result = np.asarray(row.run(*inputs, *self.params))
        dtype = inputs[row.typed_by[0]].dtype
        return [result.astype(np.bool_ if row.result == "bool" else dtype, copy=False)]

    def on_ratios(self, inputs: Sequence[Array]) -> Array | None:
        function = ELEMENTWISE[self.kind].ratio
        if function is None:
            return None
        return np.asarray(
            np.frompyfunc(function, len(inputs), 1)(*(array.astype(object) for array in inputs))
        )

    def checks(self, shapes: Sequence[Sequence[int]], dtypes: Sequence[DType]) -> list[Check]:
        if dtypes[0].kind not in "iu":
            return []
        if self.kind in ("div", "mod", "fmod"):
            return [Check(1, nonzero=True)]
        if self.kind == "pow" and np.issubdtype(dtypes[1], np.signedinteger):
            return [Check(1, 0, int(np.iinfo(dtypes[1]).max))]
        return []

    def detail(self) -> str:
        return ", ".join(f"{param:g}" for param in self.params)


@record
class Cast(BroadcastingOp):
    """Convert to another type, as numpy ``astype``.

    Stream   pointwise
    """

    dtype: DType
    steps = 1

    def identity_input(self, inputs: Sequence[TypedFact]) -> int | None:
        return 0

    @property
    def symbolic(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.dtype == np.int64

    @property
    def truncates(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.dtype.kind in "iu"

    def on_ratios(self, inputs: Sequence[Array]) -> Array | None:
        return inputs[0]

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        return [TypedFact(self.dtype, inputs[0].shape)]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        if is_symbolic(inputs[0]):
            return [inputs[0]]
        with np.errstate(all="ignore"):
            return [inputs[0].astype(self.dtype)]

    def checks(self, shapes: Sequence[Sequence[int]], dtypes: Sequence[DType]) -> list[Check]:
        converts = np.issubdtype(dtypes[0], np.floating) and np.issubdtype(self.dtype, np.integer)
        return [conversion_check(self.dtype)] if converts else []

    def detail(self) -> str:
        return dtype_name(self.dtype)


@record
class BitCast(BroadcastingOp):
    """The same bits as another type of the same width.

    Stream   pointwise
    Raises   FactError: the widths differ
    Source   ONNX BitCast-26
    """

    dtype: DType
    steps = 0

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        (x,) = inputs
        if x.dtype.itemsize != self.dtype.itemsize:
            raise FactError(
                f"{dtype_name(x.dtype)} and {dtype_name(self.dtype)} have different numbers of bits"
            )
        return [TypedFact(self.dtype, x.shape)]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        return [np.ascontiguousarray(inputs[0]).reshape(inputs[0].shape).view(self.dtype)]

    def detail(self) -> str:
        return dtype_name(self.dtype)
