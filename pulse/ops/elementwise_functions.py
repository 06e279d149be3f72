"""Elementwise functions: one table, a row for each.

A row has all that is known of a function but its kernel: its numpy form (the oracle), its names in each format, and
its properties. Readers, writers, inference and rewrites take their tables from it. Kernels mirror it by name in
``pulse/program/kernels/elementwise_microops.py``.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Literal

import numpy as np

from pulse.dim import Ratio, TDim, dim_max, dim_min
from pulse.facts import Array
from pulse.support.record import record

Result = Literal["same", "bool"]


@record
class Names:
    """The operators that are a function, of the same inputs in the same order; empty where a format has none.

    onnx        in ONNX: read, inferred and written as such
    nnef        in NNEF: read as the operator of ONNX, and written so if its writer does not compose it
    tensorflow  in TensorFlow, several separated by spaces: read as such
    tflite      in TensorFlow Lite: read as such, of codes too
    params      the attributes in ONNX that are the parameters, in their order, and their defaults
    """

    onnx: str = ""
    nnef: str = ""
    tensorflow: str = ""
    tflite: str = ""
    params: Mapping[str, float] = field(default_factory=dict[str, float])


NO_NAMES = Names()


@record
class Row:
    """One elementwise function.

    arity       the number of inputs; -1: any number from one, and of one input the function is that input
    run         the numpy form, ``run(*inputs, *params)``
    names       its operators
    result      the type of the result
    symbolic    the function on tensors of TDim; None if it has none
    ratio       the function on quotients of dims, for sizes that a file computes in floats; None if it has none
    neutral     the number that changes nothing as an operand of a function of two inputs; None if there is none
    neutral_at  the inputs that may be that number
    idempotent  whether f(f(x)) = f(x)
    typed_by    the first of the inputs of the result's type, and the one after the last; inputs before them are
                conditions, those after them of any type
    """

    arity: int
    run: Callable[..., Any]
    names: Names = NO_NAMES
    result: Result = "same"
    symbolic: Callable[..., Any] | None = None
    ratio: Callable[..., Ratio] | None = None
    neutral: int | None = None
    neutral_at: tuple[int, ...] = (0, 1)
    idempotent: bool = False
    typed_by: tuple[int, int | None] = (0, None)


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
OnRatios = Callable[..., Ratio]


def unary(
    run: Unary,
    names: Names = NO_NAMES,
    result: Result = "same",
    *,
    symbolic: Unary | None = None,
    ratio: OnRatios | None = None,
    idempotent: bool = False,
) -> Row:
    """A function of one tensor."""
    return Row(1, run, names, result, symbolic, ratio, idempotent=idempotent)


def parametric(
    run: Callable[[Array, float], Array] | Callable[[Array, float, float], Array], names: Names = NO_NAMES
) -> Row:
    """A function of one tensor and one or two numbers."""
    return Row(1, run, names)


def binary(
    run: Binary,
    names: Names = NO_NAMES,
    result: Result = "same",
    *,
    symbolic: Binary | None = None,
    ratio: OnRatios | None = None,
    neutral: int | None = None,
    neutral_at: tuple[int, ...] = (0, 1),
    typed_by: tuple[int, int | None] = (0, None),
) -> Row:
    """A function of two tensors."""
    return Row(
        2, run, names, result, symbolic, ratio, neutral=neutral, neutral_at=neutral_at, typed_by=typed_by
    )


def variadic(
    run: Callable[..., Array],
    names: Names = NO_NAMES,
    *,
    symbolic: Callable[..., Array] | None = None,
    ratio: OnRatios | None = None,
) -> Row:
    """A function of any number of tensors."""
    return Row(-1, run, names, symbolic=symbolic, ratio=ratio)


ELEMENTWISE: dict[str, Row] = {
    "add": binary(
        np.add, Names("Add", "add", "Add AddV2", "ADD"), symbolic=np.add, ratio=Ratio.__add__, neutral=0
    ),
    "sub": binary(
        np.subtract,
        Names("Sub", "sub", "Sub", "SUB"),
        symbolic=np.subtract,
        ratio=Ratio.__sub__,
        neutral=0,
        neutral_at=(1,),
    ),
    "mul": binary(
        np.multiply, Names("Mul", "mul", "", "MUL"), symbolic=np.multiply, ratio=Ratio.__mul__, neutral=1
    ),
    "div": binary(
        _divide,
        Names("Div", "div", "Div RealDiv TruncateDiv", "DIV"),
        symbolic=_symbolic_divide,
        ratio=Ratio.__truediv__,
        neutral=1,
        neutral_at=(1,),
    ),
    "pow": binary(
        lambda x, y: np.power(x, y).astype(x.dtype),
        Names("Pow", "pow", "Pow", "POW"),
        neutral=1,
        neutral_at=(1,),
        typed_by=(0, 1),
    ),
    "mod": binary(np.mod, Names(tensorflow="FloorMod"), symbolic=np.mod),
    "fmod": binary(np.fmod, Names(tensorflow="Mod TruncateMod")),
    "min": variadic(
        _fold(np.minimum),
        Names("Min", "min", "Minimum", "MINIMUM"),
        symbolic=_pairwise(dim_min),
        ratio=Ratio.minimum,
    ),
    "max": variadic(
        _fold(np.maximum),
        Names("Max", "max", "Maximum", "MAXIMUM"),
        symbolic=_pairwise(dim_max),
        ratio=Ratio.maximum,
    ),
    "sum": variadic(_fold(np.add), Names("Sum", tensorflow="AddN"), symbolic=_fold(np.add)),
    "mean": variadic(lambda *xs: _fold(np.add)(*xs) / len(xs), Names("Mean")),
    "mul_round": binary(lambda x, y: np.rint(x * y)),
    "prelu": binary(lambda x, slope: np.where(x < 0, x * slope, x), Names("PRelu")),
    "abs": unary(np.abs, Names("Abs", "abs", "Abs"), idempotent=True),
    "neg": unary(np.negative, Names("Neg", "neg", "Neg", "NEG"), symbolic=np.negative, ratio=Ratio.__neg__),
    "exp": unary(np.exp, Names("Exp", "exp", "", "EXP")),
    "log": unary(np.log, Names("Log", "log", "Log", "LOG")),
    "sqrt": unary(np.sqrt, Names("Sqrt", "sqrt", "Sqrt")),
    "reciprocal": unary(lambda x: 1 / x, Names("Reciprocal", "rcp", "Reciprocal Inv")),
    "floor": unary(np.floor, Names("Floor", "floor", "Floor", "FLOOR"), ratio=Ratio.floor, idempotent=True),
    "ceil": unary(np.ceil, Names("Ceil", "ceil", "Ceil", "CEIL"), ratio=Ratio.ceil, idempotent=True),
    "round": unary(
        np.rint,
        Names("Round", "tract_core_round_even", "Round Rint", "ROUND"),
        ratio=Ratio.round,
        idempotent=True,
    ),
    "sign": unary(np.sign, Names("Sign", "sign", "Sign", "SIGN"), idempotent=True),
    "sin": unary(np.sin, Names("Sin", "sin", "Sin", "SIN")),
    "cos": unary(np.cos, Names("Cos", "cos", "Cos", "COS")),
    "tan": unary(np.tan, Names("Tan", "tan", "Tan")),
    "asin": unary(np.arcsin, Names("Asin", "asin", "Asin")),
    "acos": unary(np.arccos, Names("Acos", "acos", "Acos")),
    "atan": unary(np.arctan, Names("Atan", "atan", "Atan")),
    "sinh": unary(np.sinh, Names("Sinh", "sinh", "Sinh")),
    "cosh": unary(np.cosh, Names("Cosh", "cosh", "Cosh")),
    "asinh": unary(np.arcsinh, Names("Asinh", "asinh", "Asinh")),
    "acosh": unary(np.arccosh, Names("Acosh", "acosh", "Acosh")),
    "atanh": unary(np.arctanh, Names("Atanh", "atanh", "Atanh")),
    "erf": unary(_erf_like, Names("Erf", "tract_core_erf", "Erf")),
    "relu": unary(lambda x: np.maximum(x, 0), Names("Relu", "relu", "Relu"), idempotent=True),
    "leaky_relu": parametric(
        lambda x, alpha: np.where(x < 0, x * alpha, x), Names("LeakyRelu", params={"alpha": 0.01})
    ),
    "thresholded_relu": parametric(
        lambda x, alpha: np.where(x > alpha, x, 0), Names("ThresholdedRelu", params={"alpha": 1.0})
    ),
    "elu": parametric(
        lambda x, alpha: np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x),
        Names("Elu", tensorflow="Elu", params={"alpha": 1.0}),
    ),
    "celu": parametric(
        lambda x, a: np.maximum(x, 0) + np.minimum(0, a * np.expm1(np.minimum(x, 0) / a)),
        Names("Celu", params={"alpha": 1.0}),
    ),
    "selu": parametric(
        lambda x, alpha, gamma: gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))),
        Names(
            "Selu",
            tensorflow="Selu",
            params={"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875},
        ),
    ),
    "gelu": parametric(_gelu),
    "sigmoid": unary(_sigmoid, Names("Sigmoid", "sigmoid", "Sigmoid", "LOGISTIC")),
    "hard_sigmoid": parametric(
        lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
        Names("HardSigmoid", params={"alpha": 0.2, "beta": 0.5}),
    ),
    "hard_swish": unary(
        lambda x: x * np.clip(x / 6 + 0.5, 0, 1), Names("HardSwish", "tract_core_hard_swish")
    ),
    "swish": parametric(lambda x, alpha: x * _sigmoid(alpha * x), Names("Swish", params={"alpha": 1.0})),
    "tanh": unary(np.tanh, Names("Tanh", "tanh", "Tanh", "TANH")),
    "softplus": unary(_softplus, Names("Softplus", "softplus", "Softplus")),
    "softsign": unary(lambda x: x / (1 + np.abs(x)), Names("Softsign", tensorflow="Softsign")),
    "mish": unary(lambda x: x * np.tanh(_softplus(x)), Names("Mish")),
    "and": binary(np.logical_and, Names("And", "and", "LogicalAnd", "LOGICAL_AND"), "bool", neutral=1),
    "or": binary(np.logical_or, Names("Or", "or", "LogicalOr", "LOGICAL_OR"), "bool", neutral=0),
    "xor": binary(np.logical_xor, Names("Xor", "tract_core_xor", "LogicalXor"), "bool"),
    "not": unary(np.logical_not, Names("Not", "not", "LogicalNot", "LOGICAL_NOT"), "bool"),
    "bitwise_and": binary(np.bitwise_and, Names("BitwiseAnd", tensorflow="BitwiseAnd")),
    "bitwise_or": binary(np.bitwise_or, Names("BitwiseOr", tensorflow="BitwiseOr")),
    "bitwise_xor": binary(np.bitwise_xor, Names("BitwiseXor", tensorflow="BitwiseXor", tflite="BITWISE_XOR")),
    "bitwise_not": unary(np.bitwise_not, Names("BitwiseNot", tensorflow="Invert")),
    "shift_left": binary(np.left_shift),
    "shift_right": binary(np.right_shift, Names(tflite="RIGHT_SHIFT")),
    "isnan": unary(np.isnan, Names("IsNaN", "tract_core_is_nan", "IsNan"), "bool"),
    "equal": binary(
        np.equal, Names("Equal", "eq", "Equal", "EQUAL"), "bool", symbolic=_compare_proven("prove_eq")
    ),
    "greater": binary(
        np.greater, Names("Greater", "gt", "Greater", "GREATER"), "bool", symbolic=_compare_proven("prove_gt")
    ),
    "greater_equal": binary(
        np.greater_equal,
        Names("GreaterOrEqual", "ge", "GreaterEqual", "GREATER_EQUAL"),
        "bool",
        symbolic=_compare_proven("prove_ge"),
    ),
    "less": binary(
        np.less, Names("Less", "lt", "Less", "LESS"), "bool", symbolic=_compare_proven("prove_lt")
    ),
    "less_equal": binary(
        np.less_equal,
        Names("LessOrEqual", "le", "LessEqual", "LESS_EQUAL"),
        "bool",
        symbolic=_compare_proven("prove_le"),
    ),
    "where": Row(3, np.where, Names("Where", "select"), symbolic=_symbolic_where, typed_by=(1, None)),
}
