"""Products of one row with int8 weights in integers: each element of the row is split into four digits of eight bits.

The digits of a row share a unit, a power of two, such that the largest element has 31 bits: the error of an element is
at most 2**-31 of the largest, less than the rounding of an f32 sum. Sums of digits times codes are exact; only the
final value is rounded. A row that is not finite, almost zero or too long has no digits, nor has any row if the
processor has no sums of products of bytes: then the weights are converted to floats one by one.
"""

from typing import TypeAlias

from pulse.jit.language.dots import columns_of, has_byte_dots, vdot_bytes, vstore_bytes
from pulse.jit.language.raw import as_i32, as_u8
from pulse.jit.language.simd import (
    LANES,
    Vector,
    vabs,
    vexp2i,
    vexponent,
    vfma,
    vload,
    vload_part,
    vmax,
    vmax_across,
    vround,
    vsplat,
    vsum,
    vtofloat,
    vtoint,
    vzero,
)
from pulse.jit.language.tuples import copies, each
from pulse.jit.registry import device
from pulse.jit.rows.pointer import Pointer
from pulse.program.kernels.matmul.scales import Scales
from pulse.program.kernels.row_tuples import Indices, Vectors

Digits: TypeAlias = tuple[Pointer, float, int]
"""The digits of a row: words of four elements, their unit (0: no digits), 128 times the sum of the highest digits."""

Sums: TypeAlias = tuple[Vector, Vector, Vector, Vector, Vector]
"""The sums of 16 columns: one in int32 for each digit, the lowest first; one in f32 for elements without digits."""

MAX_DIGIT_ROW = 4096
"""Maximum number of elements of a row with digits; longer rows are multiplied as f32."""
DIGIT_SCRATCH_FLOATS = MAX_DIGIT_ROW + 4 * LANES
"""The scratch memory for the digits of a row, in f32 elements: four bytes for each element of the row."""
PLANE_WORDS = DIGIT_SCRATCH_FLOATS // 4
"""The words from one digit of four elements to the next digit of the same elements."""
SIGN_BITS = -(1 << 31) + (1 << 23) + (1 << 15) + (1 << 7)
"""The sign bits of four bytes."""
MIN_MAGNITUDE, MAX_MAGNITUDE = 2.0**-96, 2.0**127
"""A row whose largest element is outside this range has no digits."""


@device
def write_digits_of_row(x: Pointer, K: int, scales: Scales, scratch: Pointer) -> Digits:
    """Write the digits of a row of K elements, except the last K % 4, to ``scratch``: ``DIGIT_SCRATCH_FLOATS`` f32."""
    if scales is None:
        return as_i32(scratch), 0.0, 0
    largest = largest_magnitude(x, K) if has_byte_dots() and K <= MAX_DIGIT_ROW else 2 * MAX_MAGNITUDE
    return write_digits(x, K, 0, unit_of(largest), scratch)


@device
def write_digits_of_taps(
    x: Pointer, taps: Pointer, T: int, K: int, scales: Scales, scratch: Pointer
) -> Digits:
    """Write the digits of T pieces of a row, one after another."""
    if scales is None:
        return as_i32(scratch), 0.0, 0
    largest = 2 * MAX_MAGNITUDE
    if has_byte_dots() and T * K <= MAX_DIGIT_ROW:
        largest = 0.0
        for t in range(T):
            largest = max(largest, largest_magnitude(x + taps[t], K))
    unit, highest = unit_of(largest), 0
    if unit > 0:
        for t in range(T):
            _, _, highest_of_tap = write_digits(x + taps[t], K, t * (K >> 2), unit, scratch)
            highest += highest_of_tap
    return as_i32(scratch), unit, highest


@device
def largest_magnitude(x: Pointer, K: int) -> float:
    """Return the largest magnitude of the elements that have digits; above ``MAX_MAGNITUDE`` if one is not finite."""
    magnitudes, k, end = vzero(), 0, K & -4
    while k < end:
        magnitudes = vmax(magnitudes, vabs(vload_part(x, k, end - k)))
        k += LANES
    largest = float(vmax_across(magnitudes))
    return largest if largest <= MAX_MAGNITUDE else 2 * MAX_MAGNITUDE


@device
def unit_of(largest: float) -> float:
    """Return the unit of the digits of a row with this largest magnitude; 0 if it has no digits."""
    if largest == 0:
        return 1.0
    if not (largest >= MIN_MAGNITUDE and largest < MAX_MAGNITUDE):
        return 0.0
    return float(vmax_across(vexp2i(vexponent(vsplat(largest)) - 30.0)))


@device
def write_digits(x: Pointer, K: int, word: int, unit: float, scratch: Pointer) -> Digits:
    """Write the digits of K elements from a word of ``scratch`` on, padded with zeros."""
    target, k, end = as_u8(scratch) + 4 * word, 0, K & -4
    highest = vtoint(vzero())
    if unit > 0:
        factor = vsplat(1.0 / unit)
        while k < end:
            number = vtoint(vround(vload_part(x, k, end - k) * factor))
            vstore_bytes(target, k, number)
            vstore_bytes(target, k + 4 * PLANE_WORDS, number >> 8)
            vstore_bytes(target, k + 8 * PLANE_WORDS, number >> 16)
            vstore_bytes(target, k + 12 * PLANE_WORDS, number >> 24)
            highest = highest + (number >> 24)
            k += LANES
    return as_i32(scratch), unit, int(vsum(vtofloat(highest))) * 128


@device
def no_sums() -> Sums:
    zero = vtoint(vzero())
    return zero, zero, zero, zero, vzero()


@device
def add_products(sums: Sums, words: Pointer, codes: Vector) -> Sums:
    """Add four elements of a row, times the codes of 16 columns, to the sums.

    The highest digits are signed, so they are multiplied with codes + 128.
    """
    a, b, c, d, rest = sums
    a, b = vdot_bytes(a, words[0], codes), vdot_bytes(b, words[PLANE_WORDS], codes)
    c, d = (
        vdot_bytes(c, words[2 * PLANE_WORDS], codes),
        vdot_bytes(d, codes ^ SIGN_BITS, words[3 * PLANE_WORDS]),
    )
    return a, b, c, d, rest


@device
def add_element(sums: Sums, element: float, w: Pointer, block: int) -> Sums:
    """Add one element without digits, times the 16 weights of a block, to the sums."""
    a, b, c, d, rest = sums
    return a, b, c, d, vfma(element, vload(w, block * LANES), rest)


@device
def value_of(sums: Sums, unit: float, highest: int) -> Vector:
    """Return the value of sums, before the scales of the columns."""
    a, b, c, d, rest = sums
    total = vfma(vtofloat(d - highest), 256.0, vtofloat(c))
    total = vfma(vfma(total, 256.0, vtofloat(b)), 256.0, vtofloat(a))
    return vfma(total, unit, rest)


@device
def add_row(
    sums: tuple[Sums, ...], words: Pointer, h: Pointer, w: Pointer, K: int, blocks: Indices
) -> tuple[Sums, ...]:
    """Add ``sum_k h[k] * w[k]`` to the sums of each block, w [K, blocks, 16]; ``words`` are the digits of h."""
    width = len(blocks) * LANES
    for k in range(K >> 2):
        sums = each(add_products, sums, words + k, columns_of(w, 0, blocks))
        w = w + 4 * width
    for k in range(K & -4, K):
        sums = each(add_element, sums, h[k], w, blocks)
        w = w + width
    return sums


@device
def sum_row(digits: Digits, h: Pointer, w: Pointer, K: int, blocks: Indices) -> Vectors:
    """Return ``sum_k h[k] * w[k]`` of each block, w [K, blocks, 16]."""
    words, unit, highest = digits
    return each(value_of, add_row(copies(no_sums(), blocks), words, h, w, K, blocks), unit, highest)


@device
def sum_taps(
    digits: Digits, x: Pointer, taps: Pointer, T: int, K: int, w: Pointer, blocks: Indices
) -> Vectors:
    """Return ``sum_tk x[taps[t] + k] * w[t * K + k]`` of each block, w [T * K, blocks, 16]."""
    words, unit, highest = digits
    sums = copies(no_sums(), blocks)
    for t in range(T):
        here = w + t * K * len(blocks) * LANES
        sums = add_row(sums, words + t * (K >> 2), x + taps[t], here, K, blocks)
    return each(value_of, sums, unit, highest)
