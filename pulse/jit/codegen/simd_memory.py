# pyright: basic, reportArgumentType=false
"""Loads and stores of ``simd`` for numba: whole vectors, parts of them, and elements of 16 and 8 bits as floats."""

from llvmlite import ir
from numba.core import types

from pulse.jit.codegen.pointer import PointerType
from pulse.jit.codegen.simd import (
    FLOAT32,
    FLOATS,
    FLOATS_LL,
    INT32,
    INT64,
    INTS_LL,
    call,
    constant,
    defines,
    splat,
)
from pulse.jit.language import simd
from pulse.jit.language.simd import LANES
from pulse.jit.processor import has_f16, has_masks

ROW_OF_HALVES_LL = ir.VectorType(ir.IntType(16), LANES)
FLOAT_POINTER, INT8_POINTER = PointerType(types.float32), PointerType(types.int8)
F16_POINTER, BF16_POINTER = PointerType(types.int16), PointerType(types.uint16)
"""Pointers to elements that are accessed as their bits."""


def vector_pointer(builder, p, i, data: ir.VectorType = FLOATS_LL):
    """Return the address of 16 elements from ``p[i]``."""
    return builder.bitcast(builder.gep(p, [i], inbounds=True), ir.PointerType(data))


def first_lanes(builder, n):
    """Build the mask of lanes below n, an int32."""
    return builder.icmp_signed("<", constant(INTS_LL, list(range(LANES))), splat(builder, n, INTS_LL))


@defines(simd.vload, FLOATS, FLOAT_POINTER, types.int64)
def _load(builder, p, i):
    return builder.load(vector_pointer(builder, p, i), align=4)


@defines(simd.vload, FLOATS, F16_POINTER, types.int64)
def _load_f16(builder, p, i):
    """Load float16: one instruction, or its emulation; both keep denormals."""
    halves = builder.load(vector_pointer(builder, p, i, ROW_OF_HALVES_LL), align=2)
    if has_f16():
        return builder.fpext(builder.bitcast(halves, ir.VectorType(ir.HalfType(), LANES)), FLOATS_LL)
    bits = builder.sext(halves, INTS_LL)
    magnitude = builder.and_(bits, constant(INTS_LL, 0x7FFF))
    normal = builder.add(builder.shl(magnitude, constant(INTS_LL, 13)), constant(INTS_LL, 112 << 23))
    small = builder.fmul(builder.sitofp(magnitude, FLOATS_LL), constant(FLOATS_LL, 2.0**-24))
    is_small = builder.icmp_signed("<", magnitude, constant(INTS_LL, 0x400))
    value = builder.select(is_small, builder.bitcast(small, INTS_LL), normal)
    sign = builder.and_(bits, constant(INTS_LL, -(1 << 31)))
    return builder.bitcast(builder.or_(value, sign), FLOATS_LL)


@defines(simd.vload, FLOATS, BF16_POINTER, types.int64)
def _load_bf16(builder, p, i):
    halves = builder.load(vector_pointer(builder, p, i, ROW_OF_HALVES_LL), align=2)
    bits = builder.shl(builder.zext(halves, INTS_LL), constant(INTS_LL, 16))
    return builder.bitcast(bits, FLOATS_LL)


def words_of_pairs(builder, p, i):
    """Load the 32 bits of each lane: two bf16, or four bytes."""
    return builder.load(vector_pointer(builder, p, i, INTS_LL), align=4)


@defines(simd.vload_first, FLOATS, BF16_POINTER, types.int64)
def _load_first_bf16(builder, p, i):
    bits = builder.shl(words_of_pairs(builder, p, i), constant(INTS_LL, 16))
    return builder.bitcast(bits, FLOATS_LL)


@defines(simd.vload_second, FLOATS, BF16_POINTER, types.int64)
def _load_second_bf16(builder, p, i):
    bits = builder.and_(words_of_pairs(builder, p, i), constant(INTS_LL, -(1 << 16)))
    return builder.bitcast(bits, FLOATS_LL)


@defines(simd.vload, FLOATS, INT8_POINTER, types.int64)
def _load_int8(builder, p, i):
    codes = builder.load(vector_pointer(builder, p, i, ir.VectorType(ir.IntType(8), LANES)), align=1)
    return builder.sitofp(builder.sext(codes, INTS_LL), FLOATS_LL)


for _pointer, _build in ((FLOAT_POINTER, _load), (F16_POINTER, _load_f16), (INT8_POINTER, _load_int8)):
    defines(simd.vload_first, FLOATS, _pointer, types.int64)(_build)
    defines(simd.vload_second, FLOATS, _pointer, types.int64)(
        lambda builder, p, i, build=_build: build(builder, p, builder.add(i, ir.Constant(INT64, LANES)))
    )


@defines(simd.vstore, types.none, FLOAT_POINTER, types.int64, FLOATS)
def _store(builder, p, i, v):
    builder.store(v, vector_pointer(builder, p, i), align=4)


@defines(simd.vload_part, FLOATS, FLOAT_POINTER, types.int64, types.int32)
def _load_part(builder, p, i, n):
    where, mask = vector_pointer(builder, p, i), first_lanes(builder, n)
    zero = constant(FLOATS_LL, 0.0)
    return call(builder, "llvm.masked.load.v16f32.p0", FLOATS_LL, where, INT32(4), mask, zero)


@defines(simd.vstore_part, types.none, FLOAT_POINTER, types.int64, types.int32, FLOATS)
def _store_part(builder, p, i, n, v):
    where = vector_pointer(builder, p, i)
    with builder.if_else(builder.icmp_signed(">=", n, INT32(LANES))) as (whole, part):
        with whole:  # without a mask: on some processors, loads must wait for a masked store to end
            builder.store(v, where, align=4)
        with part:
            if has_masks():
                mask = first_lanes(builder, n)
                call(builder, "llvm.masked.store.v16f32.p0", ir.VoidType(), v, where, INT32(4), mask)
            else:
                store_by_bits(builder, p, i, n, v)


def store_by_bits(builder, p, i, n, v):
    """Store the first n < 16 lanes without a mask: 8, 4, 2 and 1 of them, by the bits of n; none if it is negative."""
    n = builder.select(builder.icmp_signed("<", n, INT32(0)), INT32(0), n)
    width = LANES // 2
    while width:
        bit = builder.icmp_signed("!=", builder.and_(n, INT32(width)), INT32(0))
        low, high = (
            builder.shuffle_vector(
                v, v, ir.Constant(ir.VectorType(INT32, width), list(range(first, first + width)))
            )
            for first in (0, width)
        )
        with builder.if_then(bit):
            builder.store(low, vector_pointer(builder, p, i, ir.VectorType(FLOAT32, width)), align=4)
        v = builder.select(bit, high, low)
        i = builder.select(bit, builder.add(i, ir.Constant(INT64, width)), i)
        width //= 2


def chunks(builder, p, i, step, n, width: int):
    """Load vectors of ``width`` elements and join them; a missing one is read at the address of the last."""
    parts = []
    for part in range(LANES // width):
        index, last = ir.Constant(INT64, part), builder.sub(n, ir.Constant(INT64, 1))
        index = builder.select(builder.icmp_signed("<", index, n), index, last)
        offset = builder.add(i, builder.mul(index, step))
        parts.append(builder.load(vector_pointer(builder, p, offset, ir.VectorType(FLOAT32, width)), align=4))
    while len(parts) > 1:
        width *= 2
        lanes = ir.Constant(ir.VectorType(INT32, width), list(range(width)))
        parts = [builder.shuffle_vector(*pair, lanes) for pair in zip(parts[::2], parts[1::2])]
    return parts[0]


def duplicate(builder, p, i, width: int):
    """Return ``width`` elements, each repeated until all lanes are full."""
    elements = builder.load(vector_pointer(builder, p, i, ir.VectorType(FLOAT32, width)), align=4)
    return builder.shuffle_vector(
        elements, elements, constant(INTS_LL, [i * width // LANES for i in range(LANES)])
    )


@defines(simd.vbroadcast_twos, FLOATS, FLOAT_POINTER, types.int64)
def _broadcast_twos(builder, p, i):
    """Return two elements alternately: one load that repeats 64 bits."""
    pair = builder.load(vector_pointer(builder, p, i, ir.VectorType(FLOAT32, 2)), align=4)
    return builder.shuffle_vector(pair, pair, constant(INTS_LL, [i % 2 for i in range(LANES)]))


for _function, _width in ((simd.vload_fours, 4), (simd.vload_eights, 8)):
    defines(_function, FLOATS, FLOAT_POINTER, types.int64, types.int64, types.int64)(
        lambda builder, p, i, step, n, width=_width: chunks(builder, p, i, step, n, width)
    )


def store_chunks(builder, p, i, j, n, v, mask, width: int):
    """Store the first n groups of ``width`` lanes, each in its place from i or, by its bit of the mask, from j."""
    for group in range(LANES // width):
        lanes = list(range(group * width, (group + 1) * width))
        bit = builder.and_(mask, ir.Constant(INT64, 1 << group))
        base = builder.select(builder.icmp_signed("!=", bit, ir.Constant(INT64, 0)), j, i)
        offset = builder.add(base, ir.Constant(INT64, group * width))
        with builder.if_then(builder.icmp_signed("<", ir.Constant(INT64, group), n)):
            chunk = builder.shuffle_vector(v, v, ir.Constant(ir.VectorType(INT32, width), lanes))
            builder.store(chunk, vector_pointer(builder, p, offset, ir.VectorType(FLOAT32, width)), align=4)


for _function, _width in ((simd.vstore_fours, 4), (simd.vstore_eights, 8)):
    defines(_function, types.none, FLOAT_POINTER, types.int64, types.int64, types.int64, FLOATS, types.int64)(
        lambda builder, p, i, j, n, v, mask, width=_width: store_chunks(builder, p, i, j, n, v, mask, width)
    )


for _function, _width in ((simd.vduplicate_twos, 2), (simd.vduplicate_fours, 4)):
    defines(_function, FLOATS, FLOAT_POINTER, types.int64)(
        lambda builder, p, i, width=_width: duplicate(builder, p, i, width)
    )
