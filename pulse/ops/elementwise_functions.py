"""Elementwise functions: one table, a row for each.

A row has all that is known of a function but its kernel: its numpy form (the oracle), its names in each format, and
its properties. Readers, writers, inference and rewrites take their tables from it. Kernels mirror it by name in
``pulse/program/kernels/elementwise_microops.py``.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial, reduce
from typing import Any, Literal

import numpy as np

from pulse.dim import Ratio, TDim, dim_max, dim_min
from pulse.facts import Array
from pulse.support.record import record

ResultType = Literal["same", "bool"]
Factor = Callable[[Any, int], Any]


@record
class OperatorNames:
    """The operators that are a function, of the same inputs in the same order; empty if a format has none.

    onnx        name in ONNX: read, inferred and written as such
    nnef        name in NNEF: read as the operator of ONNX, and written so if its writer does not compose it
    tensorflow  names in TensorFlow, several separated by spaces: read as such
    tflite      name in TensorFlow Lite: read as such, of codes too
    params      the attributes in ONNX that are the parameters, in their order, and their defaults
    """

    onnx: str = ""
    nnef: str = ""
    tensorflow: str = ""
    tflite: str = ""
    params: Mapping[str, float] = field(default_factory=dict[str, float])


NO_NAMES = OperatorNames()


@record
class FunctionEntry:
    """One elementwise function.

    arity       the number of inputs; -1: any number from one, and of one input the function is that input
    run         the numpy form, ``run(*inputs, *params)``
    names       its operators
    result      the type of the result
    symbolic    the function on tensors of TDim; None if it has none
    ratio       the function on quotients of dims, for sizes that a file computes in floats; None if it has none
    neutral     the number that changes nothing as an operand of a function of two inputs; None if there is none
    neutral_slots  the inputs that may be that number
    idempotent  whether f(f(x)) = f(x)
    signs       1 or -1 for each input, if the function is the sum of its inputs with these signs; of any number of
                inputs, that of all
    factor      ``factor(number, slot)``: what multiplies the input at this slot if the other one is this number; or
                None: nothing does
    holds_if    which of x < y, x = y, x > y make a comparison ``f(x, y)`` true, such as ``<=``
    typed_by    the first of the inputs of the result's type, and the one after the last; inputs before them are
                conditions, those after them of any type
    """

    arity: int
    run: Callable[..., Any]
    names: OperatorNames = NO_NAMES
    result: ResultType = "same"
    symbolic: Callable[..., Any] | None = None
    ratio: Callable[..., Ratio] | None = None
    neutral: int | None = None
    neutral_slots: tuple[int, ...] = (0, 1)
    idempotent: bool = False
    signs: tuple[int, ...] | None = None
    factor: Factor | None = None
    holds_if: str = ""
    typed_by: tuple[int, int | None] = (0, None)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _by_number(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """Return a function of numbers for arrays: in their type, at least f32, to which runtimes round erf too."""
    of_each = np.vectorize(function, otypes=[np.float64])
    return lambda x: of_each(x).astype(np.result_type(x, np.float32)) if x.size else x


_erf_like = _by_number(math.erf)


ERFC_TAIL = (
    *(-0.0612448078, 0.296323134, -0.512173407, 0.306010629, -0.0448105438),
    *(0.209765698, 0.241491446, 0.282571895, 0.282076585),
)
"""Of t = 1 / (1 + x / 2), x from 0.5 to 10.2: the polynomial, highest power first, that is erfc(x) exp(x * x) / t."""


def _softplus(x: Array) -> Array:
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


def _divide(x: Array, y: Array) -> Array:
    """Divide; integers towards zero, as in C, where the smallest integer divided by -1 wraps around."""
    if np.issubdtype(x.dtype, np.integer):
        quotient = np.abs(x.astype(object)) // np.abs(np.where(y == 0, 1, y).astype(object))
        signed = np.asarray(np.sign(x).astype(object) * np.sign(y).astype(object) * quotient, object)
        unsigned = np.asarray(signed % (1 << 8 * x.dtype.itemsize), object)
        return unsigned.astype(f"u{x.dtype.itemsize}").view(x.dtype)
    return x / y


def _multiply_factor(number: Any, slot: int) -> Any:
    return number


def _divide_factor(number: Any, slot: int) -> Any:
    return None if slot == 1 or not np.all(number) else 1 / number


def _gelu(x: Array, tanh_form: float) -> Array:
    if tanh_form:  # 0.5 * (1 + tanh(u)) is sigmoid(2u), which keeps the digits of small results
        return x * _sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    return 0.5 * x * (1 + _erf_like(x / math.sqrt(2)))


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
        return reduce(function, operands)

    return apply


UnaryFunction = (
    Callable[[Array], Array] | Callable[[Array, float], Array] | Callable[[Array, float, float], Array]
)


def unary(
    run: UnaryFunction, names: OperatorNames = NO_NAMES, result: ResultType = "same", **properties: Any
) -> FunctionEntry:
    """Return a function of one tensor, and of up to two numbers."""
    return FunctionEntry(1, run, names, result, **properties)


def binary(
    run: Callable[[Array, Array], Array],
    names: OperatorNames = NO_NAMES,
    result: ResultType = "same",
    **properties: Any,
) -> FunctionEntry:
    """Return a function of two tensors."""
    return FunctionEntry(2, run, names, result, **properties)


def comparison(
    run: Callable[[Array, Array], Array], names: OperatorNames, holds_if: str, question: str
) -> FunctionEntry:
    """Return a comparison of two tensors; ``question`` is the method of TDim that proves it for all lengths."""
    return FunctionEntry(2, run, names, "bool", _compare_proven(question), holds_if=holds_if)


variadic = partial(FunctionEntry, -1)
"""A function of any number of tensors."""

ELEMENTWISE: dict[str, FunctionEntry] = {
    "add": binary(
        np.add,
        OperatorNames("Add", "add", "Add AddV2", "ADD"),
        symbolic=np.add,
        ratio=Ratio.__add__,
        neutral=0,
        signs=(1, 1),
    ),
    "sub": binary(
        np.subtract,
        OperatorNames("Sub", "sub", "Sub", "SUB"),
        symbolic=np.subtract,
        ratio=Ratio.__sub__,
        neutral=0,
        neutral_slots=(1,),
        signs=(1, -1),
    ),
    "mul": binary(
        np.multiply,
        OperatorNames("Mul", "mul", "", "MUL"),
        symbolic=np.multiply,
        ratio=Ratio.__mul__,
        neutral=1,
        factor=_multiply_factor,
    ),
    "div": binary(
        _divide,
        OperatorNames("Div", "div", "Div RealDiv TruncateDiv", "DIV"),
        symbolic=np.floor_divide,
        ratio=Ratio.__truediv__,
        neutral=1,
        neutral_slots=(1,),
        factor=_divide_factor,
    ),
    "pow": binary(
        lambda x, y: np.power(x, y).astype(x.dtype),
        OperatorNames("Pow", "pow", "Pow", "POW"),
        neutral=1,
        neutral_slots=(1,),
        typed_by=(0, 1),
    ),
    "mod": binary(np.mod, OperatorNames(tensorflow="FloorMod"), symbolic=np.mod),
    "fmod": binary(np.fmod, OperatorNames(tensorflow="Mod TruncateMod")),
    "min": variadic(
        _fold(np.minimum),
        OperatorNames("Min", "min", "Minimum", "MINIMUM"),
        symbolic=_pairwise(dim_min),
        ratio=Ratio.minimum,
    ),
    "max": variadic(
        _fold(np.maximum),
        OperatorNames("Max", "max", "Maximum", "MAXIMUM"),
        symbolic=_pairwise(dim_max),
        ratio=Ratio.maximum,
    ),
    "sum": variadic(
        _fold(np.add), OperatorNames("Sum", tensorflow="AddN"), symbolic=_fold(np.add), signs=(1,)
    ),
    "mean": variadic(lambda *xs: _fold(np.add)(*xs) / len(xs), OperatorNames("Mean")),
    "mul_round": binary(lambda x, y: np.rint(x * y)),
    "round_within": unary(lambda x, low, high: np.clip(np.round(x), low, high), idempotent=True),
    "prelu": binary(lambda x, slope: np.where(x < 0, x * slope, x), OperatorNames("PRelu")),
    "abs": unary(np.abs, OperatorNames("Abs", "abs", "Abs"), idempotent=True),
    "neg": unary(
        np.negative,
        OperatorNames("Neg", "neg", "Neg", "NEG"),
        symbolic=np.negative,
        ratio=Ratio.__neg__,
        signs=(-1,),
    ),
    "exp": unary(np.exp, OperatorNames("Exp", "exp", "", "EXP")),
    "log": unary(np.log, OperatorNames("Log", "log", "Log", "LOG")),
    "sqrt": unary(np.sqrt, OperatorNames("Sqrt", "sqrt", "Sqrt")),
    "reciprocal": unary(lambda x: 1 / x, OperatorNames("Reciprocal", "rcp", "Reciprocal Inv")),
    "floor": unary(
        np.floor, OperatorNames("Floor", "floor", "Floor", "FLOOR"), ratio=Ratio.floor, idempotent=True
    ),
    "ceil": unary(np.ceil, OperatorNames("Ceil", "ceil", "Ceil", "CEIL"), ratio=Ratio.ceil, idempotent=True),
    "round": unary(
        lambda x: np.round(x),  # np.rint converts integers to floats
        OperatorNames("Round", "tract_core_round_even", "Round Rint", "ROUND"),
        ratio=Ratio.round,
        idempotent=True,
    ),
    "sign": unary(np.sign, OperatorNames("Sign", "sign", "Sign", "SIGN"), idempotent=True),
    "sin": unary(np.sin, OperatorNames("Sin", "sin", "Sin", "SIN")),
    "cos": unary(np.cos, OperatorNames("Cos", "cos", "Cos", "COS")),
    "tan": unary(np.tan, OperatorNames("Tan", "tan", "Tan")),
    "asin": unary(np.arcsin, OperatorNames("Asin", "asin", "Asin")),
    "acos": unary(np.arccos, OperatorNames("Acos", "acos", "Acos")),
    "atan": unary(np.arctan, OperatorNames("Atan", "atan", "Atan")),
    "sinh": unary(np.sinh, OperatorNames("Sinh", "sinh", "Sinh")),
    "cosh": unary(np.cosh, OperatorNames("Cosh", "cosh", "Cosh")),
    "asinh": unary(np.arcsinh, OperatorNames("Asinh", "asinh", "Asinh")),
    "acosh": unary(np.arccosh, OperatorNames("Acosh", "acosh", "Acosh")),
    "atanh": unary(np.arctanh, OperatorNames("Atanh", "atanh", "Atanh")),
    "erf": unary(_erf_like, OperatorNames("Erf", "tract_core_erf", "Erf")),
    "erfc": unary(_by_number(math.erfc), OperatorNames(tensorflow="Erfc")),
    "log1p": unary(np.log1p, OperatorNames(tensorflow="Log1p")),
    "expm1": unary(np.expm1, OperatorNames(tensorflow="Expm1")),
    "atan2": binary(
        lambda y, x: np.arctan2(y + 0.0, x + 0.0),  # -0.0 is 0.0: kernels ignore the sign of a zero
        OperatorNames(tensorflow="Atan2", tflite="ATAN2"),
    ),
    "relu": unary(lambda x: np.maximum(x, 0), OperatorNames("Relu", "relu", "Relu"), idempotent=True),
    "leaky_relu": unary(
        lambda x, alpha: np.where(x < 0, x * alpha, x), OperatorNames("LeakyRelu", params={"alpha": 0.01})
    ),
    "thresholded_relu": unary(
        lambda x, alpha: np.where(x > alpha, x, 0), OperatorNames("ThresholdedRelu", params={"alpha": 1.0})
    ),
    "elu": unary(
        lambda x, alpha: np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x),
        OperatorNames("Elu", tensorflow="Elu", params={"alpha": 1.0}),
    ),
    "celu": unary(
        lambda x, a: np.maximum(x, 0) + np.minimum(0, a * np.expm1(np.minimum(x, 0) / a)),
        OperatorNames("Celu", params={"alpha": 1.0}),
    ),
    "selu": unary(
        lambda x, alpha, gamma: gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))),
        OperatorNames(
            "Selu",
            tensorflow="Selu",
            params={"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875},
        ),
    ),
    "gelu": unary(_gelu),
    "sigmoid": unary(_sigmoid, OperatorNames("Sigmoid", "sigmoid", "Sigmoid", "LOGISTIC")),
    "hard_sigmoid": unary(
        lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
        OperatorNames("HardSigmoid", params={"alpha": 0.2, "beta": 0.5}),
    ),
    "hard_swish": unary(
        lambda x: x * np.clip(x / 6 + 0.5, 0, 1), OperatorNames("HardSwish", "tract_core_hard_swish")
    ),
    "swish": unary(lambda x, alpha: x * _sigmoid(alpha * x), OperatorNames("Swish", params={"alpha": 1.0})),
    "tanh": unary(np.tanh, OperatorNames("Tanh", "tanh", "Tanh", "TANH")),
    "softplus": unary(_softplus, OperatorNames("Softplus", "softplus", "Softplus")),
    "softsign": unary(lambda x: x / (1 + np.abs(x)), OperatorNames("Softsign", tensorflow="Softsign")),
    "mish": unary(lambda x: x * np.tanh(_softplus(x)), OperatorNames("Mish")),
    "and": binary(
        np.logical_and, OperatorNames("And", "and", "LogicalAnd", "LOGICAL_AND"), "bool", neutral=1
    ),
    "or": binary(np.logical_or, OperatorNames("Or", "or", "LogicalOr", "LOGICAL_OR"), "bool", neutral=0),
    "xor": binary(np.logical_xor, OperatorNames("Xor", "tract_core_xor", "LogicalXor"), "bool"),
    "not": unary(np.logical_not, OperatorNames("Not", "not", "LogicalNot", "LOGICAL_NOT"), "bool"),
    "bitwise_and": binary(np.bitwise_and, OperatorNames("BitwiseAnd", tensorflow="BitwiseAnd")),
    "bitwise_or": binary(np.bitwise_or, OperatorNames("BitwiseOr", tensorflow="BitwiseOr")),
    "bitwise_xor": binary(
        np.bitwise_xor, OperatorNames("BitwiseXor", tensorflow="BitwiseXor", tflite="BITWISE_XOR")
    ),
    "bitwise_not": unary(np.bitwise_not, OperatorNames("BitwiseNot", tensorflow="Invert")),
    "shift_left": binary(np.left_shift),
    "shift_right": binary(np.right_shift),
    "isnan": unary(np.isnan, OperatorNames("IsNaN", "tract_core_is_nan", "IsNan"), "bool"),
    "equal": comparison(np.equal, OperatorNames("Equal", "eq", "Equal", "EQUAL"), "=", "prove_eq"),
    "greater": comparison(np.greater, OperatorNames("Greater", "gt", "Greater", "GREATER"), ">", "prove_gt"),
    "greater_equal": comparison(
        np.greater_equal,
        OperatorNames("GreaterOrEqual", "ge", "GreaterEqual", "GREATER_EQUAL"),
        ">=",
        "prove_ge",
    ),
    "less": comparison(np.less, OperatorNames("Less", "lt", "Less", "LESS"), "<", "prove_lt"),
    "less_equal": comparison(
        np.less_equal, OperatorNames("LessOrEqual", "le", "LessEqual", "LESS_EQUAL"), "<=", "prove_le"
    ),
    "where": FunctionEntry(
        3, np.where, OperatorNames("Where", "select"), symbolic=_symbolic_where, typed_by=(1, None)
    ),
}
