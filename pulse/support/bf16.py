"""Bfloat16: the upper 16 bits of an f32. numpy has no such type, so arrays have their bits as uint16."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def to_bf16(values: NDArray[Any]) -> NDArray[np.uint16]:
    """Return the bits of the nearest bfloat16, halves to even, as uint16. NaN stays NaN; overflow is infinite."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (bits + (np.uint32(0x7FFF) + (bits >> 16 & 1))) >> 16
    return np.where(np.isnan(values), bits >> 16 | 0x40, rounded).astype(np.uint16)


def from_bf16(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Return the floats of bfloat16 bits."""
    return (bits.astype(np.uint32) << 16).view(np.float32)
