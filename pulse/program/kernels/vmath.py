"""Functions of 16 float32 lanes: polynomials without branches.

The errors are in ulp of the f32 result: the largest ones of dense sweeps over all f32 numbers (the table in
docs/kernels.md, which tests check). NaN always gives NaN; infinities give the limits. Denormal results may lose bits or
be 0.
"""

from pulse.jit.language.simd import (
    BIASED,
    Vector,
    vabs,
    vbits,
    veq,
    vexp2_biased,
    vexp2i,
    vexponent,
    vfloor,
    vfma,
    vfrombits,
    vgt,
    vlt,
    vmantissa,
    vmax,
    vmin,
    vne,
    vnonzero,
    vproduct_biased,
    vround,
    vselect,
    vsplat,
    vtoint,
)
from pulse.jit.registry import device, exact_device
from pulse.ops.elementwise_functions import ERFC_TAIL

INFINITY = float("inf")
LOG2_E = 1.44269504
LN2, LN2_HIGH, LN2_LOW = 0.6931471805599453, 0.6931471824645996, -1.9046542121259336e-09
"""ln 2, and the same as a sum of two f32 numbers."""
MIN_NORMAL = 1.1754944e-38
"""The smallest normal number."""
MIN_EXPONENT, MAX_EXPONENT = -87.33654, 88.72283
"""The arguments between which the result of exp is a normal number."""
TWO_OVER_PI = 0.636619772
HALF_PI_1, HALF_PI_2, HALF_PI_3 = 1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15
"""pi/2 as a sum of three f32 numbers."""


@device
def exp_fraction(r: Vector) -> Vector:
    """Return exp(r) - 1 for |r| <= ln(2)/2."""
    square = r * r
    upper, lower = vfma(r, 0.00836654714, 0.0416672007), vfma(r, 0.166665434, 0.499999981)
    p = vfma(vfma(square, 0.00138825163, upper), square, lower)
    return vfma(p, square, r)


@device
def vexp(x: Vector) -> Vector:
    """Return e**x; 1.1 ulp. 0 if it would be denormal."""
    n = vround(x * LOG2_E)
    p = exp_fraction(vfma(n, -LN2_LOW, vfma(n, -LN2_HIGH, x)))
    y = vfrombits(vbits(p + 1.0) + (vtoint(n) << 23))  # times 2**n
    y = vselect(vgt(x, MAX_EXPONENT), vsplat(INFINITY), y)
    return vselect(vlt(x, MIN_EXPONENT), vsplat(0.0), y)


@device
def vexpm1(x: Vector) -> Vector:
    """Return e**x - 1; 1.6 ulp."""
    x = vmin(vmax(x, -30.0), 89.0)
    n = vround(x * LOG2_E)
    p = exp_fraction(vfma(n, -LN2_LOW, vfma(n, -LN2_HIGH, x)))
    half = vfloor(n * 0.5)
    rest = n - half
    scale = vexp2i(half)
    return vfma(p, scale, scale - vexp2i(-rest)) * vexp2i(rest)


@device
def vexpm1_negative(x: Vector) -> Vector:
    """Return e**x - 1 for x <= 0, and NaN for NaN; 1.0 ulp. Undefined for x > 0."""
    x = vmax(x, -30.0)
    n = vproduct_biased(x, LOG2_E)
    p, scale = exp_fraction(vfma(n - BIASED, -LN2_HIGH, x)), vexp2_biased(n)
    return vfma(p, scale, scale - 1.0)


@device
def log_polynomial(f: Vector) -> Vector:
    """Return (log(1 + f) - f + f**2 / 2) / f**3 for sqrt(1/2) <= 1 + f <= sqrt(2)."""
    p = vfma(f, 0.0674772876, -0.116775152)
    p = vfma(p, f, 0.118886974)
    p = vfma(p, f, -0.124053402)
    p = vfma(p, f, 0.14219453)
    p = vfma(p, f, -0.166680052)
    p = vfma(p, f, 0.200021235)
    p = vfma(p, f, -0.250000095)
    return vfma(p, f, 0.333333125)


@device
def vlog(x: Vector) -> Vector:
    """Return the natural logarithm; 1.2 ulp. 0 gives -inf, less gives NaN."""
    small = vlt(x, MIN_NORMAL)
    scaled = vselect(small, x * 8388608.0, x)
    e = vexponent(scaled) - vselect(small, vsplat(23.0), vsplat(0.0))
    m = vmantissa(scaled)
    upper = vgt(m, 1.41421354)
    f = vselect(upper, m * 0.5, m) - 1.0
    e = vselect(upper, e + 1.0, e)
    square = f * f
    p = vfma(log_polynomial(f) * f, square, vfma(square, -0.5, e * LN2_LOW))
    y = vfma(e, LN2_HIGH, f + p)
    y = vselect(vlt(x, INFINITY), y, x)  # inf and NaN are their own logarithms
    return vselect(vgt(x, 0.0), y, vselect(vlt(x, 0.0), vsplat(float("nan")), vsplat(-INFINITY) + x))


@device
def vpow(x: Vector, y: Vector) -> Vector:
    """Return x**y; 1 + 0.6 * |y| ulp. For negative x, y must be whole (else NaN); special cases as in C's ``pow``."""
    size = vabs(x)
    small = vlt(size, MIN_NORMAL)
    scaled = vselect(small, size * 8388608.0, size)
    e = vexponent(scaled) - vselect(small, vsplat(23.0), vsplat(0.0))
    m = vmantissa(scaled)
    upper = vgt(m, 1.41421354)
    f = vselect(upper, m * 0.5, m) - 1.0
    e = vselect(upper, e + 1.0, e)
    bounded = vmin(vmax(y, -1e30), 1e30)
    square = f * f
    log2 = (f + vfma(log_polynomial(f) * f, square, square * -0.5)) * LOG2_E
    n = vround(vmin(vmax(vfma(bounded, log2, bounded * e), -151.0), 129.0))
    left = vmin(vmax(vfma(bounded, log2, vfma(bounded, e, -n)), -1.0), 1.0)
    p = exp_fraction(left * LN2)
    half = vfloor(n * 0.5)
    scale = vexp2i(half)
    power = vfma(p, scale, scale) * vexp2i(n - half)
    nothing = veq(size, 0.0)
    power = vselect(nothing, vselect(vlt(y, 0.0), vsplat(INFINITY), vsplat(0.0)), power)
    endless = veq(size, INFINITY)
    power = vselect(endless, vselect(vlt(y, 0.0), vsplat(0.0), vsplat(INFINITY)), power)
    halves = y * 0.5
    odd = veq(vround(y), y) & vne(vfloor(halves), halves)
    below = vselect(odd, -power, vselect(veq(vround(y), y) | endless | nothing, power, vsplat(float("nan"))))
    power = vselect(vlt(x, 0.0) | nothing & vlt(1.0 / x, 0.0), below, power)  # for -0.0 too
    power = vselect(vne(x, x) | vne(y, y), x + y, power)
    return vselect(veq(y, 0.0) | veq(x, 1.0), vsplat(1.0), power)


@device
def log1p_unit(x: Vector) -> Vector:
    """Return log(1 + x) for 0 <= x <= 1; 3.2 ulp."""
    p = vfma(x, 0.00341728521, 0.238157629)
    p = vfma(p, x, 1.06621864)
    q = vfma(x, 0.0752873251, 0.687936476)
    q = vfma(q, x, 1.56621851)
    return x * vfma(p, x, 1.0) / vfma(q, x, 1.0)


@device
def vsoftplus(x: Vector) -> Vector:
    """Return log(1 + e**x); 3.6 ulp."""
    return vmax(x, 0.0) + log1p_unit(vexp(-vabs(x)))


@device
def vtanh(x: Vector) -> Vector:
    """Return the hyperbolic tangent; 2.5 ulp. Never beyond -1 and 1."""
    x = vmin(vmax(x, -10.0), 10.0) * 2.0
    n = vproduct_biased(x, LOG2_E)
    p, scale = exp_fraction(vfma(n - BIASED, -LN2_HIGH, x)), vexp2_biased(n)
    t = vfma(p, scale, scale - 1.0)
    return t / (t + 2.0)


@device
def vsigmoid(x: Vector) -> Vector:
    """Return 1 / (1 + e**-x); 2.3 ulp. 0 if it would be denormal."""
    y = vmax(-x, MIN_EXPONENT)
    n = vproduct_biased(y, LOG2_E)
    whole, scale = n - BIASED, vexp2_biased(n)
    p = exp_fraction(vfma(whole, -LN2_LOW, vfma(whole, -LN2_HIGH, y)))
    return vselect(vlt(x, MIN_EXPONENT), vsplat(0.0), 1.0 / vfma(p, scale, scale + 1.0))


@device
def vmish(x: Vector) -> Vector:
    """Return ``x * tanh(log(1 + e**x))``; 3.6 ulp from -87 up, 0 below."""
    e = vexp(vmin(x, 20.0))
    n = vfma(e, e, e + e)
    return vselect(vgt(x, 20.0), x, x * n / (n + 2.0))


@device
def vsign(x: Vector) -> Vector:
    """Return -1, 0 or 1; NaN for NaN."""
    return vselect(vgt(x, 0.0), vsplat(1.0), vselect(vlt(x, 0.0), vsplat(-1.0), x))


@device
def verf(x: Vector) -> Vector:
    """Return the error function; 5 ulp. Never beyond -1 and 1."""
    z = x * x
    p = vfma(z, -1.28579458e-08, 4.62005272e-06)
    p = vfma(p, z, 0.000377167469)
    p = vfma(p, z, 0.00384029739)
    p = vfma(p, z, 0.0542547489)
    p = vfma(p, z, 0.185147782)
    p = vfma(p, z, 1.12837917)
    q = vfma(z, 6.25008155e-05, 0.00130241032)
    q = vfma(q, z, 0.0154348475)
    q = vfma(q, z, 0.113886986)
    q = vfma(q, z, 0.497416357)
    y = vmin(vmax(x * (p / vfma(q, z, 1.0)), -1.0), 1.0)
    return vselect(vlt(vabs(x), 3.83), y, vsign(x))


@exact_device
def verfc(x: Vector) -> Vector:
    """Return 1 - erf(x); 5.3 ulp. 0 if it would be denormal."""
    size = vmin(vmax(x, 0.5), 10.0)
    t = 1.0 / (size * 0.5 + 1.0)
    p = vfma(t, ERFC_TAIL[0], ERFC_TAIL[1])
    p = vfma(p, t, ERFC_TAIL[2])
    p = vfma(p, t, ERFC_TAIL[3])
    p = vfma(p, t, ERFC_TAIL[4])
    p = vfma(p, t, ERFC_TAIL[5])
    p = vfma(p, t, ERFC_TAIL[6])
    p = vfma(p, t, ERFC_TAIL[7])
    p = vfma(p, t, ERFC_TAIL[8])
    square = size * size
    lost = vfma(size, size, -square)
    tail = vfma(-lost, p, p) * t * vexp(-square)
    return vselect(vlt(x, 0.5), 1.0 - verf(x), tail)


@device
def quarter_wave(x: Vector, quarters: int) -> Vector:
    """Return sin(x + quarters * pi/2)."""
    n = vround(x * TWO_OVER_PI)
    r = vfma(n, -HALF_PI_3, vfma(n, -HALF_PI_2, vfma(n, -HALF_PI_1, x)))
    z = r * r
    s = vfma(z, -0.00019514632, 0.00833215605)
    s = vfma(s, z, -0.166666545)
    s = vfma(s * z, r, r)
    c = vfma(z, 2.44324129e-05, -0.00138873099)
    c = vfma(c, z, 0.0416666456)
    c = vfma(c * z, z, vfma(z, -0.5, 1.0))
    quadrant = vtoint(n) + quarters
    y = vselect(vnonzero(quadrant & 1), c, s)
    return vselect(vnonzero(quadrant & 2), -y, y)


@device
def vsin(x: Vector) -> Vector:
    """Return the sine; up to 1e5 within 1.5e-7, and 1.5 ulp up to pi. Beyond 1e5 the error grows with x."""
    return quarter_wave(x, 0)


@device
def vcos(x: Vector) -> Vector:
    """Return the cosine; up to 1e5 within 1.5e-7, and 1.6 ulp up to 1.5. Beyond 1e5 the error grows with x."""
    return quarter_wave(x, 1)
