"""Sixteen float32 lanes as a value, as plain Python. ``codegen.simd*`` declare the same functions to numba.

There are three kinds: float32 lanes, int32 lanes (also for the bits of floats), and masks (a bool per lane).
``+ - * /`` (and ``+=`` …) and unary ``-`` work on float lanes, ``+ - * & | ^ << >>`` on int lanes (``>>``
keeps the sign), ``& | ~`` on masks. A plain number is broadcast to all lanes.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulse.jit.rows.pointer import Pointer

LANES = 16

Floats = NDArray[np.float32]


def _operator(
    operation: Callable[[Any, Any], Any], swap: bool = False
) -> "Callable[[Vector, Value], Vector]":
    def method(lanes: "Vector", other: "Value") -> "Vector":
        right = other.values if isinstance(other, Vector) else np.asarray(other, lanes.values.dtype)
        result = operation(right, lanes.values) if swap else operation(lanes.values, right)
        if not lanes.values.dtype == right.dtype == result.dtype:
            raise TypeError(f"no {operation} of lanes of {lanes.values.dtype} and {right.dtype}")
        return Vector(result)

    return method


class Vector:
    """Sixteen immutable values of float32, int32 or bool."""

    __slots__ = ("values",)
    __array_ufunc__ = None

    def __init__(self, values: NDArray[Any]) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype)

    def __repr__(self) -> str:
        return f"Vector({self.values.tolist()})"

    __add__, __radd__ = _operator(np.add), _operator(np.add, swap=True)
    __sub__, __rsub__ = _operator(np.subtract), _operator(np.subtract, swap=True)
    __mul__, __rmul__ = _operator(np.multiply), _operator(np.multiply, swap=True)
    __truediv__, __rtruediv__ = _operator(np.true_divide), _operator(np.true_divide, swap=True)
    __and__, __or__, __xor__ = _operator(np.bitwise_and), _operator(np.bitwise_or), _operator(np.bitwise_xor)
    __lshift__, __rshift__ = _operator(np.left_shift), _operator(np.right_shift)

    def __neg__(self) -> "Vector":
        return Vector(-self.values)

    def __invert__(self) -> "Vector":
        return Vector(~self.values)


Value = Vector | float
"""Lanes, or a number that is broadcast."""


def _lanes(value: Value) -> Floats:
    if not isinstance(value, Vector):
        return np.full(LANES, value, np.float32)
    if value.values.dtype != np.float32:
        raise TypeError(f"expected float32 lanes, got {value.values.dtype}")
    return value.values


def _ints(value: Vector) -> NDArray[np.int32]:
    if value.values.dtype != np.int32:
        raise TypeError(f"expected int32 lanes, got {value.values.dtype}")
    return value.values


def vload(p: Pointer, i: int) -> Vector:
    """Return the 16 elements from ``p[i]`` as float32, whether they are f32, f16, bf16 or int8; any alignment."""
    elements = p.elements[p.span(i, LANES)]
    if elements.dtype == np.uint16:
        return Vector((elements.astype(np.uint32) << 16).view(np.float32))
    return Vector(elements.astype(np.float32))


def vload_first(p: Pointer, i: int) -> Vector:
    """Return the first 16 of 32 packed elements from ``p[i]``; bf16 elements are ``in_pairs``."""
    return _load_half(p, i, 0)


def vload_second(p: Pointer, i: int) -> Vector:
    """Return the other 16 of the elements of ``vload_first``."""
    return _load_half(p, i, 1)


def _load_half(p: Pointer, i: int, half: int) -> Vector:
    elements = p.elements[p.span(i, 2 * LANES)]
    if elements.dtype == np.uint16:
        return Vector((elements[half::2].astype(np.uint32) << 16).view(np.float32))
    return vload(p, i + half * LANES)


def in_pairs(values: NDArray[Any]) -> NDArray[Any]:
    """Reorder elements [..., 32] as ``vload_first`` and ``vload_second`` read them; the shape stays [..., 32].

    bf16: elements j and j + 16 are the halves of one 32-bit word, which a shift and a mask convert to floats
    without moving lanes. Other types do not change.
    """
    if values.dtype != np.uint16:
        return values
    pairs = values.reshape(*values.shape[:-1], 2, LANES)
    return np.ascontiguousarray(np.moveaxis(pairs, -2, -1)).reshape(values.shape)


def vstore(p: Pointer, i: int, v: Vector) -> None:
    """Write the 16 elements from ``p[i]``."""
    p.elements[p.span(i, LANES)] = _lanes(v)


def vload_part(p: Pointer, i: int, n: int) -> Vector:
    """Return the first n elements from ``p[i]``, all for n >= 16, none for n <= 0, then zeros; reads no others."""
    n = min(n, LANES)
    v = np.zeros(LANES, np.float32)
    if n > 0:
        v[:n] = p.elements[p.span(i, n)]
    return Vector(v)


def vstore_part(p: Pointer, i: int, n: int, v: Vector) -> None:
    """Write the first n lanes from ``p[i]``, all for n >= 16, none for n <= 0; writes no other memory."""
    n = min(n, LANES)
    p.elements[p.span(i, n)] = _lanes(v)[:n]


def _chunks(p: Pointer, i: int, step: int, n: int, width: int) -> Vector:
    indices = [i + min(number, n - 1) * step for number in range(LANES // width)]
    return Vector(np.concatenate([p.elements[p.span(index, width)] for index in indices]))


def vload_fours(p: Pointer, i: int, step: int, n: int) -> Vector:
    """Four groups of 4 float32 elements, ``step`` apart, from ``p[i]``; after n groups, the last is repeated."""
    return _chunks(p, i, step, n, 4)


def vload_eights(p: Pointer, i: int, step: int, n: int) -> Vector:
    """Return two groups of 8 float32 elements, ``step`` apart, from ``p[i]``; after n groups, the last is repeated."""
    return _chunks(p, i, step, n, 8)


def vbroadcast_twos(p: Pointer, i: int) -> Vector:
    """Return 2 float32 elements from ``p[i]`` eight times, alternately: p[i], p[i + 1], p[i], p[i + 1] …"""
    return Vector(np.tile(p.elements[p.span(i, 2)], LANES // 2))


def vstore_fours(p: Pointer, i: int, j: int, n: int, v: Vector, mask: int) -> None:
    """Write the first n groups of 4 lanes, group k from ``p[4*k]`` plus i, or plus j if bit k of the mask is set."""
    _store_chunks(p, i, j, n, v, mask, 4)


def vstore_eights(p: Pointer, i: int, j: int, n: int, v: Vector, mask: int) -> None:
    """Store as ``vstore_fours``, with groups of 8 lanes."""
    _store_chunks(p, i, j, n, v, mask, 8)


def _store_chunks(p: Pointer, i: int, j: int, n: int, v: Vector, mask: int, width: int) -> None:
    for number in range(min(n, LANES // width)):
        first = number * width
        index = (j if mask >> number & 1 else i) + first
        p.elements[p.span(index, width)] = _lanes(v)[first : first + width]


def vduplicate_twos(p: Pointer, i: int) -> Vector:
    """Return 2 float32 elements from ``p[i]``, each of them eight times."""
    return Vector(np.repeat(p.elements[p.span(i, 2)], LANES // 2))


def vduplicate_fours(p: Pointer, i: int) -> Vector:
    """Return 4 float32 elements from ``p[i]``, each of them four times."""
    return Vector(np.repeat(p.elements[p.span(i, 4)], LANES // 4))


def _rotate(v: Value, width: int, by: int = 1) -> Vector:
    return Vector(np.roll(_lanes(v).reshape(-1, width), -by, axis=1).ravel())


def vrotate_by_two(v: Value) -> Vector:
    """Rotate all lanes by two: lanes 2, 3 … 15, 0, 1."""
    return _rotate(v, LANES, 2)


def vrotate_by_four(v: Value) -> Vector:
    """Rotate all lanes by four: lanes 4, 5 … 15, 0 … 3."""
    return _rotate(v, LANES, 4)


def vrotate_by_eight(v: Value) -> Vector:
    """Rotate all lanes by eight, which exchanges the halves: lanes 8, 9 … 15, 0 … 7."""
    return _rotate(v, LANES, 8)


def vrotate_fours(v: Value) -> Vector:
    """Rotate each four lanes by one: lanes 1, 2, 3, 0, then 5, 6, 7, 4 …"""
    return _rotate(v, 4)


def vrotate_eights(v: Value) -> Vector:
    """Rotate each eight lanes by one: lanes 1, 2 … 7, 0, then 9, 10 … 15, 8."""
    return _rotate(v, 8)


def vadd_pairs(a: Value, b: Value) -> Vector:
    """Return sums of neighbouring lanes: a0 + a1, a2 + a3 … a14 + a15, then b0 + b1 … b14 + b15."""
    pairs = np.concatenate([_lanes(a), _lanes(b)])
    return Vector(pairs[::2] + pairs[1::2])


def vdeinterleave_even(a: Value, b: Value) -> Vector:
    """Return every second lane: a0, a2 … a14, then b0, b2 … b14."""
    return Vector(np.concatenate([_lanes(a), _lanes(b)])[::2])


def vinterleave_first(a: Value, b: Value) -> Vector:
    """Return the first eight lanes of both, interleaved: a0, b0, a1, b1 … a7, b7."""
    return Vector(np.stack([_lanes(a), _lanes(b)], 1).ravel()[:LANES])


def vinterleave_second(a: Value, b: Value) -> Vector:
    """Return the other eight lanes of both, interleaved: a8, b8 … a15, b15."""
    return Vector(np.stack([_lanes(a), _lanes(b)], 1).ravel()[LANES:])


def vsplat(x: float) -> Vector:
    """Return ``x`` in every lane."""
    return Vector(_lanes(x))


def vzero() -> Vector:
    """Return 0.0 in every lane."""
    return Vector(_lanes(0.0))


def vindex() -> Vector:
    """Return 0.0, 1.0 … 15.0."""
    return Vector(np.arange(LANES, dtype=np.float32))


def vfma(a: Value, b: Value, c: Value) -> Vector:
    """Return ``a * b + c``, rounded once."""
    wide = _lanes(a).astype(np.float64) * _lanes(b) + _lanes(c)
    return Vector(wide.astype(np.float32))


def vfma_half(a: Value, b: Value, c: Value) -> Vector:
    """Return ``vfma`` of the first eight lanes, in half a register; the others hold anything."""
    half = vfma(a, b, c)
    half.values[LANES // 2 :] = np.nan
    return half


def _of_one(compute: Callable[[Any], Any]) -> Callable[[Value], Vector]:
    return lambda v: Vector(compute(_lanes(v)))


def _of_two(compute: Callable[[Any, Any], Any]) -> Callable[[Value, Value], Vector]:
    return lambda a, b: Vector(compute(_lanes(a), _lanes(b)))


vabs, vsqrt, vfloor = _of_one(np.abs), _of_one(np.sqrt), _of_one(np.floor)
vceil, vround = _of_one(np.ceil), _of_one(np.rint)
"""The magnitude, the square root, and whole numbers: ``vround`` returns the nearest one, halves to even."""
vmin, vmax = _of_two(np.minimum), _of_two(np.maximum)
"""The smaller, the larger; NaN if either is NaN. A constant belongs second: it then costs one instruction."""
vlt, vle, vgt = _of_two(np.less), _of_two(np.less_equal), _of_two(np.greater)
vge, veq, vne = _of_two(np.greater_equal), _of_two(np.equal), _of_two(np.not_equal)
"""Masks of a comparison; false if either is NaN, but for ``vne``: ``vne(v, v)`` is the mask of NaN."""


def vselect(mask: Vector, a: Value, b: Value) -> Vector:
    """Return ``a`` in the lanes where the mask is true, else ``b``."""
    return Vector(np.where(mask.values, _lanes(a), _lanes(b)))


def vsum(v: Vector) -> np.float32:
    """Return the sum of the lanes, added in pairs."""
    parts = _lanes(v)
    while len(parts) > 1:
        parts = parts[: len(parts) // 2] + parts[len(parts) // 2 :]
    return parts[0]


def vmin_across(v: Vector) -> np.float32:
    """Return the smallest lane; NaN if one is NaN."""
    return _lanes(v).min()


def vmax_across(v: Vector) -> np.float32:
    """Return the largest lane; NaN if one is NaN."""
    return _lanes(v).max()


def vtoint(v: Value) -> Vector:
    """Convert float lanes to int lanes, towards zero. Undefined for NaN and beyond int32."""
    return Vector(_lanes(v).astype(np.int32))


def vtofloat(v: Vector) -> Vector:
    """Convert int lanes to float lanes."""
    return Vector(_ints(v).astype(np.float32))


def vbits(v: Value) -> Vector:
    """Return the bits of float lanes as int lanes."""
    return Vector(_lanes(v).view(np.int32))


def vfrombits(v: Vector) -> Vector:
    """Int lanes as the bits of float lanes."""
    return Vector(_ints(v).view(np.float32))


def vnonzero(v: Vector) -> Vector:
    """Mask of the int lanes that are not 0."""
    return Vector(_ints(v) != 0)


BIASED = 12583039.0
"""``vproduct_biased`` of zero: 1.5 * 2**23 + 127."""


def vproduct_biased(a: Value, b: Value) -> Vector:
    """Return ``a * b`` rounded to an integer n, as ``BIASED + n``; any value if n is beyond 2**21, infinite or NaN.

    b must not be 1: LLVM would then reorder the sum and leave out the rounding.
    """
    return Vector(np.rint(_lanes(a) * _lanes(b)) + np.float32(BIASED))


def vexp2_biased(v: Value) -> Vector:
    """Return 2**n of ``BIASED + n``, n in -126…127; beyond them any value."""
    return vfrombits(vbits(v) << 23)


def vexp2i(v: Value) -> Vector:
    """Return 2**v for integers v in -126…127; undefined beyond."""
    return vfrombits((vtoint(v) + 127) << 23)


def vexponent(v: Value) -> Vector:
    """Return the exponent e of v = m * 2**e with 1 <= m < 2, for normal v; ignores the sign."""
    return vtofloat(((vbits(v) >> 23) & 255) - 127)


def vmantissa(v: Value) -> Vector:
    """Return the mantissa m of v = m * 2**e with 1 <= m < 2, for normal v; without the sign."""
    return vfrombits((vbits(v) & 0x7FFFFF) | 0x3F800000)
