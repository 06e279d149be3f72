"""Hyperbolic functions of 16 lanes and their inverses; see ``vmath``."""

from pulse.jit.language.simd import (
    Vector,
    vabs,
    vexp2i,
    vfma,
    vgt,
    vlt,
    vmax,
    vmin,
    vround,
    vselect,
    vsplat,
    vsqrt,
)
from pulse.jit.registry import device, exact_device
from pulse.program.kernels.vmath import (
    INFINITY,
    LN2,
    LN2_HIGH,
    LN2_LOW,
    LOG2_E,
    MIN_NORMAL,
    exp_fraction,
    vlog,
)
from pulse.program.kernels.vmath_trigonometry import copy_sign

LARGE = 1e9
"""From here on, adding or subtracting 1 under a square root changes nothing."""


@device
def half_exp(x: Vector) -> Vector:
    """Return e**x / 2 for x >= 0; infinite only if the result overflows."""
    x = vmin(x, 89.6)
    n = vround(x * LOG2_E)
    p = exp_fraction(vfma(n, -LN2_LOW, vfma(n, -LN2_HIGH, x)))
    quarter = vexp2i(n - 2.0)
    return vfma(p, quarter, quarter) * 2.0


@device
def vsinh(x: Vector) -> Vector:
    """Return the hyperbolic sine; 1.7 ulp."""
    size, square = vabs(x), x * x
    p = vfma(square, 2.81695134e-06, 0.000198361595)
    p = vfma(p, square, 0.0083333496)
    p = vfma(p, square, 0.166666672)
    half = half_exp(size)
    return vselect(vgt(size, 1.0), copy_sign(half - 0.25 / half, x), vfma(p * square, x, x))


@device
def vcosh(x: Vector) -> Vector:
    """Return the hyperbolic cosine; 1.5 ulp."""
    half = half_exp(vabs(x))
    return half + 0.25 / half


@exact_device
def vlog1p(x: Vector) -> Vector:
    """Return log(1 + x); 1.7 ulp. -1 gives -inf, less gives NaN."""
    sum_ = x + 1.0
    lost = (x - (sum_ - 1.0)) / sum_
    y = vlog(sum_)
    return vselect(vlt(vabs(y), INFINITY), y + lost, y)


@device
def vasinh(x: Vector) -> Vector:
    """Return the inverse hyperbolic sine; 2.4 ulp."""
    size = vabs(x)
    square = size * size
    inner = vlog1p(size + square / (vsqrt(square + 1.0) + 1.0))
    y = vselect(vgt(size, LARGE), vlog(size) + LN2, inner)
    return copy_sign(y, x)


@exact_device
def vacosh(x: Vector) -> Vector:
    """Return the inverse hyperbolic cosine; 2.1 ulp. Below 1 it is NaN."""
    above = x - 1.0
    square = vfma(above, above, above + above)
    root = vsqrt(square)
    sum_ = above + root
    lost = root - (sum_ - above) + vfma(-root, root, square) / vmax(root + root, MIN_NORMAL)
    y = vlog1p(sum_) + lost / (sum_ + 1.0)
    y = vselect(vgt(x, LARGE), vlog(x) + LN2, y)
    return vselect(vlt(x, 1.0), vsplat(float("nan")), y)


@device
def vatanh(x: Vector) -> Vector:
    """Return the inverse hyperbolic tangent; 2.7 ulp. -1 and 1 are infinite, beyond them it is NaN."""
    size = vabs(x)
    y = vlog1p((size + size) / (1.0 - size)) * 0.5
    return copy_sign(y, x)
