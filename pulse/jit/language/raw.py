"""Untyped memory: runs of bytes, and pointers cast to elements of 1, 2, 4 or 8 bytes.

``codegen.raw`` defines these functions in compiled code.
"""

from collections.abc import Callable

import numpy as np

from pulse.jit.rows.pointer import Pointer

TILE_ROWS = 8


def opaque(number: int) -> int:
    """Return the number, hidden from the optimiser, so that it moves nothing that depends on it out of a loop."""
    return number


def _cast(dtype: type[np.generic]) -> Callable[[Pointer], Pointer]:
    size = np.dtype(dtype).itemsize

    def cast(p: Pointer) -> Pointer:
        start = p.start * p.elements.itemsize
        if start % size:
            raise ValueError(f"byte {start} is not aligned to {size}")
        region = p.elements.view(np.uint8)
        return Pointer(region[: len(region) // size * size].view(dtype), start // size)

    return cast


as_u8, as_i16, as_u16, as_i32 = _cast(np.uint8), _cast(np.int16), _cast(np.uint16), _cast(np.int32)
as_f32, as_i64, as_f64 = _cast(np.float32), _cast(np.int64), _cast(np.float64)
"""Cast a pointer to elements of another type; loads and stores keep all bits. ``vload`` takes u16 for bfloat16."""


def move_bytes(dst: Pointer, src: Pointer, count: int) -> None:
    """Set ``dst[:count] = src[:count]`` through u8 pointers; the two may overlap."""
    dst.elements[dst.span(0, count)] = src.elements[src.span(0, count)].copy()


def fill_bytes(dst: Pointer, value: int, count: int) -> None:
    """Set ``dst[:count] = value`` through a u8 pointer; uses the low byte of the value."""
    dst.elements[dst.span(0, count)] = value & 255


def transpose_tile(dst: Pointer, src: Pointer, dst_step: int, src_step: int) -> None:
    """Set ``dst[i*dst_step + j] = src[j*src_step + i]``, i and j < 8, through f32 pointers; keeps all bits."""
    tile = np.stack([src.elements[src.span(j * src_step, TILE_ROWS)] for j in range(TILE_ROWS)], axis=1)
    for i in range(TILE_ROWS):
        dst.elements[dst.span(i * dst_step, TILE_ROWS)] = tile[i]
