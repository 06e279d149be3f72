# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false
"""``half_dots`` for numba: one instruction for two products and for rounding if the processor has AVX512-BF16.

LLVM converts these calls of its older versions, whose operands are vectors of int32 and int16.
"""

from numba.core import types

from pulse.jit import half_dots
from pulse.jit.pointer_codegen import PointerType
from pulse.jit.processor import has_features
from pulse.jit.simd_codegen import FLOATS, FLOATS_LL, INTS, INTS_LL, call, constant, fused, lowers
from pulse.jit.simd_memory_codegen import HALVES_LL, vector_pointer

HALF_POINTER = PointerType(types.uint16)


def is_fast() -> bool:
    """Whether the target processor has instructions for both functions."""
    return has_features("avx512bf16")


@lowers(half_dots.vdot_halves, FLOATS, FLOATS, INTS, INTS)
def _dot(builder, total, a, b):
    if is_fast():
        return call(builder, "llvm.x86.avx512bf16.dpbf16ps.512", FLOATS_LL, total, a, b)
    (first_a, second_a), (first_b, second_b) = halves(builder, a), halves(builder, b)
    return fused(builder, first_a, first_b, fused(builder, second_a, second_b, total))


def halves(builder, pairs):
    """Build the floats of both halves."""
    first = builder.shl(pairs, constant(INTS_LL, 16))
    second = builder.and_(pairs, constant(INTS_LL, -(1 << 16)))
    return builder.bitcast(first, FLOATS_LL), builder.bitcast(second, FLOATS_LL)


@lowers(half_dots.vstore_halves, types.none, HALF_POINTER, types.int64, FLOATS)
def _store(builder, p, i, v):
    where = vector_pointer(builder, p, i, HALVES_LL)
    if is_fast():
        nearest = call(builder, "llvm.x86.avx512bf16.cvtneps2bf16.512", HALVES_LL, v)
    else:
        nearest = builder.trunc(nearest_bits(builder, v), HALVES_LL)
    builder.store(nearest, where, align=2)


def nearest_bits(builder, v):
    """Build the bits of the nearest bfloat16 in the lower half of each lane."""
    bits, shift = builder.bitcast(v, INTS_LL), constant(INTS_LL, 16)
    upper = builder.lshr(bits, shift)
    half = builder.add(constant(INTS_LL, 0x7FFF), builder.and_(upper, constant(INTS_LL, 1)))
    rounded = builder.lshr(builder.add(bits, half), shift)
    quiet = builder.or_(upper, constant(INTS_LL, 0x40))
    return builder.select(builder.fcmp_unordered("uno", v, v), quiet, rounded)
