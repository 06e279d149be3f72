"""Rows, operands and typed pointers, as plain Python; ``codegen.pointer`` declares the same pointers to numba.

A row is a run of int64: kernel, length in int64, then the fields of its ``instruction``. An operand is
``region << 48 | byte offset``; ``bases[region]`` is where the region begins.
"""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

WEIGHTS, STATE, ARENA = 0, 1, 2
MAX_REGIONS = 8
REGION_SHIFT = 48
"""An operand has the number of its memory, below ``MAX_REGIONS``, above this many bits of its byte offset."""
HEADER_WORDS = 2
"""The int64 before the first argument of a row."""

Row = Sequence[int] | NDArray[np.int64]
Bases = Sequence[NDArray[np.uint8]]


def operand(region: int, byte_offset: int) -> int:
    """Return the argument for bytes from ``byte_offset`` of ``region``. Raises ValueError: one is out of range."""
    if not 0 <= region < MAX_REGIONS or not 0 <= byte_offset < 1 << REGION_SHIFT:
        raise ValueError(f"operand: region {region} at byte {byte_offset} does not exist")
    return region << REGION_SHIFT | byte_offset


def real_bits(value: float) -> int:
    """Return a float64 as the int64 that ``real_at`` reads."""
    return struct.unpack("<q", struct.pack("<d", value))[0]


class Pointer:
    """A typed pointer into a region: ``p[i]``, ``p[i] = v``, ``p + n``; checks every access."""

    __slots__ = ("elements", "start")

    def __init__(self, elements: NDArray[Any], start: int) -> None:
        self.elements = elements
        self.start = start

    def __add__(self, count: int) -> "Pointer":
        return Pointer(self.elements, self.start + int(count))

    def span(self, i: int, count: int) -> slice:
        """Return the ``count`` elements from i as a slice of ``elements``. Raises IndexError: they leave the region."""
        first = self.start + int(i)
        if first < 0 or first + count > len(self.elements):
            size = f"{len(self.elements)} {self.elements.dtype}"
            raise IndexError(f"elements {first} to {first + count} of a region of {size}")
        return slice(first, first + count)

    def __getitem__(self, i: int) -> Any:
        value = self.elements[self.span(i, 1)][0]
        return value if self.elements.dtype == np.float32 else value.item()

    def __setitem__(self, i: int, value: Any) -> None:
        self.elements[self.span(i, 1)] = value


def operand_at(
    words: Row, index: int, bases: Bases, dtype: type[np.generic], count: int | None, written: bool
) -> Pointer:
    """Return the operand in the word ``index``, of ``count`` elements if known, writable or not.

    Raises ValueError: it is not aligned; IndexError: it extends beyond its region.
    """
    word = int(words[index])
    region, size = bases[word >> REGION_SHIFT], np.dtype(dtype).itemsize
    first, left = divmod(word & ((1 << REGION_SHIFT) - 1), size)
    if left:
        raise ValueError(f"word {index} of a row: its byte is not aligned to {size}")
    elements = region[: len(region) // size * size].view(dtype)
    if count is not None:
        elements, first = elements[Pointer(elements, first).span(0, count)], 0
    if not written:
        elements = elements.view()
        elements.flags.writeable = False
    return Pointer(elements, first)


def real_at(words: Row, index: int) -> float:
    """Return the float64 that ``real_bits`` packed into the word ``index``."""
    return struct.unpack("<d", struct.pack("<q", int(words[index])))[0]
