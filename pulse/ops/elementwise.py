"""Elementwise operations: one table of rows, one op.

A row is the numpy form (the oracle), the number of inputs (-1: any number from one), the type of the result and
whether the numpy form also works on tensors of TDim. Kernels mirror the table by name in
``pulse/program/kernels/elementwise_microops.py``.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from pulse.dim import TDim, dim_max, dim_min
from pulse.errors import FactError
from pulse.facts import Array, DType, TypedFact, dtype_name, is_symbolic
from pulse.ops.check import Check, conversion_check
from pulse.ops.op import Env, Op, Pointwise, Relation, Whole, broadcast_shapes
from pulse.ops.work import Work
from pulse.support.record import record

Result = Literal["same", "bool"]


@record
class Row:
    """One elementwise function; ``run(*inputs, *params)``."""

    arity: int
    run: Callable[..., Any]
    result: Result = "same"
    symbolic: Callable[..., Any] | None = None


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


_erf = np.vectorize(math.erf, otypes=[np.float64])


def _erf_like(x: Array) -> Array:
    return _erf(x) if x.size else x


def _softplus(x: Array) -> Array:
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


def _divide(x: Array, y: Array) -> Array:
    """Division; of integers towards zero, as in C, where the least integer divided by -1 wraps around."""
    if np.issubdtype(x.dtype, np.integer):
        quotient = np.abs(x.astype(object)) // np.abs(np.where(y == 0, 1, y).astype(object))
        signed = np.asarray(np.sign(x).astype(object) * np.sign(y).astype(object) * quotient, object)
        unsigned = np.asarray(signed % (1 << 8 * x.dtype.itemsize), object)
        return unsigned.astype(f"u{x.dtype.itemsize}").view(x.dtype)
    return x / y


def _gelu(x: Array, tanh_form: float) -> Array:
    if tanh_form:
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + _erf_like(x / math.sqrt(2)))


def _symbolic_divide(x: Array, y: Array) -> Array:
    return x // y


def _pairwise(function: Callable[..., TDim]) -> Callable[..., Array]:
    def apply(*operands: Array) -> Array:
        on_dims = np.frompyfunc(lambda *dims: function(*(TDim.of(dim) for dim in dims)), len(operands), 1)
        return np.asarray(on_dims(*operands), dtype=object)

    return apply


def _compare_proven(question: str) -> Callable[..., Array]:
    """Compare dims if the answer is the same for every length; otherwise raise DimError."""

    def apply(x: Array, y: Array) -> Array:
        on_dims = np.frompyfunc(lambda a, b: bool(getattr(TDim.of(a), question)(TDim.of(b))), 2, 1)
        return np.asarray(on_dims(x, y), dtype=np.bool_)

    return apply


def _symbolic_where(condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition.astype(np.bool_), x, y)


def _fold(function: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    def apply(*operands: Array) -> Array:
        result = operands[0]
        for operand in operands[1:]:
            result = function(result, operand)
        return result

    return apply


Unary = Callable[[Array], Array]
Binary = Callable[[Array, Array], Array]


def unary(run: Unary, result: Result = "same", symbolic: Unary | None = None) -> Row:
    """A function of one tensor."""
    return Row(1, run, result, symbolic)


def parametric(run: Callable[[Array, float], Array] | Callable[[Array, float, float], Array]) -> Row:
    """A function of one tensor and one or two numbers."""
    return Row(1, run)


def binary(run: Binary, result: Result = "same", symbolic: Binary | None = None) -> Row:
    """A function of two tensors."""
    return Row(2, run, result, symbolic)


def variadic(run: Callable[..., Array], symbolic: Callable[..., Array] | None = None) -> Row:
    """A function of any number of tensors."""
    return Row(-1, run, "same", symbolic)


ELEMENTWISE: dict[str, Row] = {
    "add": binary(np.add, symbolic=np.add),
    "sub": binary(np.subtract, symbolic=np.subtract),
    "mul": binary(np.multiply, symbolic=np.multiply),
    "div": binary(_divide, symbolic=_symbolic_divide),
    "pow": binary(lambda x, y: np.power(x, y).astype(x.dtype)),
    "mod": binary(np.mod, symbolic=np.mod),
    "fmod": binary(np.fmod),
    "min": variadic(_fold(np.minimum), symbolic=_pairwise(dim_min)),
    "max": variadic(_fold(np.maximum), symbolic=_pairwise(dim_max)),
    "sum": variadic(_fold(np.add), symbolic=_fold(np.add)),
    "mean": variadic(lambda *xs: _fold(np.add)(*xs) / len(xs)),
    "mul_round": binary(lambda x, y: np.rint(x * y)),
    "prelu": binary(lambda x, slope: np.where(x < 0, x * slope, x)),
    "abs": unary(np.abs),
    "neg": unary(np.negative, symbolic=np.negative),
    "exp": unary(np.exp),
    "log": unary(np.log),
    "sqrt": unary(np.sqrt),
    "reciprocal": unary(lambda x: 1 / x),
    "floor": unary(np.floor),
    "ceil": unary(np.ceil),
    "round": unary(np.rint),
    "sign": unary(np.sign),
    "sin": unary(np.sin),
    "cos": unary(np.cos),
    "tan": unary(np.tan),
    "asin": unary(np.arcsin),
    "acos": unary(np.arccos),
    "atan": unary(np.arctan),
    "sinh": unary(np.sinh),
    "cosh": unary(np.cosh),
    "asinh": unary(np.arcsinh),
    "acosh": unary(np.arccosh),
    "atanh": unary(np.arctanh),
    "erf": unary(_erf_like),
    "relu": unary(lambda x: np.maximum(x, 0)),
    "leaky_relu": parametric(lambda x, alpha: np.where(x < 0, x * alpha, x)),
    "thresholded_relu": parametric(lambda x, alpha: np.where(x > alpha, x, 0)),
    "elu": parametric(lambda x, alpha: np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)),
    "celu": parametric(lambda x, a: np.maximum(x, 0) + np.minimum(0, a * np.expm1(np.minimum(x, 0) / a))),
    "selu": parametric(
        lambda x, alpha, gamma: gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))
    ),
    "gelu": parametric(_gelu),
    "sigmoid": unary(_sigmoid),
    "hard_sigmoid": parametric(lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1)),
    "hard_swish": unary(lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "swish": parametric(lambda x, alpha: x * _sigmoid(alpha * x)),
    "tanh": unary(np.tanh),
    "softplus": unary(_softplus),
    "softsign": unary(lambda x: x / (1 + np.abs(x))),
    "mish": unary(lambda x: x * np.tanh(_softplus(x))),
    "and": binary(np.logical_and, "bool"),
    "or": binary(np.logical_or, "bool"),
    "xor": binary(np.logical_xor, "bool"),
    "not": unary(np.logical_not, "bool"),
    "bitwise_and": binary(np.bitwise_and),
    "bitwise_or": binary(np.bitwise_or),
    "bitwise_xor": binary(np.bitwise_xor),
    "bitwise_not": unary(np.bitwise_not),
    "shift_left": binary(np.left_shift),
    "shift_right": binary(np.right_shift),
    "isnan": unary(np.isnan, "bool"),
    "equal": binary(np.equal, "bool", _compare_proven("prove_eq")),
    "greater": binary(np.greater, "bool", _compare_proven("prove_gt")),
    "greater_equal": binary(np.greater_equal, "bool", _compare_proven("prove_ge")),
    "less": binary(np.less, "bool", _compare_proven("prove_lt")),
    "less_equal": binary(np.less_equal, "bool", _compare_proven("prove_le")),
    "where": Row(3, np.where, symbolic=_symbolic_where),
}


def _same_dtype(inputs: Sequence[TypedFact], what: str) -> DType:
    dtypes = {fact.dtype for fact in inputs}
    if len(dtypes) > 1:
        raise FactError(f"{what}: inputs of different types: {', '.join(sorted(map(dtype_name, dtypes)))}")
    return inputs[0].dtype


@record
class Elementwise(Op):
    """A function of the table, applied with numpy broadcasting.

    Inputs   tensors that broadcast together
    Output   y of their common shape
    Stream   pointwise
    """

    kind: str
    params: tuple[float, ...] = ()

    def work(self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Work:
        several = self.kind in ("min", "max", "sum", "mean")
        return Work.of_each(outputs[0], max(1, len(inputs) - 1) if several else 1)

    @property
    def symbolic(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return ELEMENTWISE[self.kind].symbolic is not None

    @property
    def name(self) -> str:
        return self.kind

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        row = ELEMENTWISE[self.kind]
        if row.arity >= 0 and len(inputs) != row.arity:
            raise FactError(f"{self.kind} takes {row.arity} inputs, got {len(inputs)}")
        operands = inputs
        if self.kind == "where":
            if inputs[0].dtype != np.bool_:
                raise FactError(f"where: the condition must be bool, got {dtype_name(inputs[0].dtype)}")
            operands = inputs[1:]
        if self.kind == "pow":
            operands = inputs[:1]
        dtype = _same_dtype(operands, self.kind)
        shape = broadcast_shapes([fact.shape for fact in inputs], self.kind)
        return [TypedFact(np.dtype(np.bool_) if row.result == "bool" else dtype, shape)]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        row = ELEMENTWISE[self.kind]
        if row.symbolic is not None and any(is_symbolic(value) for value in inputs):
            return [np.asarray(row.symbolic(*inputs))]
        with np.errstate(all="ignore"):
            result = np.asarray(row.run(*inputs, *self.params))
        dtype = inputs[-1].dtype if self.kind == "where" else inputs[0].dtype
        return [result.astype(np.bool_ if row.result == "bool" else dtype, copy=False)]

    def checks(self, shapes: Sequence[Sequence[int]], dtypes: Sequence[DType]) -> list[Check]:
        if not np.issubdtype(dtypes[0], np.integer):
            return []
        if self.kind in ("div", "mod", "fmod"):
            return [Check(1, nonzero=True)]
        if self.kind == "pow" and np.issubdtype(dtypes[1], np.signedinteger):
            return [Check(1, 0, int(np.iinfo(dtypes[1]).max))]
        return []

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        return broadcast_relation(inputs, axes)

    def detail(self) -> str:
        return ", ".join(f"{param:g}" for param in self.params)


def broadcast_relation(inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
    """Pointwise on the common stream axis of all inputs; an input without one must not vary along it."""
    rank = max(fact.rank for fact in inputs)
    meeting = {axis + rank - fact.rank for fact, axis in zip(inputs, axes) if axis is not None}
    if len(meeting) > 1:
        return Whole(
            f"streams meet on different axes {sorted(meeting)}",
            "transpose one of them, or limit its reach (a window) so that no frame meets every other frame",
        )
    (axis,) = meeting
    for fact, own in zip(inputs, axes):
        place = axis - (rank - fact.rank)
        if own is None and place >= 0 and fact.shape[place] != 1:
            return Whole(
                f"a tensor of constant length {fact.shape[place]} meets the stream axis",
                "slice a table to the stream's length, or make the tensor broadcast over time",
            )
    return Pointwise((axis,))


@record
class Cast(Op):
    """Convert to another type, as numpy ``astype``.

    Stream   pointwise
    """

    dtype: DType

    def work(self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Work:
        return Work.of_each(outputs[0])

    @property
    def symbolic(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.dtype == np.int64

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        return [TypedFact(self.dtype, inputs[0].shape)]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        if is_symbolic(inputs[0]):
            return [inputs[0]]
        with np.errstate(all="ignore"):
            return [inputs[0].astype(self.dtype)]

    def checks(self, shapes: Sequence[Sequence[int]], dtypes: Sequence[DType]) -> list[Check]:
        converts = np.issubdtype(dtypes[0], np.floating) and np.issubdtype(self.dtype, np.integer)
        return [conversion_check(0, self.dtype)] if converts else []

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        return broadcast_relation(inputs, axes)

    def detail(self) -> str:
        return dtype_name(self.dtype)
