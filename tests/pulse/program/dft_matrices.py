"""Matrices of Fourier transforms."""

import numpy as np

from pulse.facts import Array


def arrange_parts(parts: Array, rows: str, columns: str) -> Array:
    """[n, part, k, part] as a matrix, parts in turns or one after the other."""
    n, p, k, q = parts.shape
    axes = [*((0, 1) if rows == "turns" else (1, 0)), *((2, 3) if columns == "turns" else (3, 2))]
    return np.ascontiguousarray(parts.transpose(axes).reshape(n * p, k * q).astype(np.float32))


def pack_parts(parts: Array, order: str) -> Array:
    """[n, k, part] of the bins of a real signal as columns: the middle bin in place of the first imaginary part.

    ``turns``: re 0, middle, re 1, im 1, …; ``blocks``: all real parts, the middle bin last, then imaginary parts.
    """
    re, im = parts[:, :-1, 0], np.concatenate([parts[:, -1:, 0], parts[:, 1:-1, 1]], axis=1)
    packed = np.stack([re, im], axis=2) if order == "turns" else np.stack([re, im], axis=1)
    return np.ascontiguousarray(packed.reshape(len(parts), -1).astype(np.float32))
