# pyright: basic, reportArgumentType=false
"""``dots`` for numba: one instruction for each sum of products if the processor has it.

LLVM converts the calls of AVX512-BF16 from its older versions, whose operands are int32 and int16 vectors.
"""

from llvmlite import ir
from numba.core import types

from pulse.jit.codegen.pointer import PointerType
from pulse.jit.codegen.simd import (
    BIT,
    FLOATS,
    FLOATS_LL,
    INT32,
    INT64,
    INTS,
    INTS_LL,
    call,
    constant,
    defines,
    fused_product,
)
from pulse.jit.codegen.simd_memory import BF16_POINTER, ROW_OF_HALVES_LL, vector_pointer, words_of_pairs
from pulse.jit.language import dots
from pulse.jit.language.dots import BYTES
from pulse.jit.language.simd import LANES
from pulse.jit.processor import has_features, processor

SIZE = BYTES * LANES
"""The bytes of a register."""
BYTES_LL = ir.VectorType(ir.IntType(8), SIZE)
HALVES_LL = ir.VectorType(ir.IntType(16), 2 * LANES)
NARROW_LL = ir.VectorType(ir.IntType(8), LANES)
BYTE_POINTER, CODE_POINTER = PointerType(types.uint8), PointerType(types.int8)
WORD_POINTER = PointerType(types.int32)


def is_fast() -> bool:
    """Return whether the target processor has instructions for the sums and for permutations of bytes."""
    return has_features("avx512vnni", "avx512vbmi")


defines(dots.has_byte_dots, types.boolean)(lambda builder: ir.Constant(BIT, int(is_fast())))


@defines(dots.vdot_bytes, INTS, INTS, INTS, INTS)
def _dot(builder, total, natural, signed):
    if is_fast():
        return call(builder, "llvm.x86.avx512.vpdpbusd.512", INTS_LL, total, natural, signed)
    first, second = (builder.bitcast(value, HALVES_LL) for value in (natural, signed))
    eight = ir.Constant(HALVES_LL, [ir.Constant(ir.IntType(16), 8)] * (2 * LANES))
    low_bytes = ir.Constant(HALVES_LL, [ir.Constant(ir.IntType(16), 255)] * (2 * LANES))
    low = pair_sums(builder, builder.and_(first, low_bytes), builder.ashr(builder.shl(second, eight), eight))
    high = pair_sums(builder, builder.lshr(first, eight), builder.ashr(second, eight))
    return builder.add(total, builder.add(low, high))


def pair_sums(builder, natural, signed):
    """Multiply pairs of bytes, 0 … 255 times -128 … 127, and add the two products of each lane."""
    if processor().triple.startswith("x86"):
        if has_features("avx512bw"):
            return call(builder, "llvm.x86.avx512.pmaddw.d.512", INTS_LL, natural, signed)
        name, count = ("llvm.x86.avx2.pmadd.wd", 2) if has_features("avx2") else ("llvm.x86.sse2.pmadd.wd", 4)
        size, result = 2 * LANES // count, ir.VectorType(INT32, LANES // count)
        parts = [
            call(
                builder,
                name,
                result,
                *(extract_lanes(builder, operand, part * size, size) for operand in (natural, signed)),
            )
            for part in range(count)
        ]
        while len(parts) > 1:
            width = parts[0].type.count
            lanes = ir.Constant(ir.VectorType(INT32, 2 * width), list(range(2 * width)))
            parts = [builder.shuffle_vector(*pair, lanes) for pair in zip(parts[::2], parts[1::2])]
        return parts[0]
    products = builder.bitcast(builder.mul(natural, signed), INTS_LL)  # 16 bits each
    half = constant(INTS_LL, 16)
    return builder.add(builder.ashr(builder.shl(products, half), half), builder.ashr(products, half))


def extract_lanes(builder, vector, first: int, count: int):
    lanes = ir.Constant(ir.VectorType(INT32, count), list(range(first, first + count)))
    return builder.shuffle_vector(vector, vector, lanes)


@defines(dots.vstore_bytes, types.none, BYTE_POINTER, types.int64, INTS)
def _store_bytes(builder, p, i, v):
    builder.store(builder.trunc(v, NARROW_LL), vector_pointer(builder, p, i, NARROW_LL), align=1)


defines(dots.vload_words, INTS, WORD_POINTER, types.int64)(words_of_pairs)


def shuffle(builder, first, second, indices):
    """Select the bytes at these places of two registers."""
    return builder.shuffle_vector(first, second, ir.Constant(ir.VectorType(INT32, SIZE), indices))


def columns_of_rows(builder, pieces):
    """Build the lanes of a block from the registers with its four rows, and the places of these."""
    registers, blocks_of_pieces = (
        [register for register, _ in pieces],
        [piece_block for _, piece_block in pieces],
    )
    if is_fast() and len({*blocks_of_pieces}) == len(blocks_of_pieces):
        joined = registers[0]
        for register, piece_block in pieces[1:]:
            place = range(piece_block * LANES, (piece_block + 1) * LANES)
            joined = shuffle(builder, joined, register, [SIZE + n if n in place else n for n in range(SIZE)])
        order = [piece_block * LANES + column for column in range(LANES) for piece_block in blocks_of_pieces]
        bytes_of = ir.Constant(BYTES_LL, [ir.Constant(ir.IntType(8), index) for index in order])
        return call(builder, "llvm.x86.avx512.permvar.qi.512", BYTES_LL, joined, bytes_of)
    rows = [
        shuffle(builder, register, register, [piece_block * LANES + n % LANES for n in range(SIZE)])
        for register, piece_block in pieces
    ]
    in_turns = [n % LANES + n // LANES % 2 * SIZE for n in range(SIZE)]
    low, high = shuffle(builder, rows[0], rows[1], in_turns), shuffle(builder, rows[2], rows[3], in_turns)
    order = [n // BYTES + n % 2 * LANES + n % BYTES // 2 * SIZE for n in range(SIZE)]
    return shuffle(builder, low, high, order)


def columns(builder, p, i, blocks: int):
    """Build the lanes of each block."""
    registers = []
    for register in range(blocks):
        offset = builder.add(i, ir.Constant(INT64, register * SIZE))
        registers.append(builder.load(vector_pointer(builder, p, offset, BYTES_LL), align=1))
    for block in range(blocks):
        blocks_of_rows = [divmod(row * blocks + block, BYTES) for row in range(BYTES)]
        values = columns_of_rows(
            builder, [(registers[register], row_block) for register, row_block in blocks_of_rows]
        )
        yield builder.bitcast(values, INTS_LL)


for _blocks in range(1, BYTES + 1):

    def _columns_of(builder, p, i, _, blocks=_blocks):
        values = ir.Constant(ir.ArrayType(INTS_LL, blocks), ir.Undefined)
        for index, block in enumerate(columns(builder, p, i, blocks)):
            values = builder.insert_value(values, block, index)
        return values

    _numbers = types.UniTuple(types.int64, _blocks)
    defines(dots.columns_of, types.UniTuple(INTS, _blocks), CODE_POINTER, types.int64, _numbers)(_columns_of)


def is_fast_on_halves() -> bool:
    """Return whether the target processor has instructions for the bf16 functions."""
    return has_features("avx512bf16")


@defines(dots.vdot_halves, FLOATS, FLOATS, INTS, INTS)
def _dot_halves(builder, total, a, b):
    if is_fast_on_halves():
        return call(builder, "llvm.x86.avx512bf16.dpbf16ps.512", FLOATS_LL, total, a, b)
    (first_a, second_a), (first_b, second_b) = floats_of_pairs(builder, a), floats_of_pairs(builder, b)
    return fused_product(builder, first_a, first_b, fused_product(builder, second_a, second_b, total))


def floats_of_pairs(builder, pairs):
    """Build the floats of both halves."""
    first = builder.shl(pairs, constant(INTS_LL, 16))
    second = builder.and_(pairs, constant(INTS_LL, -(1 << 16)))
    return builder.bitcast(first, FLOATS_LL), builder.bitcast(second, FLOATS_LL)


@defines(dots.vstore_halves, types.none, BF16_POINTER, types.int64, FLOATS)
def _store_halves(builder, p, i, v):
    where = vector_pointer(builder, p, i, ROW_OF_HALVES_LL)
    if is_fast_on_halves():
        nearest = call(builder, "llvm.x86.avx512bf16.cvtneps2bf16.512", ROW_OF_HALVES_LL, v)
    else:
        nearest = builder.trunc(nearest_bits(builder, v), ROW_OF_HALVES_LL)
    builder.store(nearest, where, align=2)


def nearest_bits(builder, v):
    """Build the bits of the nearest bfloat16 in the lower half of each lane."""
    bits, shift = builder.bitcast(v, INTS_LL), constant(INTS_LL, 16)
    upper = builder.lshr(bits, shift)
    half = builder.add(constant(INTS_LL, 0x7FFF), builder.and_(upper, constant(INTS_LL, 1)))
    rounded = builder.lshr(builder.add(bits, half), shift)
    quiet = builder.or_(upper, constant(INTS_LL, 0x40))
    return builder.select(builder.fcmp_unordered("uno", v, v), quiet, rounded)
