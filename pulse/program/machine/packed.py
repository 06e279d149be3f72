"""One compiled call that steps a stream from packed bytes into packed bytes.

It is meant for compiled callers. The tensors of a packed pulse are C-contiguous and follow each other, each at a
multiple of 64 bytes.
"""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from pulse.facts import Array
from pulse.jit.language.address import bytes_at
from pulse.jit.language.raw import move_bytes
from pulse.jit.language.structs import Struct, struct_at
from pulse.jit.registry import device
from pulse.jit.rows.fields import FLOAT_BYTES
from pulse.jit.rows.pointer import Pointer
from pulse.program.machine.machine import run_rows
from pulse.program.table.memory import align
from pulse.support.not_copyable import NotCopyable
from pulse.support.record import record


class MachineCall(Struct):
    """A call of the machine, and the boxes of the tensors to copy before and after it.

    table, rows, bases          arguments of the machine: addresses of the table and the bases, number of rows
    constants, inputs, outputs  how many there are
    fixed                       address of the bytes of the constants
    faults                      address of the ``Count`` of values without a result; 0 if there is none
    boxes                       address of the boxes: of constants, inputs, outputs
    """

    table: int
    rows: int
    bases: int
    constants: int
    inputs: int
    outputs: int
    fixed: int
    faults: int
    boxes: int


class Box(Struct):
    """The memory layout of a tensor: groups of runs of bytes, with equal distances in a group.

    memory       address of the tensor
    offset       offset of the packed tensor, in bytes
    run          bytes of a run
    count        number of runs in a group
    step         bytes from run to run in the tensor
    packed_step  bytes from run to run in the packed tensor
    groups       number of groups
    axes         number of axes of the groups
    first_axis   address of these axes, the innermost first
    """

    memory: int
    offset: int
    run: int
    count: int
    step: int
    packed_step: int
    groups: int
    axes: int
    first_axis: int


class AxisStride(Struct):
    """An axis: its size, and bytes from one to the next, in the tensor and in the packed one."""

    size: int
    step: int
    packed_step: int


class Count(Struct):
    """A counter."""

    count: int


packed_call_at = struct_at(MachineCall)
boxes_at = struct_at(Box)
axes_at = struct_at(AxisStride)
count_at = struct_at(Count)


@record
class PackedTensor:
    """A tensor in a packed pulse: its first byte, shape and dtype."""

    name: str
    offset: int
    shape: tuple[int, ...]
    dtype: "np.dtype[np.generic]"

    def view(self, memory: Array) -> Array:
        """Return the tensor in the bytes of a packed pulse."""
        size = prod(self.shape) * self.dtype.itemsize
        return memory[self.offset : self.offset + size].view(self.dtype).reshape(self.shape)


@record
class PackedCall(NotCopyable, reason="it holds addresses of this process; pack() a copy of its state"):
    """The arguments of ``packed_step`` for a state, and the layout of its pulses.

    call                       the call for compiled code
    kept                       the objects whose addresses it holds
    inputs, outputs            the packed tensors of the streaming inputs and of all outputs, in the program's order
    input_bytes, output_bytes  the bytes of a packed pulse
    """

    call: MachineCall
    kept: tuple[Array | Struct, ...]
    inputs: tuple[PackedTensor, ...]
    outputs: tuple[PackedTensor, ...]
    input_bytes: int
    output_bytes: int


NamedViews = Sequence[tuple[str, Array]]
"""Names and views of tensors."""


def pack(
    call: tuple[int, int, int],
    inputs: NamedViews,
    outputs: NamedViews,
    constants: NamedViews,
    values: Mapping[str, Array],
    faults: int = 0,
) -> PackedCall:
    """Pack a call of the machine: (table, rows, bases).

    values   the constants' values, copied in each pulse, since the arena may overlap them
    faults   the address of the ``Count`` of values without a result
    """
    packed_inputs, input_bytes = _packed_tensors(inputs)
    packed_outputs, output_bytes = _packed_tensors(outputs)
    packed_constants, fixed_bytes = _packed_tensors(constants)
    fixed = np.zeros(max(fixed_bytes, 1), np.uint8)
    for tensor in packed_constants:
        tensor.view(fixed)[...] = values[tensor.name]
    arrays = [array for _, array in (*constants, *inputs, *outputs)]
    boxes, axes = Box.new(len(arrays)), AxisStride.new(1 + sum(array.ndim for array in arrays))
    first = 0
    for index, (tensor, array) in enumerate(
        zip((*packed_constants, *packed_inputs, *packed_outputs), arrays)
    ):
        boxes[index].offset = tensor.offset
        _set_box(boxes[index], array, axes[first])
        first += array.ndim
    machine_call = MachineCall.new()
    machine_call.table, machine_call.rows, machine_call.bases = call
    machine_call.constants = len(constants)
    machine_call.inputs = len(inputs)
    machine_call.outputs = len(outputs)
    machine_call.fixed, machine_call.faults, machine_call.boxes = fixed.ctypes.data, faults, boxes.address
    return PackedCall(
        machine_call, (fixed, boxes, axes), packed_inputs, packed_outputs, input_bytes, output_bytes
    )


def _packed_tensors(views: NamedViews) -> tuple[tuple[PackedTensor, ...], int]:
    tensors: list[PackedTensor] = []
    size = 0
    for name, array in views:
        tensors.append(PackedTensor(name, size, array.shape, array.dtype))
        size += align(max(array.nbytes, 1))
    return tuple(tensors), size


def _set_box(box: Box, array: Array, innermost: AxisStride) -> None:
    """Describe the layout of a tensor in as few runs of bytes as possible, in large groups."""
    run = array.dtype.itemsize if array.size else 0
    steps = [run * prod(array.shape[axis + 1 :]) for axis in range(array.ndim)]
    axes = [axis for axis in zip(array.shape, array.strides, steps) if axis[0] != 1]
    while axes and axes[-1][1] == run:
        run *= axes.pop()[0]
    box.memory, box.run = array.ctypes.data, run
    longest = max(range(len(axes)), key=lambda index: axes[index][0], default=None)
    box.count, box.step, box.packed_step = (1, 0, 0) if longest is None else axes.pop(longest)
    box.groups, box.axes = prod(size for size, _, _ in axes), len(axes)
    box.first_axis = innermost.address
    for index, (size, step, packed_stride) in enumerate(reversed(axes)):
        axis = innermost[index]
        axis.size, axis.step, axis.packed_step = size, step, packed_stride


@device
def _copy_runs(
    target: Pointer, target_step: int, source: Pointer, source_step: int, run: int, count: int
) -> None:
    """Copy ``count`` runs of bytes between u8 pointers, ``target_step`` and ``source_step`` bytes apart."""
    if run == FLOAT_BYTES:
        for i in range(count):
            move_bytes(target + i * target_step, source + i * source_step, FLOAT_BYTES)
    else:
        for i in range(count):
            move_bytes(target + i * target_step, source + i * source_step, run)


@device
def copy_box(box: Box, packed: Pointer, inward: bool) -> None:
    """Copy between a tensor and packed bytes."""
    memory, run, count, step = bytes_at(box.memory), box.run, box.count, box.step
    packed, packed_stride, axes = packed + box.offset, box.packed_step, axes_at(box.first_axis)
    for group in range(box.groups):
        left, offset, packed_offset = group, 0, 0
        for i in range(box.axes):
            axis = axes[i]
            index = left % axis.size
            offset += index * axis.step
            packed_offset += index * axis.packed_step
            left //= axis.size
        if inward:
            _copy_runs(memory + offset, step, packed + packed_offset, packed_stride, run, count)
        else:
            _copy_runs(packed + packed_offset, packed_stride, memory + offset, step, run, count)


@device
def _copy_boxes(boxes: Box, count: int, packed: int, inward: bool) -> None:
    for index in range(count):
        copy_box(boxes[index], bytes_at(packed), inward)


@device
def fault_count(call: MachineCall) -> int:
    """Return the number of values of the stream that had no result."""
    faults = 0
    if call.faults != 0:
        faults = count_at(call.faults).count
    return faults


@device
def take_faults(call: MachineCall) -> int:
    """Return the number of faults since the last call."""
    faults = fault_count(call)
    if faults != 0:
        count_at(call.faults).count = 0
    return faults


@device
def packed_step(call: MachineCall, inputs: int, outputs: int) -> None:
    """Run one pulse; ``inputs`` and ``outputs`` are addresses of packed bytes."""
    boxes = boxes_at(call.boxes)
    _copy_boxes(boxes, call.constants, call.fixed, True)
    _copy_boxes(boxes[call.constants], call.inputs, inputs, True)
    run_rows(call.table, call.rows, call.bases)
    _copy_boxes(boxes[call.constants + call.inputs], call.outputs, outputs, False)
