"""The memories of a program: weights (shared by all streams), state (of one stream), arena (of a step)."""

import mmap
from collections.abc import Sequence
from dataclasses import field
from enum import IntEnum
from math import prod

import numpy as np

from pulse.facts import Array, DType
from pulse.support.equal_arrays import EqualArrays
from pulse.support.mapping import ALIGNMENT, align_up, aligned_bytes
from pulse.support.record import record

MIN_RELEASED_BYTES = 1 << 18
"""Minimum number of bytes of a run with memory of its own, which is released as soon as it is in the image."""


class Region(IntEnum):
    """The memories that a row's operands point into. A single stream has the first three."""

    WEIGHTS = 0
    STATE = 1
    ARENA = 2
    WINDOWS = 3


@record(eq=False, frozen=False)
class Buffer:
    """A run of bytes in one region.

    region, size  where it is, and its bytes
    offset        its first byte in the region; in the arena -1 until all instructions are known
    first, last   the numbers of the first and the last instruction that touch it
    """

    region: Region
    size: int
    offset: int = -1
    first: int = 1 << 60
    last: int = -1

    def touch(self, instruction: int) -> None:
        """Record that an instruction reads or writes it."""
        self.first = min(self.first, instruction)
        self.last = max(self.last, instruction)


@record(eq=False)
class TensorView:
    """A tensor in a buffer.

    buffer           its memory
    offset, strides  its first element in the buffer, and the strides, in elements
    shape, dtype     as in numpy
    """

    buffer: Buffer
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def order(self) -> tuple[int, ...]:
        """The axes from the outermost in memory to the innermost; axes of size one first."""
        return tuple(
            sorted(
                range(len(self.shape)),
                key=lambda axis: (self.shape[axis] != 1, -abs(self.strides[axis]), axis),
            )
        )

    def is_dense(self, axes: Sequence[int]) -> bool:
        """Return whether the elements along these axes, in this order, are contiguous; ignores axes of size one."""
        step = 1
        for axis in reversed(axes):
            if self.shape[axis] == 1:
                continue
            if self.strides[axis] != step:
                return False
            step *= self.shape[axis]
        return True

    def view(self, shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> "TensorView":
        """Return another shape of the same buffer, which starts ``offset`` elements later."""
        return TensorView(self.buffer, self.offset + offset, tuple(shape), tuple(strides), self.dtype)

    def transpose(self, perm: Sequence[int]) -> "TensorView":
        """Return the tensor with its axes in another order."""
        return self.view([self.shape[axis] for axis in perm], [self.strides[axis] for axis in perm])

    def part(self, axis: int, start: int, stop: int, step: int = 1) -> "TensorView":
        """Return the positions from ``start`` to ``stop`` of an axis."""
        shape, strides = list(self.shape), list(self.strides)
        shape[axis] = max(0, -(-(stop - start) // step))
        strides[axis] *= step
        return self.view(shape, strides, start * self.strides[axis])

    def reshape(self, shape: Sequence[int]) -> "TensorView | None":
        """Return the same elements in the same logical order, as a view; None if that needs a copy."""
        base = np.lib.stride_tricks.as_strided(
            np.empty(1, np.int8), self.shape, self.strides, writeable=False
        )
        if self.size == 0:
            return self.view(shape, dense_strides(shape, range(len(shape))))
        try:
            other = base.reshape(tuple(shape), copy=False)
        except ValueError:
            return None
        return self.view(shape, other.strides)

    def offsets(self, axes: Sequence[int]) -> Array:
        """Return the element offsets of every position of some axes, from this value's; the last axis is fastest."""
        return grid_offsets([self.strides[axis] for axis in axes], [self.shape[axis] for axis in axes])


def grid_offsets(steps: Sequence[int], sizes: Sequence[int]) -> Array:
    """Return the offsets of every position of some axes; the last axis varies fastest."""
    total = np.zeros((), np.int64)
    for step, size in zip(steps, sizes):
        total = total[..., None] + np.arange(size, dtype=np.int64) * step
    return total.ravel()


def dense_strides(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Return strides without gaps for axes in an order, the outermost first."""
    strides, step = [0] * len(shape), 1
    for axis in reversed(list(order)):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


@record(frozen=False)
class Image:
    """Bytes that are known at compile time, each run aligned."""

    region: Region
    runs: list[Array] = field(default_factory=list[Array])
    size: int = 0
    _shared: EqualArrays[Buffer] = field(default_factory=EqualArrays[Buffer])

    def add(self, data: Array, shared: bool) -> Buffer:
        """Append an array; equal bytes are stored once if they may be shared."""
        raw = np.ascontiguousarray(data).view(np.uint8).ravel() if data.size else np.zeros(0, np.uint8)
        if shared and (known := next(self._shared.find(raw), None)) is not None:
            return known
        buffer = Buffer(self.region, raw.size, self.size)
        if raw.size >= MIN_RELEASED_BYTES:
            # Separate memory, which is returned to the system as soon as it is in the image.
            mapped = np.frombuffer(mmap.mmap(-1, raw.size), np.uint8)
            mapped[:] = raw
            raw = mapped
        self.runs.append(raw)
        self.size += align(raw.size)
        if shared:
            self._shared.add(raw, buffer)
        return buffer

    def assemble(self) -> Array:
        """Return all bytes at an aligned address. Call it only once: it releases the runs one by one."""
        image = aligned_bytes(max(self.size, ALIGNMENT))
        start = 0
        runs, self.runs = self.runs[::-1], []
        self._shared = EqualArrays[Buffer]()
        while runs:
            run = runs.pop()
            image[start : start + run.size] = run
            start += align(run.size)
        return image


def align(size: int) -> int:
    """Return the size rounded up to the alignment, with space so that no two runs share a cache line."""
    return align_up(max(size, 1))


def place_buffers(buffers: Sequence[Buffer]) -> int:
    """Give each arena buffer an offset so that buffers alive at the same time do not overlap; return the size in bytes.

    Buffers are placed largest first, each in the lowest gap.
    """
    placed: list[Buffer] = []
    total = 0
    for buffer in sorted(buffers, key=lambda buffer: -buffer.size):
        offset = 0
        for other in sorted(
            (other for other in placed if other.first <= buffer.last and buffer.first <= other.last),
            key=lambda other: other.offset,
        ):
            if other.offset - offset >= align(buffer.size):
                break
            offset = max(offset, other.offset + align(other.size))
        buffer.offset = offset
        placed.append(buffer)
        total = max(total, offset + align(buffer.size))
    return total
