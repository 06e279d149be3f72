# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
"""One compiled call that steps a stream from arrays into arrays: it checks, copies and runs the machine.

The call takes plain numpy arrays that are C-contiguous and have exactly the shape and dtype of their port. It reads
their headers as numpy's C interface declares them (``PyArrayObject_fields``, unchanged since version 1.0). If an array
is anything else, the call reads and writes nothing, and slower code handles the array.
"""

import ctypes
import functools
from collections.abc import Sequence
from math import prod
from typing import cast

import numpy as np

from pulse.facts import Array
from pulse.jit.entries import entry
from pulse.jit.language.address import bytes_at, doubles_at, floats_at, words_at
from pulse.jit.language.foreign import c_function_at, c_signature
from pulse.jit.language.raw import as_i16
from pulse.jit.language.structs import Struct, struct_at
from pulse.jit.python_call import addresses
from pulse.jit.registry import device
from pulse.jit.rows.fields import WORD
from pulse.program.machine.machine import RUN, run_rows
from pulse.program.machine.packed import Packed, boxes_at, copy_box, packed_call_at
from pulse.support.not_copyable import NotCopyable

RAN, DIFFERS, HAS_NAN = 0, 1, 2
"""Results of a call: it ran; or nothing has changed, because an array does not match or an input has NaN."""

HEADER = object.__basicsize__
"""The bytes of the header of every Python object; its last word is the address of the type."""
DATA, AXES, SHAPE, DTYPE, FLAGS = 0, 1, 2, 5, 6
"""Fields of an array, in words after the header."""
CONTIGUOUS, ALIGNED, WRITEABLE, WARNS = 0x1, 0x100, 0x400, 0x80000000
"""Flags of an array; with the last one, numpy warns before the array is written."""
READ, WRITTEN = CONTIGUOUS | ALIGNED, CONTIGUOUS | ALIGNED | WRITEABLE
LOW, HALF_LOW, HALF_INFINITE = 0xFFFFFFFF, 0x7FFF, 0x7C00


class ArrayCall(Struct):
    """A state's pulse, and the required forms of its arrays."""

    call: int
    """Address of the ``Call``."""
    arrays: int
    """Inputs, then outputs."""
    inputs: int
    forms: int
    """Address of the forms."""
    object_addresses: int
    """Address of an array with the addresses of this call's arrays."""
    save: int
    """Address of the functions that release the GIL and acquire it again."""
    restore: int
    header: int
    kind: int
    """Address of the type ``numpy.ndarray``."""
    nothing: int
    """Address of None."""


class ArrayForm(Struct):
    """The required form of a port's array."""

    dtype: int
    """Address of the dtype's object."""
    axes: int
    shape: int
    """Address of the sizes."""
    flags: int
    """The flags that must be set."""
    elements: int
    floats: int
    """Bytes of an element if it may be NaN; else 0."""


class TypeWord(Struct):
    """The last word of an object's header: its class."""

    kind: int


class ArrayPair(Struct):
    """The objects of a call with one input and one output."""

    source: int
    target: int


array_call_at, forms_at = struct_at(ArrayCall), struct_at(ArrayForm)
type_word_at, pair_at = struct_at(TypeWord), struct_at(ArrayPair)
_save = c_function_at(c_signature("i64"))
_restore = c_function_at(c_signature(None, "i64"))


@device
def _fits(form: ArrayForm, array: int, header: int, kind: int) -> bool:
    """Return whether an object is an array of that form."""
    if type_word_at(array + header - WORD).kind != kind:
        return False
    fields = words_at(array + header)
    fits = (fields[DTYPE] == form.dtype) and (fields[AXES] & LOW) == form.axes
    fits = fits and (fields[FLAGS] & (form.flags | WARNS)) == form.flags
    if fits:
        actual, expected = words_at(fields[SHAPE]), words_at(form.shape)
        for axis in range(form.axes):
            fits = fits and actual[axis] == expected[axis]
    return fits


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


@entry("machine.step_arrays", 4, gives_int=True, keeps_gil=True, objects=(1, 2))
def _step_arrays(address: int, first: int, second: int, refuses_nan: int) -> int:
    step = array_call_at(address)
    addresses, forms = words_at(step.object_addresses), forms_at(step.forms)
    if first != step.nothing:
        pair = pair_at(step.object_addresses)
        pair.source, pair.target = first, second
    header = step.header
    for number in range(step.arrays):
        if not _fits(forms[number], addresses[number], header, step.kind):
            return DIFFERS
    # without the GIL from here on: only the data of the arrays is used, and the caller keeps them alive
    for number in range(step.arrays):
        addresses[number] = words_at(addresses[number] + header)[DATA]
    thread = _save(step.save)
    nan = 0
    if refuses_nan != 0:
        for number in range(step.inputs):
            form = forms[number]
            nan += _nan_count(addresses[number], form.floats, form.elements)
    if nan == 0:
        call = packed_call_at(step.call)
        boxes = boxes_at(call.boxes)
        for number in range(call.constants):
            copy_box(boxes[number], bytes_at(call.fixed), True)
        boxes = boxes[call.constants]
        for number in range(step.inputs):
            copy_box(boxes[number], bytes_at(addresses[number] - boxes[number].offset), True)
        run_rows(call.table, call.rows, call.bases)
        for number in range(step.inputs, step.arrays):
            copy_box(boxes[number], bytes_at(addresses[number] - boxes[number].offset), False)
    _restore(step.restore, thread)
    return RAN if nan == 0 else HAS_NAN


STEP_ARRAYS = _step_arrays
"""The compiled function that each step calls."""
STEPPING = RUN, STEP_ARRAYS
"""The entries that every stream needs."""


@functools.cache
def headers_are_known() -> bool:
    """Return whether numpy's array headers have the layout that this module expects, checked on one array."""
    array = np.zeros((3, 5), np.float32)[:2, 1:4]
    words = (ctypes.c_int64 * (HEADER // 8 + FLAGS + 1)).from_address(id(array))
    kind, fields = words[HEADER // 8 - 1], words[HEADER // 8 :]
    return (
        kind == id(np.ndarray)
        and fields[DATA] == array.ctypes.data
        and fields[AXES] & LOW == array.ndim
        and tuple((ctypes.c_int64 * 2).from_address(fields[SHAPE])) == array.shape
        and fields[DTYPE] == id(array.dtype)
        and fields[FLAGS] & (WRITTEN | WARNS) == ALIGNED | WRITEABLE
    )


class ArrayStep(NotCopyable):
    """The pulses of one state.

    packed  the state's packed call: its inputs and outputs, in order
    Raises CompileError
    """

    why_not = "it holds addresses of this process; copy its state"

    def __init__(self, packed: Packed) -> None:
        slots, inputs = (*packed.inputs, *packed.outputs), len(packed.inputs)
        dtypes = [np.dtype(slot.dtype.type) for slot in slots]
        shapes = np.array([size for slot in slots for size in slot.shape] or [0], np.int64)
        forms, shape_address = ArrayForm.new(len(slots)), shapes.ctypes.data
        for number, (slot, dtype) in enumerate(zip(slots, dtypes)):
            form = forms[number]
            form.dtype, form.axes, form.shape = id(dtype), len(slot.shape), shape_address
            form.flags = READ if number < inputs else WRITTEN
            form.elements, form.floats = prod(slot.shape), dtype.itemsize if dtype.kind == "f" else 0
            shape_address += 8 * len(slot.shape)
        object_addresses = np.zeros(len(slots), np.int64)
        call, interpreter = ArrayCall.new(), addresses()
        call.call, call.arrays, call.inputs = packed.call.address, len(slots), inputs
        call.forms, call.object_addresses = forms.address, object_addresses.ctypes.data
        call.save, call.restore = interpreter["PyEval_SaveThread"], interpreter["PyEval_RestoreThread"]
        call.header, call.kind, call.nothing = HEADER, id(np.ndarray), id(None)
        self._kept = packed, dtypes, shapes, forms, call
        self._object_addresses = object_addresses.data
        self._inputs = [slot.name for slot in packed.inputs]
        self._outputs = [
            (slot.name, slot.shape, dtype) for slot, dtype in zip(slots[inputs:], dtypes[inputs:])
        ]
        self._names = [slot.name for slot in packed.outputs]
        self.single_pair = (self._inputs[0], *self._outputs[0]) if (inputs, len(slots)) == (1, 2) else None
        """Name of the input, and name, shape and dtype of the output, if there is one of each; else None."""
        self.address = call.address
        self.run = STEP_ARRAYS.call
        """Arguments: the address, the two objects (None if ``take`` took them), and whether to refuse NaN."""

    def take(self, feed: object, outputs: object) -> tuple[list[object], dict[str, Array]] | None:
        """Prepare a pulse; ``feed`` and ``outputs`` are an array or arrays by name, None for new outputs.

        returns  objects that the caller keeps alive until it has run, and the outputs; None if the number of arrays is
                 not that of the ports
        """
        if outputs is None:
            outputs = {name: np.empty(shape, dtype) for name, shape, dtype in self._outputs}
        inputs, results = _objects(feed, self._inputs), _objects(outputs, self._names)
        if inputs is None or results is None:
            return None
        alive, addresses = [*inputs, *results], self._object_addresses
        for number, argument in enumerate(alive):
            addresses[number] = id(argument)
        return alive, cast("dict[str, Array]", dict(zip(self._names, results)))


def _objects(argument: object, names: Sequence[str]) -> Sequence[object] | None:
    """Return the objects under exactly these names; None if the names differ."""
    if type(argument) is not dict:
        return (argument,) if len(names) == 1 else None
    named = cast("dict[str, object]", argument)
    return [*map(named.get, names)] if len(named) == len(names) else None
