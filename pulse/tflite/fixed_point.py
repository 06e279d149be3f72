"""Sigmoid and tanh of int16 codes in fixed point, if the scale of the codes is a power of two.

e**x is a product of constants for the bits of x and a polynomial on [-1/4, 0); quotients take three steps of Newton's
method. Numbers are int16 with ``whole`` bits before the point; a product of two is the upper 16 bits of
twice their product, rounded.

Source: the public behaviour of gemmlowp's fixed-point functions, which LiteRT's recurrent int8 layers and its
optimized int16 activations use.
"""

import numpy as np
from numpy.typing import NDArray

from pulse.facts import Array

IntegerArray = NDArray[np.int64]
FRACTION_BITS = 15
"""The bits after the point."""
MAX_FRACTION = (1 << FRACTION_BITS) - 1
"""The largest 15-bit fraction; larger ones saturate."""
EXPONENTS = range(-2, 5)
"""The powers of two for which the exponential has a constant."""
_POLYNOMIAL_CENTRE = -1 / 8
"""The middle of the interval of the polynomial, as in gemmlowp."""
_NEWTON_STEPS = 3
"""Steps of Newton's method for an inverse, as in gemmlowp."""


def sigmoid(codes: Array, whole: int) -> Array:
    """Return 1 / (1 + e**-x) in steps of 2**-15; f32.

    codes   int16 values, x is ``codes * 2**(whole - 15)``
    """
    x = codes.astype(np.int64)
    fraction = _twice_reciprocal(_exponential(np.where(x > 0, -x, x), whole)) << 1
    y = np.clip(fraction, -MAX_FRACTION - 1, MAX_FRACTION)
    return np.where(x == 0, 1 << (FRACTION_BITS - 1), np.where(x > 0, y, MAX_FRACTION - y)).astype(np.float32)


def tanh(codes: Array, whole: int) -> Array:
    """Return the hyperbolic tangent of x in steps of 2**-15; f32. Parameters as in ``sigmoid``."""
    x = codes.astype(np.int64)
    negative = np.where(x < 0, x, -x)
    y = np.clip(
        (_twice_reciprocal(_exponential(negative, whole + 1)) - (1 << (FRACTION_BITS - 2))) << 2,
        -MAX_FRACTION - 1,
        MAX_FRACTION,
    )
    return np.where(x == 0, 0, np.where(x < 0, -y, y)).astype(np.float32)


def hard_swish(codes: Array, scale: float, out_scale: float) -> Array:
    """Return 8-bit codes times a line from 0 at -3 to 1 at 3, in steps of the output; integers.

    codes        ``code - zero`` of 8-bit codes
    scale, out_scale  of the input and the output
    """
    fine = codes.astype(np.int64) << 7
    out, out_shift = _multiplier(scale / 128 / out_scale)
    line, line_shift = _multiplier(scale / 128 / (3 / 32768))
    y = _clamp(fine << max(line_shift - 1, 0))
    y = _clamp(_product(y, line) << min(max(line_shift, 0), 1))
    y = (_divide(y, max(-line_shift, 0)) + (1 << FRACTION_BITS)) >> 1
    both = y * _product(fine, out)
    product = np.where(both >= 0, both >> FRACTION_BITS, -(-both >> FRACTION_BITS))
    return _divide(product, max(-out_shift, 0)).astype(np.float64)


def _multiplier(factor: float) -> tuple[int, int]:
    """Return a factor as ``multiplier / 2**15 * 2**shift``: the upper half of a 32-bit multiplier."""
    mantissa, shift = np.frexp(factor)
    return min((int(np.rint(float(mantissa) * 2.0**31)) + (1 << 15)) >> 16, MAX_FRACTION), int(shift)


def _clamp(x: IntegerArray) -> IntegerArray:
    return np.clip(x, -MAX_FRACTION - 1, MAX_FRACTION)


def _fix(value: float, whole: int = 0) -> int:
    """Return a constant: the upper half of its 32-bit form."""
    wide = int(np.rint(value * 2.0 ** (31 - whole)))
    return min((wide + (1 << 15)) >> 16, MAX_FRACTION)


def _product(a: IntegerArray | int, b: IntegerArray | int) -> IntegerArray:
    both = np.asarray(a, np.int64) * b
    nudged = both + np.where(both >= 0, 1 << (FRACTION_BITS - 1), 1 - (1 << (FRACTION_BITS - 1)))
    return np.where(nudged >= 0, nudged >> FRACTION_BITS, -(-nudged >> FRACTION_BITS))


def _divide(x: IntegerArray, bits: int) -> IntegerArray:
    """Divide by a power of two, and round halves away from zero."""
    remainder, half = x & ((1 << bits) - 1), ((1 << bits) - 1) >> 1
    return (x >> bits) + (remainder > half + (x < 0))


def _on_last_quarter(x: IntegerArray) -> IntegerArray:
    """Return the exponential of -1/4 <= x < 0 without integer bits, by its series around -1/8."""
    centred = x + (1 << (FRACTION_BITS - 3))
    square = _product(centred, centred)
    cube, fourth = _product(square, centred), _product(square, square)
    third = _product(_divide(fourth, 2) + cube, _fix(1 / 3))
    rest = _divide(third + square, 1)
    middle = _fix(float(np.exp(_POLYNOMIAL_CENTRE)))
    return np.clip(middle + _product(middle, centred + rest), -MAX_FRACTION - 1, MAX_FRACTION)


def _exponential(x: IntegerArray, whole: int) -> IntegerArray:
    """Return the exponential of x <= 0."""
    fraction = FRACTION_BITS - whole
    quarter = 1 << (fraction - 2)
    inside = (x & (quarter - 1)) - quarter
    y = _on_last_quarter(np.clip(inside << whole, -MAX_FRACTION - 1, MAX_FRACTION))
    rest = inside - x
    for exponent in EXPONENTS:
        if whole > exponent:
            factor = _fix(float(np.exp(-(2.0**exponent))))
            y = np.where(rest & (1 << (fraction + exponent)) != 0, _product(y, factor), y)
    return np.where(x == 0, MAX_FRACTION, y)


def _twice_reciprocal(x: IntegerArray) -> IntegerArray:
    """Return twice the reciprocal of 1 + x, 0 <= x <= 1, with two integer bits."""
    total = x + MAX_FRACTION
    half = np.where(total >= 0, (total + 1) >> 1, -((1 - total) >> 1))
    y = _fix(48 / 17, 2) + _product(half, _fix(-32 / 17, 2))
    for _ in range(_NEWTON_STEPS):
        error = (1 << (FRACTION_BITS - 2)) - _product(half, y)
        y = y + np.clip(_product(y, error) << 2, -MAX_FRACTION - 1, MAX_FRACTION)
    return y
