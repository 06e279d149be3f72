# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
"""The functions of elementwise chains: name, vector form, f64 form.

Parameters ``a b c`` are operands, ``p q`` immediates. Without a vector form, the f32 chain uses the f64 form for
each element: correct but slow (about 10 ns an element). To add a function, add a row.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pulse.jit.language.simd import (
    Vector,
    vabs,
    vceil,
    veq,
    vfloor,
    vfma,
    vge,
    vgt,
    vle,
    vlt,
    vmax,
    vmin,
    vne,
    vround,
    vselect,
    vsplat,
    vsqrt,
)
from pulse.jit.registry import device, exact_device
from pulse.program.kernels.vmath import (
    vcos,
    verf,
    verfc,
    vexp,
    vexpm1,
    vexpm1_negative,
    vlog,
    vmish,
    vpow,
    vsigmoid,
    vsign,
    vsin,
    vsoftplus,
    vtanh,
)
from pulse.program.kernels.vmath_hyperbolic import vacosh, vasinh, vatanh, vcosh, vlog1p, vsinh
from pulse.program.kernels.vmath_trigonometry import vacos, vasin, vatan, vatan2, vtan

Microoperation = Callable[..., Any]
"""A function of one lane or one vector: operands, then parameters."""
MAX_SHIFT = 63
"""The largest shift."""
FRACTION_FREE = 4503599627370496.0
"""2**52: from here on, all float64 numbers are whole."""
SQRT_HALF, SQRT_TWO_OVER_PI = math.sqrt(0.5), math.sqrt(2 / math.pi)


@device
def truth(mask: Vector) -> Vector:
    """Return 1.0 if the mask is true, else 0.0."""
    return vselect(mask, vsplat(1.0), vsplat(0.0))


@device
def both_true(a: Vector, b: Vector) -> Vector:
    """Return the mask of lanes in which both conditions, stored as floats, hold."""
    return vne(a, 0.0) & vne(b, 0.0)


@device
def either_true(a: Vector, b: Vector) -> Vector:
    """Return the mask of lanes in which at least one condition holds."""
    return vne(a, 0.0) | vne(b, 0.0)


@device
def vgelu(x: Vector, tanh_form: float) -> Vector:
    """Return ``x * Phi(x)``, or its approximation by tanh."""
    if tanh_form != 0:  # 0.5 * (1 + tanh(u)) is sigmoid(2u), which keeps the digits of small results
        return x * vsigmoid(2.0 * SQRT_TWO_OVER_PI * vfma(x * x * x, 0.044715, x))
    return 0.5 * x * (verf(x * SQRT_HALF) + 1.0)


@device
def gelu64(x: float, tanh_form: float) -> float:
    if tanh_form != 0:
        return 0.5 * x * (1 + np.tanh(SQRT_TWO_OVER_PI * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + math.erf(x * SQRT_HALF))


@device
def minimum(a: float, b: float) -> float:
    """Return the minimum; NaN if either is NaN."""
    return a if a < b or a != a else b


@device
def maximum(a: float, b: float) -> float:
    """Return the maximum; NaN if either is NaN."""
    return a if a > b or a != a else b


@device
def power(x: float, exponent: float) -> float:
    """Return x**exponent; the common exponents without libm."""
    if exponent == 2:
        return x * x
    if exponent == 1:
        return x
    if exponent == 3:
        return x * x * x
    if exponent == 0.5 and x >= 0:
        return np.sqrt(x)
    return np.power(x, exponent)


@device
def vpowc(x: Vector, exponent: float) -> Vector:
    """Return x**exponent; the common exponents by products."""
    if exponent == 2:
        return x * x
    if exponent == 1:
        return x
    if exponent == 3:
        return x * x * x
    if exponent == 0.5:
        return vselect(veq(x, -math.inf), vsplat(math.inf), vabs(vsqrt(x)))  # the root of -0.0 is 0.0
    return vpow(x, vsplat(exponent))


@exact_device
def rint64(x: float) -> float:
    """Round to the nearest integer, halves to even."""
    size = abs(x)
    if not 0 < size < FRACTION_FREE:
        return x
    rounded = (size + FRACTION_FREE) - FRACTION_FREE
    return rounded if x > 0 else -rounded


@device
def floor64(x: float) -> float:
    rounded = rint64(x)
    return rounded - 1.0 if rounded > x else rounded


@device
def ceil64(x: float) -> float:
    return -floor64(-x)


@exact_device
def fmod64(x: float, y: float) -> float:
    """Return the exact remainder, with the sign of x: subtract the divisor times powers of two as often as it fits."""
    rest, part = abs(x), abs(y)
    if not (rest < math.inf and part > 0):
        return math.nan
    if part == math.inf:
        return x
    step = part
    while step <= 0.5 * rest:
        step += step
    while step >= part:
        if rest >= step:
            rest -= step
        step *= 0.5
    return -rest if x < 0 else rest


@device
def floor_mod(x: float, y: float) -> float:
    """Return the remainder with the sign of y."""
    rest = fmod64(x, y)
    return rest + y if rest != 0 and (rest < 0) != (y < 0) else rest


@device
def softplus64(x: float) -> float:
    return np.log1p(np.exp(-abs(x))) + maximum(x, 0.0)


@device
def sigmoid64(x: float) -> float:
    return 1.0 / (1.0 + np.exp(-x))


@device
def clip01(x: float) -> float:
    return minimum(maximum(x, 0.0), 1.0)


@exact_device
def atan2_of(y: float, x: float) -> float:
    """Return the angle of a point; a zero has no sign."""
    return math.atan2(y + 0.0, x + 0.0)


@device
def sign64(x: float) -> float:
    """Return -1, 0 or 1; NaN for NaN."""
    return 1.0 if x > 0 else -1.0 if x < 0 else x


@device
def shift_left(x: float, bits: float) -> float:
    """Shift bits to the left; 0 if the shift is negative or larger than the number of bits."""
    return float(int(x) << int(bits)) if 0 <= bits <= MAX_SHIFT else 0.0


@device
def shift_right(x: float, bits: float) -> float:
    """Shift bits to the right; of a shift that is too large, the sign remains."""
    return float(int(x) >> int(bits)) if 0 <= bits <= MAX_SHIFT else (-1.0 if x < 0 else 0.0)


@device
def expm1_negative(x: float) -> float:
    """Return e**x - 1 if x < 0, else 0."""
    return np.expm1(minimum(x, 0.0))


MICRO_OPS: dict[str, tuple[Microoperation | None, Microoperation]] = {
    "add": (lambda a, b: a + b, lambda a, b: a + b),
    "sub": (lambda a, b: a - b, lambda a, b: a - b),
    "mul": (lambda a, b: a * b, lambda a, b: a * b),
    "mul_round": (lambda a, b: vround(a * b), lambda a, b: rint64(a * b)),
    "round_within": (
        lambda a, p, q: vmin(vmax(vround(a), p), q),
        lambda a, p, q: minimum(maximum(rint64(a), p), q),
    ),
    "div": (lambda a, b: a / b, lambda a, b: a / b),
    "pow": (lambda a, b: vpow(a, b), lambda a, b: power(a, b)),
    "mod": (None, lambda a, b: floor_mod(a, b)),
    "fmod": (None, lambda a, b: fmod64(a, b)),
    "min": (lambda a, b: vmin(a, b), lambda a, b: minimum(a, b)),
    "max": (lambda a, b: vmax(a, b), lambda a, b: maximum(a, b)),
    "prelu": (lambda a, b: vselect(vlt(a, 0.0), a * b, a), lambda a, b: a * b if a < 0 else a),
    "abs": (lambda a: vabs(a), lambda a: abs(a)),
    "neg": (lambda a: -a, lambda a: -a),
    "exp": (lambda a: vexp(a), lambda a: np.exp(a)),
    "log": (lambda a: vlog(a), lambda a: np.log(a)),
    "sqrt": (lambda a: vsqrt(a), lambda a: np.sqrt(a)),
    "reciprocal": (lambda a: 1.0 / a, lambda a: 1.0 / a),
    "floor": (lambda a: vfloor(a), lambda a: floor64(a)),
    "ceil": (lambda a: vceil(a), lambda a: ceil64(a)),
    "round": (lambda a: vround(a), lambda a: rint64(a)),
    "sign": (lambda a: vsign(a), lambda a: sign64(a)),
    "sin": (lambda a: vsin(a), lambda a: np.sin(a)),
    "cos": (lambda a: vcos(a), lambda a: np.cos(a)),
    "tan": (lambda a: vtan(a), lambda a: np.tan(a)),
    "asin": (lambda a: vasin(a), lambda a: np.arcsin(a)),
    "acos": (lambda a: vacos(a), lambda a: np.arccos(a)),
    "atan": (lambda a: vatan(a), lambda a: np.arctan(a)),
    "sinh": (lambda a: vsinh(a), lambda a: np.sinh(a)),
    "cosh": (lambda a: vcosh(a), lambda a: np.cosh(a)),
    "asinh": (lambda a: vasinh(a), lambda a: np.arcsinh(a)),
    "acosh": (lambda a: vacosh(a), lambda a: np.arccosh(a)),
    "atanh": (lambda a: vatanh(a), lambda a: np.arctanh(a)),
    "erf": (lambda a: verf(a), lambda a: math.erf(a)),
    "erfc": (lambda a: verfc(a), lambda a: math.erfc(a)),
    "log1p": (lambda a: vlog1p(a), lambda a: np.log1p(a)),
    "expm1": (lambda a: vexpm1(a), lambda a: np.expm1(a)),
    "atan2": (lambda a, b: vatan2(a, b), lambda a, b: atan2_of(a, b)),
    "relu": (lambda a: vmax(a, 0.0), lambda a: maximum(a, 0.0)),
    "leaky_relu": (lambda a, p: vselect(vlt(a, 0.0), a * p, a), lambda a, p: a * p if a < 0 else a),
    "thresholded_relu": (lambda a, p: vselect(vgt(a, p), a, vsplat(0.0)), lambda a, p: a if a > p else 0.0),
    "elu": (
        lambda a, p: vselect(vlt(a, 0.0), vexpm1_negative(a) * p, a),
        lambda a, p: p * np.expm1(a) if a < 0 else a,
    ),
    "celu": (
        lambda a, p: vmax(a, 0.0) + vmin(vexpm1(vmin(a, 0.0) / p) * p, 0.0),
        lambda a, p: maximum(a, 0.0) + minimum(0.0, p * np.expm1(minimum(a, 0.0) / p)),
    ),
    "selu": (
        lambda a, p, q: vselect(vgt(a, 0.0), a, vexpm1_negative(a) * p) * q,
        lambda a, p, q: q * (a if a > 0 else p * expm1_negative(a)),
    ),
    "gelu": (lambda a, p: vgelu(a, p), lambda a, p: gelu64(a, p)),
    "sigmoid": (lambda a: vsigmoid(a), lambda a: sigmoid64(a)),
    "hard_sigmoid": (lambda a, p, q: vmin(vmax(vfma(a, p, q), 0.0), 1.0), lambda a, p, q: clip01(p * a + q)),
    "hard_swish": (
        lambda a: a * vmin(vmax(vfma(a, 1 / 6, 0.5), 0.0), 1.0),
        lambda a: a * clip01(a / 6 + 0.5),
    ),
    "swish": (lambda a, p: a * vsigmoid(a * p), lambda a, p: a * sigmoid64(p * a)),
    "tanh": (lambda a: vtanh(a), lambda a: np.tanh(a)),
    "softplus": (lambda a: vsoftplus(a), lambda a: softplus64(a)),
    "softsign": (lambda a: a / (vabs(a) + 1.0), lambda a: a / (1.0 + abs(a))),
    "mish": (lambda a: vmish(a), lambda a: a * np.tanh(softplus64(a))),
    "and": (lambda a, b: truth(both_true(a, b)), lambda a, b: 1.0 if a != 0 and b != 0 else 0.0),
    "or": (lambda a, b: truth(either_true(a, b)), lambda a, b: 1.0 if a != 0 or b != 0 else 0.0),
    "xor": (
        lambda a, b: truth(either_true(a, b) & ~both_true(a, b)),
        lambda a, b: 1.0 if (a != 0) != (b != 0) else 0.0,
    ),
    "not": (lambda a: truth(veq(a, 0.0)), lambda a: 1.0 if a == 0 else 0.0),
    "bitwise_and": (None, lambda a, b: float(int(a) & int(b))),
    "bitwise_or": (None, lambda a, b: float(int(a) | int(b))),
    "bitwise_xor": (None, lambda a, b: float(int(a) ^ int(b))),
    "bitwise_not": (None, lambda a: float(~int(a))),
    "shift_left": (None, lambda a, b: shift_left(a, b)),
    "shift_right": (None, lambda a, b: shift_right(a, b)),
    "isnan": (lambda a: truth(vne(a, a)), lambda a: 1.0 if a != a else 0.0),
    "equal": (lambda a, b: truth(veq(a, b)), lambda a, b: 1.0 if a == b else 0.0),
    "greater": (lambda a, b: truth(vgt(a, b)), lambda a, b: 1.0 if a > b else 0.0),
    "greater_equal": (lambda a, b: truth(vge(a, b)), lambda a, b: 1.0 if a >= b else 0.0),
    "less": (lambda a, b: truth(vlt(a, b)), lambda a, b: 1.0 if a < b else 0.0),
    "less_equal": (lambda a, b: truth(vle(a, b)), lambda a, b: 1.0 if a <= b else 0.0),
    "where": (lambda a, b, c: vselect(vne(a, 0.0), b, c), lambda a, b, c: b if a != 0 else c),
    "square": (lambda a: a * a, lambda a: a * a),
    "where_finite": (
        lambda a: vselect(vlt(vabs(a), math.inf), a, vsplat(0.0)),
        lambda a: a if abs(a) < math.inf else 0.0,
    ),
    "addc": (lambda a, p: a + p, lambda a, p: a + p),
    "mulc": (lambda a, p: a * p, lambda a, p: a * p),
    "rsubc": (lambda a, p: p - a, lambda a, p: p - a),
    "maxc": (lambda a, p: vmax(a, p), lambda a, p: maximum(a, p)),
    "minc": (lambda a, p: vmin(a, p), lambda a, p: minimum(a, p)),
    "divc": (lambda a, p: a / p, lambda a, p: a / p),
    "rdivc": (lambda a, p: p / a, lambda a, p: p / a),
    "powc": (lambda a, p: vpowc(a, p), lambda a, p: power(a, p)),
    "affine": (lambda a, p, q: vfma(a, p, q), lambda a, p, q: a * p + q),
}

OPCODES: dict[str, int] = {name: code for code, name in enumerate(MICRO_OPS)}


def vector_form(name: str) -> Microoperation:
    """Return the vector form of a function that has one."""
    form, _ = MICRO_OPS[name]
    assert form is not None, name
    return form
