"""Scratch memory of a kernel, as plain Python; ``codegen.stack`` declares the same functions to numba.

The memory is on the stack of the thread that runs the kernel: uninitialised, and invalid when the kernel returns.
Counts are literals or constants of a module; call these functions at the top of a kernel, not in a loop.
"""

import numpy as np

from pulse.jit.rows.pointer import Pointer


class PointerTable:
    """Pointers by number: ``table[i]``, ``table[i] = p``."""

    __slots__ = ("pointers",)

    def __init__(self, pointers: list[Pointer]) -> None:
        self.pointers = pointers

    def __getitem__(self, i: int) -> Pointer:
        return self.pointers[i]

    def __setitem__(self, i: int, p: Pointer) -> None:
        self.pointers[i] = p


def stack_f32(count: int) -> Pointer:
    """Allocate ``count`` float32."""
    return Pointer(np.full(count, np.nan, np.float32), 0)


def stack_f64(count: int) -> Pointer:
    """Allocate ``count`` float64."""
    return Pointer(np.full(count, np.nan), 0)


def stack_i64(count: int) -> Pointer:
    """Allocate ``count`` int64."""
    return Pointer(np.zeros(count, np.int64), 0)


def stack_pointers(count: int) -> PointerTable:
    """Allocate ``count`` pointers to float32."""
    return PointerTable([Pointer(np.zeros(0, np.float32), 0)] * count)
