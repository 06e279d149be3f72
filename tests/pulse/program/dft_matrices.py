"""Matrices of Fourier transforms."""

import numpy as np

from pulse.facts import Array


def arrange_parts(parts: Array, rows: str, columns: str) -> Array:
    """[n, part, k, part] as a matrix, parts in turns or one after the other."""
    n, p, k, q = parts.shape
    axes = [*((0, 1) if rows == "turns" else (1, 0)), *((2, 3) if columns == "turns" else (3, 2))]
    return np.ascontiguousarray(parts.transpose(axes).reshape(n * p, k * q).astype(np.float32))
