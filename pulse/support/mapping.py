"""Large arrays mapped from a file: the system reads them on use, and may reclaim their memory."""

import ctypes
import mmap
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

ALIGNMENT = 64
"""The alignment of arrays and buffers: the bytes of a cache line and of the widest vector register."""
MIN_MAPPED_BYTES = 1 << 26
"""The minimum size of weights that are mapped from a file, so that their memory is released early."""


def align_up(size: int) -> int:
    """Return a number of bytes rounded up to the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def aligned_bytes(size: int) -> NDArray[np.uint8]:
    """Return zeroed bytes at an aligned address."""
    raw = np.zeros(size + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size]


def map_arrays(arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Map nonempty arrays from an unnamed temporary file that lasts as long as one of them.

    Raises OSError: the folder of temporary files refuses, or has no space
    """
    from tempfile import TemporaryFile

    sizes = [align_up(array.nbytes) for array in arrays]
    offsets = list(accumulate(sizes, initial=0))[:-1]
    with TemporaryFile() as file:
        file.truncate(sum(sizes))
        for offset, array in zip(offsets, arrays):
            file.seek(offset)
            file.write(np.ascontiguousarray(array).data)
        file.flush()
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return [np.ndarray(array.shape, array.dtype, memory, offset) for offset, array in zip(offsets, arrays)]


def release_pages(array: NDArray[Any]) -> None:
    """Release the memory of the file that an array is mapped from; it is read again on use.

    Nothing happens to other arrays.
    """
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    while isinstance(base, memoryview):
        base = base.obj
        while isinstance(base, np.ndarray):
            base = base.base
    if isinstance(base, mmap.mmap) and hasattr(base, "madvise") and not array.flags.writeable:
        base.madvise(mmap.MADV_DONTNEED)


def release_heap() -> None:
    """Give the memory that glibc keeps after it was freed back to the system; large models leave much of it."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return
    trim(0)
