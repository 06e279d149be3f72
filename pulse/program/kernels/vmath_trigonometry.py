"""The tangent and the inverse trigonometric functions of 16 lanes; see ``vmath``."""

from pulse.jit.language.simd import (
    Vector,
    vabs,
    vbits,
    veq,
    vfma,
    vfrombits,
    vgt,
    vlt,
    vselect,
    vsplat,
    vsqrt,
)
from pulse.jit.registry import device, exact_device
from pulse.program.kernels.vmath import vcos, vsin

HALF_PI, HALF_PI_LOW = 1.5707963705062866, -4.371138828673793e-08
"""pi/2 as a sum of two f32 numbers."""
SIGN = -0x80000000
"""The sign bit of a lane."""
TAN_EIGHTH_PI, TAN_THREE_EIGHTHS_PI = 0.414213568, 2.41421366
"""tan(pi/8) and tan(3*pi/8), the limits of the three parts of the arctangent."""


@device
def vtan(x: Vector) -> Vector:
    """Return the tangent; 3.3 ulp up to pi. Beyond 1e5 the error grows with x."""
    return vsin(x) / vcos(x)


@device
def copy_sign(size: Vector, x: Vector) -> Vector:
    """Return ``size``, which is not negative, with the sign of x, also of -0.0."""
    return vfrombits(vbits(size) | (vbits(x) & SIGN))


@exact_device
def vatan(x: Vector) -> Vector:
    """Return the arctangent; 1.9 ulp."""
    size = vabs(x)
    steep, middle = vgt(size, TAN_THREE_EIGHTHS_PI), vgt(size, TAN_EIGHTH_PI)
    over = vselect(steep, vsplat(-1.0), vselect(middle, size - 1.0, size))
    under = vselect(steep, size, vselect(middle, size + 1.0, vsplat(1.0)))
    turn = vselect(steep, vsplat(1.0), vselect(middle, vsplat(0.5), vsplat(0.0)))
    return copy_sign(turned_atan(over / under, turn), x)


@exact_device
def turned_atan(z: Vector, turn: Vector) -> Vector:
    """Return the arctangent of z, at most tan(pi/8) in size, plus ``turn`` quarters of a circle."""
    square = z * z
    p = vfma(square, -0.0607798956, 0.105937265)
    p = vfma(p, square, -0.142435223)
    p = vfma(p, square, 0.199984714)
    p = vfma(p, square, -0.333333164)
    rest = vfma(p * square, z, turn * HALF_PI_LOW)
    return vfma(turn, HALF_PI, z + rest)


@exact_device
def vatan2(y: Vector, x: Vector) -> Vector:
    """Return the angle of the point (x, y), from -pi to pi; 2.3 ulp. A zero has no sign."""
    rise, run = vabs(y), vabs(x)
    equal = veq(rise, run) & vgt(rise, 0.0)
    steep, middle = vgt(rise * TAN_EIGHTH_PI, run), vgt(rise, run * TAN_EIGHTH_PI) | equal
    difference, half_sum = vselect(equal, vsplat(0.0), (rise - run) * 0.5), rise * 0.5 + run * 0.5
    over = vselect(steep, -run, vselect(middle, difference, rise))
    under = vselect(steep, rise, vselect(middle, half_sum, vselect(veq(run, 0.0), vsplat(1.0), run)))
    turn = vselect(steep, vsplat(1.0), vselect(middle, vsplat(0.5), vsplat(0.0)))
    z, left = over / under, vlt(x, 0.0)
    angle = turned_atan(vselect(left, -z, z), vselect(left, 2.0 - turn, turn))
    return vselect(vlt(y, 0.0), -angle, angle)


@device
def asin_part(x: Vector) -> Vector:
    """Return (asin(x) - x) / x for 0 <= x <= 1/2."""
    square = x * x
    p = vfma(square, 0.0421663262, 0.0241795052)
    p = vfma(p, square, 0.0454703793)
    p = vfma(p, square, 0.0749529749)
    return vfma(p, square, 0.166667521) * square


@exact_device
def vasin(x: Vector) -> Vector:
    """Return the arcsine; 2.4 ulp. Beyond -1 and 1 it is NaN."""
    size = vabs(x)
    outer = vgt(size, 0.5)
    z = vselect(outer, vsqrt(vfma(size, -0.5, 0.5)), size)
    y = vfma(asin_part(z), z, z)
    y = vselect(outer, vfma(y, -2.0, HALF_PI_LOW) + HALF_PI, y)
    return copy_sign(y, x)


@exact_device
def vacos(x: Vector) -> Vector:
    """Return the arccosine; 1.2 ulp. Beyond -1 and 1 it is NaN."""
    size = vabs(x)
    outer = vgt(size, 0.5)
    z = vselect(outer, vsqrt(vfma(size, -0.5, 0.5)), size)
    y = vfma(asin_part(z), z, z)
    twice = y + y
    right = vselect(outer, twice, HALF_PI - (y - HALF_PI_LOW))
    left = vselect(outer, 2.0 * HALF_PI - (twice - 2.0 * HALF_PI_LOW), HALF_PI + (y + HALF_PI_LOW))
    return vselect(vlt(x, 0.0), left, right)
