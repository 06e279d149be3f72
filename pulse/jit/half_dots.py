"""Sums of products of bfloat16 in lanes of f32, as plain Python; ``dots_codegen`` gives numba the same functions.

A lane of int32 is a pair of bfloat16, the first in the lower half.
"""

import numpy as np

from pulse.jit.pointer import Pointer
from pulse.jit.simd import LANES, Vector, vfma, vfrombits
from pulse.support.bf16 import to_bf16


def _halves(pairs: Vector | int) -> tuple[Vector, Vector]:
    values = pairs.values if isinstance(pairs, Vector) else np.full(LANES, pairs, np.int32)
    if values.dtype != np.int32:
        raise TypeError(f"expected lanes of int32, got {values.dtype}")
    return vfrombits(Vector(values << 16)), vfrombits(Vector(values & np.int32(-(1 << 16))))


def vdot_halves(total: Vector, a: Vector | int, b: Vector | int) -> Vector:
    """Add to ``total`` the product of the second halves of each lane, then that of the first, each rounded once.

    These are the two steps of VDPBF16PS; it takes denormals for zeros, as kernels do.
    """
    first_a, second_a = _halves(a)
    first_b, second_b = _halves(b)
    return vfma(first_a, first_b, vfma(second_a, second_b, total))


def vstore_halves(p: Pointer, i: int, v: Vector) -> None:
    """Write 16 float lanes as the nearest bfloat16 to the 16 uint16 from ``p[i]``."""
    p.elements[p.span(i, LANES)] = to_bf16(v.values)
