# pyright: basic, reportArgumentType=false
"""``simd`` for numba: LLVM vectors of 16 lanes; each function is generated inline.

Explicit 16-lane vectors become one zmm register with AVX-512, two ymm with AVX2, four q with NEON.
"""

import operator
from collections.abc import Callable

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import signature
from numba.extending import lower_builtin, lower_cast, models, register_model

from pulse.jit.codegen.pointer import declare_type
from pulse.jit.language import simd
from pulse.jit.language.simd import LANES
from pulse.jit.processor import has_fma, has_rounding

BIT, INT32, INT64, FLOAT32 = ir.IntType(1), ir.IntType(32), ir.IntType(64), ir.FloatType()
FLOATS_LL, INTS_LL, MASK_LL = (ir.VectorType(element, LANES) for element in (FLOAT32, INT32, BIT))


class LanesType(types.Type):
    """Sixteen lanes of one kind."""

    def __init__(self, kind: str, data: ir.Type) -> None:
        self.data = data
        super().__init__(name=f"Vector({kind})")


@register_model(LanesType)
class LanesModel(models.PrimitiveModel):
    """The LLVM vector."""

    def __init__(self, dmm, fe_type) -> None:
        super().__init__(dmm, fe_type, fe_type.data)


FLOATS = LanesType("float32", FLOATS_LL)
INTS = LanesType("int32", INTS_LL)
MASK = LanesType("bool", MASK_LL)


def constant(data: ir.VectorType, values):
    """Return an LLVM vector constant; one value is repeated."""
    values = values if isinstance(values, list) else [values] * LANES
    return ir.Constant(data, [ir.Constant(data.element, value) for value in values])


def splat(builder, scalar, data: ir.VectorType):
    """Broadcast a scalar to every lane."""
    vector = builder.insert_element(ir.Constant(data, ir.Undefined), scalar, INT32(0))
    return builder.shuffle_vector(vector, ir.Constant(data, ir.Undefined), constant(INTS_LL, 0))


@lower_cast(types.Number, FLOATS)
@lower_cast(types.Number, INTS)
def _splat_number(context, builder, fromty, toty, value):
    element = types.float32 if toty == FLOATS else types.int32
    return splat(builder, context.cast(builder, value, fromty, element), toty.data)


def accepts(actual: types.Type, expected: types.Type) -> bool:
    """Return whether an argument has the expected type or is a number that converts to it."""
    if actual == expected:
        return True
    if isinstance(expected, LanesType):
        return expected != MASK and isinstance(actual, types.Integer if expected == INTS else types.Number)
    return isinstance(expected, types.Number) and isinstance(actual, types.Number)


def defines(function: Callable, result: types.Type, *arguments: types.Type, lanes_needed: bool = False):
    """Make a decorator: ``build(builder, *values)`` defines ``function`` for these argument types.

    ``lanes_needed``: at least one argument must be lanes (for operators, which numbers have too).
    """

    def resolve(actual):
        fits = (
            len(actual) == len(arguments)
            and all(map(accepts, actual, arguments))
            and (not lanes_needed or any(isinstance(kind, LanesType) for kind in actual))
        )
        return signature(result, *arguments) if fits else None

    def register(build: Callable) -> Callable:
        declare_type(function, resolve)

        @lower_builtin(function, *arguments)
        def _build(context, builder, sig, args):
            value = build(builder, *args)
            return context.get_dummy_value() if result == types.none else value

        return build

    return register


def call(builder, name: str, result: ir.Type, *args, flags: tuple[str, ...] = ()):
    """Call an LLVM intrinsic by its full name."""
    function = builder.module.globals.get(name)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(result, [arg.type for arg in args]), name)
    return builder.call(function, args, fastmath=flags)


# construction


defines(simd.vsplat, FLOATS, types.float32)(lambda builder, x: splat(builder, x, FLOATS_LL))


defines(simd.vzero, FLOATS)(lambda builder: constant(FLOATS_LL, 0.0))


defines(simd.vindex, FLOATS)(lambda builder: constant(FLOATS_LL, [float(lane) for lane in range(LANES)]))


# arithmetic

Builder = ir.IRBuilder

for _operator, _in_place, _build in (
    (operator.add, operator.iadd, Builder.fadd),
    (operator.sub, operator.isub, Builder.fsub),
    (operator.mul, operator.imul, Builder.fmul),
    (operator.truediv, operator.itruediv, Builder.fdiv),
):
    defines(_operator, FLOATS, FLOATS, FLOATS, lanes_needed=True)(_build)
    defines(_in_place, FLOATS, FLOATS, FLOATS, lanes_needed=True)(_build)

for _operator, _build in (
    (operator.add, Builder.add),
    (operator.sub, Builder.sub),
    (operator.mul, Builder.mul),
    (operator.and_, Builder.and_),
    (operator.or_, Builder.or_),
    (operator.xor, Builder.xor),
    (operator.lshift, Builder.shl),
    (operator.rshift, Builder.ashr),
):
    defines(_operator, INTS, INTS, INTS, lanes_needed=True)(_build)

defines(operator.and_, MASK, MASK, MASK)(Builder.and_)
defines(operator.or_, MASK, MASK, MASK)(Builder.or_)
defines(operator.invert, MASK, MASK)(Builder.not_)
defines(operator.neg, FLOATS, FLOATS, lanes_needed=True)(Builder.fneg)

for _function, _name in ((simd.vabs, "fabs"), (simd.vsqrt, "sqrt")):
    defines(_function, FLOATS, FLOATS)(
        lambda builder, v, name=f"llvm.{_name}.v16f32": call(builder, name, FLOATS_LL, v)
    )


def _round(builder, v, towards: str | None):
    """Round to the nearest integer, ties to even; "<": down, ">": up.

    It converts to int32: numbers from 2**23 on are whole.
    """
    size, limit = call(builder, "llvm.fabs.v16f32", FLOATS_LL, v), constant(FLOATS_LL, 2.0**23)
    number = builder.fptosi(v, INTS_LL)
    whole = builder.sitofp(number, FLOATS_LL)
    if towards is None:
        left, half = (
            call(builder, "llvm.fabs.v16f32", FLOATS_LL, builder.fsub(v, whole)),
            constant(FLOATS_LL, 0.5),
        )
        odd = builder.trunc(number, MASK_LL)
        wrong = builder.or_(
            builder.fcmp_ordered(">", left, half), builder.and_(builder.fcmp_ordered("==", left, half), odd)
        )
        step = call(builder, "llvm.copysign.v16f32", FLOATS_LL, constant(FLOATS_LL, 1.0), v)
    else:
        wrong = builder.fcmp_ordered(">" if towards == "<" else "<", whole, v)
        step = constant(FLOATS_LL, -1.0 if towards == "<" else 1.0)
    whole = builder.select(wrong, builder.fadd(whole, step), whole)
    whole = call(builder, "llvm.copysign.v16f32", FLOATS_LL, whole, v)
    return builder.select(builder.fcmp_ordered("<", size, limit), whole, v)


def _round_towards(builder, v, name: str, towards: str | None):
    return (
        call(builder, f"llvm.{name}.v16f32", FLOATS_LL, v) if has_rounding() else _round(builder, v, towards)
    )


@defines(simd.vround, FLOATS, FLOATS)
def _nearest(builder, v):
    return _round_towards(builder, v, "rint", None)


for _function, _name, _towards in ((simd.vfloor, "floor", "<"), (simd.vceil, "ceil", ">")):
    defines(_function, FLOATS, FLOATS)(
        lambda builder, v, name=_name, towards=_towards: _round_towards(builder, v, name, towards)
    )


@defines(simd.vfma, FLOATS, FLOATS, FLOATS, FLOATS)
def fused_product(builder, a, b, c):
    """Build ``a * b + c``, rounded once if the processor can."""
    if not has_fma():
        return builder.fadd(builder.fmul(a, b), c)
    return call(builder, "llvm.fma.v16f32", FLOATS_LL, a, b, c)


@defines(simd.vfma_half, FLOATS, FLOATS, FLOATS, FLOATS)
def _fma_half(builder, a, b, c):
    half = LANES // 2
    lanes = ir.Constant(ir.VectorType(INT32, half), list(range(half)))
    a, b, c = (builder.shuffle_vector(v, v, lanes) for v in (a, b, c))
    if has_fma():
        sums = call(builder, f"llvm.fma.v{half}f32", ir.VectorType(FLOAT32, half), a, b, c)
    else:
        sums = builder.fadd(builder.fmul(a, b), c)
    anything = ir.Constant(sums.type, ir.Undefined)
    return builder.shuffle_vector(sums, anything, constant(INTS_LL, list(range(LANES))))


def extreme(builder, a, b, comparison: str):
    """Build the smaller ("<") or larger (">") of a and b; NaN if either is NaN."""
    first = builder.select(builder.fcmp_ordered(comparison, b, a), b, a)
    return builder.select(builder.fcmp_unordered("uno", b, b), b, first)


defines(simd.vmin, FLOATS, FLOATS, FLOATS)(lambda builder, a, b: extreme(builder, a, b, "<"))


defines(simd.vmax, FLOATS, FLOATS, FLOATS)(lambda builder, a, b: extreme(builder, a, b, ">"))


# comparisons and masks

for _function, _sign in (
    (simd.vlt, "<"),
    (simd.vle, "<="),
    (simd.vgt, ">"),
    (simd.vge, ">="),
    (simd.veq, "=="),
):
    defines(_function, MASK, FLOATS, FLOATS)(
        lambda builder, a, b, sign=_sign: builder.fcmp_ordered(sign, a, b)
    )


defines(simd.vne, MASK, FLOATS, FLOATS)(lambda builder, a, b: builder.fcmp_unordered("!=", a, b))


defines(simd.vselect, FLOATS, MASK, FLOATS, FLOATS)(Builder.select)


defines(simd.vnonzero, MASK, INTS)(lambda builder, v: builder.icmp_signed("!=", v, constant(INTS_LL, 0)))


# across the lanes

for _function, _width, _by in (
    (simd.vrotate_fours, 4, 1),
    (simd.vrotate_eights, 8, 1),
    (simd.vrotate_by_two, LANES, 2),
    (simd.vrotate_by_four, LANES, 4),
    (simd.vrotate_by_eight, LANES, 8),
):
    defines(_function, FLOATS, FLOATS)(
        lambda builder, v, width=_width, by=_by: builder.shuffle_vector(
            v, v, constant(INTS_LL, [i - i % width + (i + by) % width for i in range(LANES)])
        )
    )


@defines(simd.vadd_pairs, FLOATS, FLOATS, FLOATS)
def _add_pairs(builder, a, b):
    left, right = (
        builder.shuffle_vector(a, b, constant(INTS_LL, list(range(first, 2 * LANES, 2)))) for first in (0, 1)
    )
    return builder.fadd(left, right)


defines(simd.vdeinterleave_even, FLOATS, FLOATS, FLOATS)(
    lambda builder, a, b: builder.shuffle_vector(a, b, constant(INTS_LL, list(range(0, 2 * LANES, 2))))
)


for _function, _first in ((simd.vinterleave_first, 0), (simd.vinterleave_second, LANES // 2)):
    defines(_function, FLOATS, FLOATS, FLOATS)(
        lambda builder, a, b, first=_first: builder.shuffle_vector(
            a, b, constant(INTS_LL, [first + lane // 2 + lane % 2 * LANES for lane in range(LANES)])
        )
    )


def reduce_lanes(builder, v, combine: Callable):
    """Reduce 16 lanes to one by halves."""
    width = LANES
    while width > 1:
        width //= 2
        low, high = (
            builder.shuffle_vector(v, v, ir.Constant(ir.VectorType(INT32, width), lanes))
            for lanes in (list(range(width)), list(range(width, 2 * width)))
        )
        v = combine(low, high)
    return builder.extract_element(v, INT32(0))


defines(simd.vsum, types.float32, FLOATS)(lambda builder, v: reduce_lanes(builder, v, builder.fadd))


defines(simd.vmin_across, types.float32, FLOATS)(
    lambda builder, v: reduce_lanes(builder, v, lambda a, b: extreme(builder, a, b, "<"))
)


defines(simd.vmax_across, types.float32, FLOATS)(
    lambda builder, v: reduce_lanes(builder, v, lambda a, b: extreme(builder, a, b, ">"))
)


# bits


@defines(simd.vtoint, INTS, FLOATS)
def _toint(builder, v):
    return builder.fptosi(v, INTS_LL)


@defines(simd.vtofloat, FLOATS, INTS)
def _tofloat(builder, v):
    return builder.sitofp(v, FLOATS_LL)


@defines(simd.vbits, INTS, FLOATS)
def _bits(builder, v):
    return builder.bitcast(v, INTS_LL)


@defines(simd.vfrombits, FLOATS, INTS)
def _frombits(builder, v):
    return builder.bitcast(v, FLOATS_LL)


@defines(simd.vproduct_biased, FLOATS, FLOATS, FLOATS)
def _product_biased(builder, a, b):
    """One fused product rounds; LLVM may reorder sums that are not one, so these round first."""
    bias = constant(FLOATS_LL, simd.BIASED)
    if has_fma():
        return fused_product(builder, a, b, bias)
    return builder.fadd(_nearest(builder, builder.fmul(a, b)), bias)


defines(simd.vexp2_biased, FLOATS, FLOATS)(
    lambda builder, v: _frombits(builder, builder.shl(_bits(builder, v), constant(INTS_LL, 23)))
)


@defines(simd.vexp2i, FLOATS, FLOATS)
def _exp2i(builder, v):
    biased = builder.add(_toint(builder, v), constant(INTS_LL, 127))
    return _frombits(builder, builder.shl(biased, constant(INTS_LL, 23)))


@defines(simd.vexponent, FLOATS, FLOATS)
def _exponent(builder, v):
    biased = builder.and_(builder.lshr(_bits(builder, v), constant(INTS_LL, 23)), constant(INTS_LL, 255))
    return _tofloat(builder, builder.sub(biased, constant(INTS_LL, 127)))


@defines(simd.vmantissa, FLOATS, FLOATS)
def _mantissa(builder, v):
    fraction = builder.and_(_bits(builder, v), constant(INTS_LL, 0x7FFFFF))
    return _frombits(builder, builder.or_(fraction, constant(INTS_LL, 0x3F800000)))
