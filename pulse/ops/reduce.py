"""Reductions of axes to one value; argmin and argmax."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from pulse.dim import TDim
from pulse.errors import FactError
from pulse.facts import I64, Array, DType, Shape, TypedFact, is_symbolic
from pulse.ops.arithmetic import accumulator_type
from pulse.ops.op import Env, Op, Pointwise, Relation, Whole
from pulse.support.record import record

ReduceKind: TypeAlias = Literal[
    "sum", "mean", "max", "min", "prod", "l1", "l2", "sum_square", "log_sum", "log_sum_exp"
]


def lowest(dtype: DType) -> Any:
    """Return the smallest number of a type, which is the maximum of no elements."""
    if dtype == np.bool_:
        return False
    return -np.inf if np.issubdtype(dtype, np.floating) else np.iinfo(dtype).min


def highest(dtype: DType) -> Any:
    """Return the largest number of a type, which is the minimum of no elements."""
    if dtype == np.bool_:
        return True
    return np.inf if np.issubdtype(dtype, np.floating) else np.iinfo(dtype).max


def _log_sum_exp(x: Array, **options: Any) -> Array:
    if not x.size:
        return np.log(np.sum(np.exp(x), **options))
    peak = np.max(x, axis=options["axis"], keepdims=True)
    peak = np.where(np.isfinite(peak), peak, 0)
    total = np.log(np.sum(np.exp(x - peak), **options))
    return total + (peak if options["keepdims"] else np.squeeze(peak, options["axis"]))


def _l1(x: Array, **options: Any) -> Array:
    return np.sum(np.abs(x), **options)


def _sum_square(x: Array, **options: Any) -> Array:
    return np.sum(np.square(x), **options)


def _l2(x: Array, **options: Any) -> Array:
    return np.sqrt(_sum_square(x, **options))


def _log_sum(x: Array, **options: Any) -> Array:
    return np.log(np.sum(x, **options))


def _max(x: Array, **options: Any) -> Array:
    return np.max(x, initial=lowest(x.dtype), **options)


def _min(x: Array, **options: Any) -> Array:
    return np.min(x, initial=highest(x.dtype), **options)


REDUCE: dict[ReduceKind, Callable[..., Any]] = {
    "sum": np.sum,
    "mean": np.mean,
    "max": _max,
    "min": _min,
    "prod": np.prod,
    "l1": _l1,
    "l2": _l2,
    "sum_square": _sum_square,
    "log_sum": _log_sum,
    "log_sum_exp": _log_sum_exp,
}


def reduced_shape(shape: Shape, axes: Sequence[int], keepdims: bool) -> Shape:
    """Return a shape with some axes reduced to 1, or away. Raises FactError: an axis is out of range."""
    if any(not 0 <= axis < len(shape) for axis in axes):
        raise FactError(f"axes {list(axes)} are out of range for rank {len(shape)}")
    if keepdims:
        return tuple(TDim.of(1) if axis in axes else dim for axis, dim in enumerate(shape))
    return tuple(dim for axis, dim in enumerate(shape) if axis not in axes)


OTHER_AXES = "use a pooling window over time, or reduce the other axes only"
"""What usually helps against a reduction over time."""


def reduced_relation(
    subject: str, axis: int | None, axes: Sequence[int], keepdims: bool, advice: str = OTHER_AXES
) -> Relation:
    """Return a pointwise relation if the stream axis stays, a whole one if it is one of the reduced axes."""
    assert axis is not None
    if axis in axes:
        return Whole(f"{subject} over time needs the whole stream", advice)
    return Pointwise((axis if keepdims else axis - sum(other < axis for other in axes),))


SELF_OF_ONE = frozenset({"sum", "mean", "max", "min", "prod"})
"""Reductions that return a single element unchanged."""


@record
class Reduce(Op):
    """Reduce some axes to one value each; floats are summed in double precision.

    Input    x [X...]
    Output   y: x without ``axes``, or with 1 in their place
    Stream   pointwise on the axes that stay, whole on the others
    Raises   FactError: an axis is out of range
    Source   ONNX ReduceSum-13, ReduceMean-18 and similar

    kind      how the entries are joined
    axes      the reduced axes
    keepdims  whether y keeps them, of size 1
    advice    what helps against a reduction over time
    """

    kind: ReduceKind
    axes: tuple[int, ...]
    keepdims: bool
    advice: str = OTHER_AXES
    steps = 1

    @property
    def symbolic(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.kind in ("sum", "prod")

    @property
    def name(self) -> str:
        return f"reduce_{self.kind}"

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        (x,) = inputs
        return [TypedFact(x.dtype, reduced_shape(x.shape, self.axes, self.keepdims))]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        (x,) = inputs
        run = REDUCE[self.kind]
        if is_symbolic(x):
            return [np.asarray(run(x, axis=self.axes, keepdims=self.keepdims), dtype=object)]
        with np.errstate(all="ignore"):
            y = np.asarray(
                run(x.astype(accumulator_type(x), copy=False), axis=self.axes, keepdims=self.keepdims)
            )
        return [y.astype(x.dtype, copy=False)]

    def identity_input(self, inputs: Sequence[TypedFact]) -> int | None:
        if not self.keepdims:
            return None
        of_ones = all(inputs[0].shape[axis] == 1 for axis in self.axes)
        return 0 if of_ones and self.kind in SELF_OF_ONE else None

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        return reduced_relation(
            f"a {self.kind.replace('_', ' ')}", axes[0], self.axes, self.keepdims, self.advice
        )

    def detail(self) -> str:
        return f"axes {list(self.axes)}" + ("" if self.keepdims else " removed")


@record
class ArgReduce(Op):
    """The index of the largest or smallest entry of an axis; of equal ones the first, or the last.

    Input    x [..., X, ...]
    Output   y [..., 1, ...] i64, or without the axis
    Stream   pointwise on the axes that stay, whole on X
    Raises   FactError: the axis is out of range
    Source   ONNX ArgMax-13, ArgMin-13

    kind         whether it is the largest or the smallest entry
    axis         the axis X
    keepdims     whether y keeps the axis, of size 1
    select_last  whether it is the last of equal entries
    """

    kind: Literal["max", "min"]
    axis: int
    keepdims: bool
    select_last: bool = False
    steps = 1

    @property
    def name(self) -> str:
        return f"arg{self.kind}"

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        shape = reduced_shape(inputs[0].shape, (self.axis,), self.keepdims)
        return [TypedFact(I64, shape)]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        (x,) = inputs
        find = np.argmax if self.kind == "max" else np.argmin
        if self.select_last:
            indices = (
                x.shape[self.axis] - 1 - find(np.flip(x, self.axis), axis=self.axis, keepdims=self.keepdims)
            )
        else:
            indices = find(x, axis=self.axis, keepdims=self.keepdims)
        return [np.asarray(indices).astype(np.int64, copy=False)]

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        return reduced_relation(f"arg{self.kind}", axes[0], (self.axis,), self.keepdims)

    def detail(self) -> str:
        return f"axis {self.axis}" + (" last" if self.select_last else "")
