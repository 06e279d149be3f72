# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
"""A pulse as one compiled call: inputs from packed bytes, the machine, outputs to packed bytes.

For callers that are compiled themselves. The tensors of a packed pulse lie one after the other, each C-contiguous
and at a multiple of 64 bytes.
"""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from pulse.facts import Array
from pulse.jit.address import bytes_at, words_at
from pulse.jit.pointer import Pointer
from pulse.jit.raw import as_i32, move_bytes
from pulse.jit.registry import device
from pulse.not_copyable import NotCopyable
from pulse.program.machine import run_rows
from pulse.program.memory import aligned
from pulse.record import record

TABLE, ROWS, BASES, CONSTANTS, INPUTS, OUTPUTS, FIXED, FAULTS, BOXES = range(9)
"""Words in front of the boxes of constants, inputs and outputs; FIXED is the address of the constants' bytes, FAULTS
that of the word that counts values without a result, 0 where there is none."""
ADDRESS, OFFSET, RUN, COUNT, STEP, OUTER, AXES = range(7)
"""Words of a box: its address, its packed offset, bytes of a run, how many runs and how far apart, how many groups
of runs, how many axes those have; then size and step of each axis, the innermost first."""


@record
class Slot:
    """Where a tensor is in a packed pulse: its first byte, shape and dtype."""

    name: str
    offset: int
    shape: tuple[int, ...]
    dtype: "np.dtype[np.generic]"

    def view(self, memory: Array) -> Array:
        """The tensor in the bytes of a packed pulse."""
        size = prod(self.shape) * self.dtype.itemsize
        return memory[self.offset : self.offset + size].view(self.dtype).reshape(self.shape)


@record
class Packed(NotCopyable):
    """What ``packed_step`` needs of a state, and the layout of its pulses.

    words, constants          to be kept as long as the address of the words is in use
    inputs, outputs           in the order of the program's streaming inputs, and of all outputs
    input_bytes, output_bytes of a packed pulse
    """

    instead = "it holds addresses of this process; copy its state, and call packed() on the copy"

    words: NDArray[np.int64]
    constants: Array
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    input_bytes: int
    output_bytes: int


Tensors = Sequence[tuple[str, Array]]
"""Names, and views of where the tensors are."""


def pack(
    call: tuple[int, int, int],
    inputs: Tensors,
    outputs: Tensors,
    constants: Tensors,
    values: Mapping[str, Array],
    faults: int = 0,
) -> Packed:
    """The packed form of a call of the machine: table, rows, bases.

    values   of the constants, which each pulse needs anew: scratch may lie over their places
    faults   the address of the word that counts values without a result
    """
    slots_in, input_bytes = _slots(inputs)
    slots_out, output_bytes = _slots(outputs)
    slots_fixed, fixed_bytes = _slots(constants)
    fixed = np.zeros(max(fixed_bytes, 1), np.uint8)
    for slot in slots_fixed:
        slot.view(fixed)[...] = values[slot.name]
    words = [*call, len(constants), len(inputs), len(outputs), fixed.ctypes.data, faults]
    for slot, (_, place) in zip((*slots_fixed, *slots_in, *slots_out), (*constants, *inputs, *outputs)):
        words += _box(place, slot.offset)
    return Packed(np.array(words, np.int64), fixed, slots_in, slots_out, input_bytes, output_bytes)


def _slots(tensors: Tensors) -> tuple[tuple[Slot, ...], int]:
    slots: list[Slot] = []
    size = 0
    for name, place in tensors:
        slots.append(Slot(name, size, place.shape, place.dtype))
        size += aligned(max(place.nbytes, 1))
    return tuple(slots), size


def _box(place: Array, offset: int) -> list[int]:
    """How the elements of a tensor lie, as few runs of bytes as possible."""
    run = place.dtype.itemsize if place.size else 0
    axes = [(size, step) for size, step in zip(place.shape, place.strides) if size != 1]
    while axes and axes[-1][1] == run:
        run *= axes.pop()[0]
    count, step = axes.pop() if axes else (1, 0)
    outer = int(np.prod([size for size, _ in axes], dtype=np.int64))
    box = [place.ctypes.data, offset, run, count, step, outer, len(axes)]
    for size, far in reversed(axes):
        box += [size, far]
    return box


@device
def _copy_runs(
    target: Pointer, target_step: int, source: Pointer, source_step: int, run: int, count: int
) -> None:
    """``count`` runs of bytes, so far apart in target and source; u8 pointers."""
    if run == 4:
        for i in range(count):
            as_i32(target + i * target_step)[0] = as_i32(source + i * source_step)[0]
    else:
        for i in range(count):
            move_bytes(target + i * target_step, source + i * source_step, run)


@device
def _copy_box(box: Pointer, packed: Pointer, inward: bool) -> None:
    """Between a tensor's place and packed bytes."""
    place, run, count, step = bytes_at(box[ADDRESS]), box[RUN], box[COUNT], box[STEP]
    packed = packed + box[OFFSET]
    for group in range(box[OUTER]):
        left, far = group, 0
        for axis in range(box[AXES]):
            size = box[AXES + 1 + 2 * axis]
            far += left % size * box[AXES + 2 + 2 * axis]
            left //= size
        if inward:
            _copy_runs(place + far, step, packed, run, run, count)
        else:
            _copy_runs(packed, run, place + far, step, run, count)
        packed = packed + run * count


@device
def _copy_boxes(box: Pointer, count: int, packed: int, inward: bool) -> Pointer:
    """So many boxes; gives what lies behind them."""
    for _ in range(count):
        _copy_box(box, bytes_at(packed), inward)
        box = box + (AXES + 1 + 2 * box[AXES])
    return box


@device
def fault_count(words: Pointer) -> int:
    """How many values of the stream had no result: of ``Packed.words``."""
    found = 0
    if words[FAULTS] != 0:
        found = words_at(words[FAULTS])[0]
    return found


@device
def take_faults(words: Pointer) -> int:
    """The same since the last time."""
    found = fault_count(words)
    if found != 0:
        words_at(words[FAULTS])[0] = 0
    return found


@device
def packed_step(words: Pointer, inputs: int, outputs: int) -> None:
    """Run one pulse: ``Packed.words``, and the addresses of the bytes of its inputs and of its outputs."""
    box = _copy_boxes(words + BOXES, words[CONSTANTS], words[FIXED], True)
    box = _copy_boxes(box, words[INPUTS], inputs, True)
    run_rows(words[TABLE], words[ROWS], words[BASES])
    _copy_boxes(box, words[OUTPUTS], outputs, False)
