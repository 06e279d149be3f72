"""One compiled call that steps a stream from arrays into arrays: it checks and copies them, and runs the machine.

The arrays are plain numpy arrays that are C-contiguous and have exactly the shape and dtype of their port. If anything
is different, the call reads and writes nothing, and slower code handles the arrays.
"""

from collections.abc import Callable, Mapping
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pulse.facts import Array
from pulse.jit.entries import entry
from pulse.jit.language.address import bytes_at, doubles_at, floats_at, words_at
from pulse.jit.language.raw import as_i16
from pulse.jit.language.structs import Struct, struct_at
from pulse.jit.registry import device
from pulse.program.machine.machine import RUN, run_rows
from pulse.program.machine.packed import PackedCall, boxes_at, copy_box, packed_call_at
from pulse.program.machine.python_objects import (
    READ,
    WRITTEN,
    ArrayForm,
    array_new,
    class_of,
    clear_error,
    data_of,
    dict_get,
    dict_new,
    dict_set,
    dict_size,
    forms_at,
    has_form,
    hold,
    interpreter_at,
    release,
    restore_thread,
    save_thread,
    this_interpreter,
)

HALF_LOW, HALF_INFINITE = 0x7FFF, 0x7C00
"""The bits of a half-precision number without its sign, and the bits of infinity."""


class ArrayCall(Struct):
    """A state's pulse, and the required forms of its arrays.

    counter      address of the word that counts the pulses of the stream
    flags        address of the words that say whether the stream is changing, has failed or has ended
    call         address of the ``MachineCall``
    interpreter  address of the ``Interpreter``
    arrays       number of arrays: inputs, then outputs
    inputs       number of inputs
    forms        address of the ``ArrayForm`` of each array
    names        address of the addresses of the names
    objects      address of words for the addresses of a pulse's arrays; 0 outside of a call
    data         address of words for the addresses of their elements
    """

    counter: int
    flags: int
    call: int
    interpreter: int
    arrays: int
    inputs: int
    forms: int
    names: int
    objects: int
    data: int


class StreamFlags(Struct):
    """Whether a stream takes no pulse now: each field is 0 or 1.

    changing  a call is changing the stream, or was interrupted by an exception while it did
    failed    a pulse had faults
    ended     the end of the stream is known
    """

    changing: int
    failed: int
    ended: int


class PulseCounter(Struct):
    """A word that counts pulses."""

    pulse: int


array_call_at, flags_at, counter_at = struct_at(ArrayCall), struct_at(StreamFlags), struct_at(PulseCounter)


@device
def _find_arrays(step: ArrayCall, argument: int, first: int, count: int) -> bool:
    """Find the arrays from ``first`` on in an argument, and hold them; return whether all ``count`` match."""
    interpreter = interpreter_at(step.interpreter)
    objects = words_at(step.objects)
    names = words_at(step.names)
    forms, matching = forms_at(step.forms), 0
    if class_of(interpreter, argument) == interpreter.dict_type:
        if dict_size(interpreter, argument) == count:
            for index in range(first, first + count):
                item = dict_get(interpreter, argument, names[index])
                if item != 0:
                    hold(interpreter, item)
                    objects[index] = item
                    matching += has_form(interpreter, forms[index], item)
    elif count == 1:
        hold(interpreter, argument)
        objects[first] = argument
        matching += has_form(interpreter, forms[first], argument)
    return matching == count


@device
def _allocate_outputs(step: ArrayCall) -> bool:
    """Make new arrays for the outputs; return whether there was memory for all."""
    interpreter = interpreter_at(step.interpreter)
    objects = words_at(step.objects)
    forms = forms_at(step.forms)
    complete = True
    for index in range(step.inputs, step.arrays):
        array = array_new(interpreter, forms[index])
        objects[index] = array
        complete = complete and array != 0
    return complete


@device
def _release_arrays(step: ArrayCall) -> None:
    interpreter, objects = interpreter_at(step.interpreter), words_at(step.objects)
    for index in range(step.arrays):
        item = objects[index]
        if item != 0:
            objects[index] = 0
            release(interpreter, item)


@device
def _named_outputs(step: ArrayCall) -> int:
    """Return a new dict of the outputs by name; 0 if there is no memory for it."""
    interpreter = interpreter_at(step.interpreter)
    objects = words_at(step.objects)
    names = words_at(step.names)
    results = dict_new(interpreter)
    complete = results != 0
    for index in range(step.inputs, step.arrays):
        complete = complete and dict_set(interpreter, results, names[index], objects[index])
    if results != 0 and not complete:
        release(interpreter, results)
        results = 0
    return results


@device
def _nan_count(data: int, size: int, count: int) -> int:
    """Return how many elements are NaN."""
    count_of_nan = 0
    if size == 4:
        singles = floats_at(data)
        for i in range(count):
            count_of_nan += singles[i] != singles[i]
    elif size == 8:
        doubles = doubles_at(data)
        for i in range(count):
            count_of_nan += doubles[i] != doubles[i]
    elif size == 2:
        halves = as_i16(bytes_at(data))
        for i in range(count):
            count_of_nan += (halves[i] & HALF_LOW) > HALF_INFINITE
    return count_of_nan


@device
def _run_pulse(step: ArrayCall, refuses_nan: int) -> bool:
    """Run the pulse on the arrays' elements; return whether it ran, False if an input has NaN."""
    data, forms, nan = words_at(step.data), forms_at(step.forms), 0
    if refuses_nan != 0:
        for index in range(step.inputs):
            form = forms[index]
            nan += _nan_count(data[index], form.floats, form.elements)
    if nan == 0:
        call = packed_call_at(step.call)
        boxes = boxes_at(call.boxes)
        for index in range(call.constants):
            copy_box(boxes[index], bytes_at(call.fixed), True)
        boxes = boxes[call.constants]
        for index in range(step.inputs):
            copy_box(boxes[index], bytes_at(data[index] - boxes[index].offset), True)
        run_rows(call.table, call.rows, call.bases)
        for index in range(step.inputs, step.arrays):
            copy_box(boxes[index], bytes_at(data[index] - boxes[index].offset), False)
    return nan == 0


@device
def _hold_arrays(step: ArrayCall, feed: int, outputs: int) -> int:
    """Find or make all arrays; return a new dict of the outputs by name, 0 if any array does not match."""
    interpreter, results = interpreter_at(step.interpreter), 0
    if _find_arrays(step, feed, 0, step.inputs):
        if outputs == interpreter.nothing:
            complete = _allocate_outputs(step)
        else:
            complete = _find_arrays(step, outputs, step.inputs, step.arrays - step.inputs)
        if complete:
            results = _named_outputs(step)
        if results == 0:
            clear_error(interpreter)
    return results


@device
def _run_held(step: ArrayCall, refuses_nan: int) -> bool:
    """Run the pulse on the arrays that are held; return whether it ran."""
    interpreter, objects, data = interpreter_at(step.interpreter), words_at(step.objects), words_at(step.data)
    for index in range(step.arrays):
        data[index] = data_of(interpreter, objects[index])
    thread = save_thread(interpreter)
    ran = _run_pulse(step, refuses_nan)
    restore_thread(interpreter, thread)
    if ran:
        counter_at(step.counter).pulse += 1
    return ran


@entry("machine.step_arrays", 4, returns="object", keeps_gil=True, objects=(1, 2), bound=True)
def _step_arrays(address: int, feed: int, outputs: int, refuses_nan: int) -> int:
    step = array_call_at(address)
    interpreter, flags, results = interpreter_at(step.interpreter), flags_at(step.flags), 0
    if flags.changing == 0 and flags.failed == 0 and flags.ended == 0:
        flags.changing = 1  # other threads are refused
        results = _hold_arrays(step, feed, outputs)
        if results != 0 and not _run_held(step, refuses_nan):
            release(interpreter, results)
            results = 0
        _release_arrays(step)
        flags.changing = 0
    if results == 0:
        results = interpreter.nothing
        hold(interpreter, results)
    return results


STEP_ARRAYS = _step_arrays
"""The compiled function that each step calls."""
STEPPING = RUN, STEP_ARRAYS
"""The entries that every stream needs."""


Arrays: TypeAlias = Mapping[str, Array] | Array
ArrayStep: TypeAlias = Callable[[Arrays, Arrays | None, bool], dict[str, Array] | None]
"""Run a pulse: the inputs, an array or arrays by name; the outputs likewise, None for new ones; whether to refuse NaN.

It returns the outputs by name; None if nothing has changed.
"""


def array_step(packed: PackedCall, counter: NDArray[np.int64], flags: StreamFlags) -> ArrayStep:
    """Return the function that runs the pulses of a state.

    packed  the state's packed call: its inputs and outputs, in order
    Raises CompileError: it cannot be compiled
    """
    tensors, inputs = (*packed.inputs, *packed.outputs), len(packed.inputs)
    dtypes = [np.dtype(tensor.dtype.type) for tensor in tensors]
    names = [tensor.name for tensor in tensors]
    shapes = np.array([size for tensor in tensors for size in tensor.shape] or [0], np.int64)
    forms, shape_address = ArrayForm.new(len(tensors)), shapes.ctypes.data
    for index, (tensor, dtype) in enumerate(zip(tensors, dtypes)):
        form = forms[index]
        form.dtype, form.axes, form.shape = id(dtype), len(tensor.shape), shape_address
        form.flags = READ if index < inputs else WRITTEN
        form.elements, form.floats = prod(tensor.shape), dtype.itemsize if dtype.kind == "f" else 0
        shape_address += 8 * len(tensor.shape)
    words = np.zeros((3, max(len(tensors), 1)), np.int64)
    words[0, : len(names)] = [id(name) for name in names]
    step, interpreter = ArrayCall.new(), this_interpreter()
    step.counter, step.flags = counter.ctypes.data, flags.address
    step.call, step.interpreter, step.forms = packed.call.address, interpreter.address, forms.address
    step.arrays, step.inputs = len(tensors), inputs
    step.names, step.objects, step.data = (row.ctypes.data for row in words)
    kept = packed, counter, flags, dtypes, names, shapes, forms, words, step, interpreter
    return STEP_ARRAYS.bind(step.address, kept)
