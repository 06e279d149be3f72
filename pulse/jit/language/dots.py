"""Sums of products of bytes and of bfloat16, as plain Python; ``codegen.dots`` declares the same functions to numba.

A lane of int32 has four bytes, or a pair of bfloat16 with the first in the lower half. int8 weights are stored row
by row, 16 columns of one or several blocks side by side; four rows of them become lanes that hold the four bytes of a
column.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulse.jit.language.simd import LANES, Vector, vfma, vfrombits
from pulse.jit.rows.pointer import Pointer
from pulse.support.bf16 import to_bf16

BYTES = 4
"""The bytes of a lane."""


def has_byte_dots() -> bool:
    """Return whether the processor has instructions for ``vdot_bytes`` and permutations of bytes, so they are fast."""
    return True


def _as_bytes(value: Vector | int, dtype: type[np.generic]) -> NDArray[Any]:
    values = value.values if isinstance(value, Vector) else np.full(LANES, value, np.int32)
    if values.dtype != np.int32:
        raise TypeError(f"expected int32 lanes, got {values.dtype}")
    return values.view(dtype).reshape(LANES, BYTES).astype(np.int32)


def vdot_bytes(total: Vector, natural: Vector | int, signed: Vector | int) -> Vector:
    """Add to ``total`` the products of the four bytes of each lane: 0 … 255 times -128 … 127, without saturation."""
    products = _as_bytes(natural, np.uint8) * _as_bytes(signed, np.int8)
    return total + Vector(products.sum(axis=1, dtype=np.int32))


def vstore_bytes(p: Pointer, i: int, v: Vector) -> None:
    """Write the lowest bytes of 16 int lanes to the 16 uint8 from ``p[i]``."""
    p.elements[p.span(i, LANES)] = _as_bytes(v, np.uint8)[:, 0]


def vload_words(p: Pointer, i: int) -> Vector:
    """Load the 16 int32 from ``p[i]``."""
    return Vector(p.elements[p.span(i, LANES)].astype(np.int32))


def columns_of(p: Pointer, i: int, blocks: tuple[int, ...]) -> tuple[Vector, ...]:
    """Load four rows of blocks of 16 int8 from ``p[i]``: as many blocks as the tuple has elements, up to four.

    Lane n of a block has its column n.
    """
    rows = p.elements[p.span(i, BYTES * len(blocks) * LANES)].reshape(BYTES, len(blocks), LANES)
    columns = np.ascontiguousarray(rows.transpose(1, 2, 0))
    return tuple(Vector(block.view(np.int32).ravel()) for block in columns)


def _halves(pairs: Vector | int) -> tuple[Vector, Vector]:
    values = pairs.values if isinstance(pairs, Vector) else np.full(LANES, pairs, np.int32)
    if values.dtype != np.int32:
        raise TypeError(f"expected int32 lanes, got {values.dtype}")
    return vfrombits(Vector(values << 16)), vfrombits(Vector(values & np.int32(-(1 << 16))))


def vdot_halves(total: Vector, a: Vector | int, b: Vector | int) -> Vector:
    """Add to ``total`` the product of the second halves of each lane, then of the first halves, each rounded once.

    These are the two steps of VDPBF16PS; it takes denormals for zeros, as kernels do.
    """
    first_a, second_a = _halves(a)
    first_b, second_b = _halves(b)
    return vfma(first_a, first_b, vfma(second_a, second_b, total))


def vstore_halves(p: Pointer, i: int, v: Vector) -> None:
    """Write 16 float lanes as the nearest bfloat16 to the 16 uint16 from ``p[i]``."""
    p.elements[p.span(i, LANES)] = to_bf16(v.values)
