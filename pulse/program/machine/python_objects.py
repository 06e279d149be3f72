"""Python objects in compiled code that holds the GIL: dicts and plain numpy arrays, by their addresses.

The code calls functions of Python's stable interface and one of numpy's C interface, whose addresses are in a struct,
so machine code that comes with the package is linked without Python. It reads the headers of arrays as numpy's C
interface declares them (``PyArrayObject_fields``, unchanged since version 1.0).
"""

import ctypes
import functools

import numpy as np

from pulse.jit.language.address import words_at
from pulse.jit.language.foreign import c_function_at, c_signature
from pulse.jit.language.structs import Struct, struct_at
from pulse.jit.python_call import address_of_function
from pulse.jit.registry import device
from pulse.jit.rows.fields import WORD_BYTES

HEADER_BYTES = object.__basicsize__
"""The bytes of the header of every Python object; its last word is the address of the type."""
DATA, AXES, SHAPE, DTYPE, FLAGS = 0, 1, 2, 5, 6
"""Fields of an array, in words after the header."""
CONTIGUOUS, ALIGNED, WRITEABLE, WARNS = 0x1, 0x100, 0x400, 0x80000000
"""Flags of an array; with the last one, numpy warns before the array is written."""
READ, WRITTEN = CONTIGUOUS | ALIGNED, CONTIGUOUS | ALIGNED | WRITEABLE
"""The flags that an array must have to be read or written."""
C_INT_MASK = 0xFFFFFFFF
"""The bits of a C int in a word."""

PYARRAY_EMPTY_INDEX = 184
"""The index of PyArray_Empty in numpy's table of functions, unchanged since version 1.0."""
FUNCTIONS = {
    "dict_size": "PyDict_Size",
    "dict_get": "PyDict_GetItem",
    "dict_new": "PyDict_New",
    "dict_set": "PyDict_SetItem",
    "increment": "Py_IncRef",
    "decrement": "Py_DecRef",
    "clear_error": "PyErr_Clear",
    "save_thread": "PyEval_SaveThread",
    "restore_thread": "PyEval_RestoreThread",
}
"""The function of the interpreter that each field of ``Interpreter`` with an address of a function holds."""


class Interpreter(Struct):
    """Addresses of objects and functions of this process.

    header                          ``HEADER_BYTES``
    array_type, dict_type, nothing  numpy.ndarray, dict, None
    array_new                       PyArray_Empty
    dict_size, dict_get, dict_new, dict_set   functions in ``FUNCTIONS``, as all that follow
    increment, decrement, clear_error         of references and of the error that is raised
    save_thread, restore_thread               release and acquire the lock of Python
    """

    header: int
    array_type: int
    dict_type: int
    nothing: int
    array_new: int
    dict_size: int
    dict_get: int
    dict_new: int
    dict_set: int
    increment: int
    decrement: int
    clear_error: int
    save_thread: int
    restore_thread: int


class ArrayForm(Struct):
    """The required form of an array.

    dtype     address of the dtype's object
    axes      number of axes
    shape     address of the sizes
    flags     the flags that must be set
    elements  number of elements
    floats    bytes of an element if it may be NaN; else 0
    """

    dtype: int
    axes: int
    shape: int
    flags: int
    elements: int
    floats: int


class TypeWord(Struct):
    """The last word of an object's header: its class."""

    kind: int


interpreter_at, forms_at, type_word_at = struct_at(Interpreter), struct_at(ArrayForm), struct_at(TypeWord)
_call_none = c_function_at(c_signature(None))
_call_object = c_function_at(c_signature(None, "i64"))
_give_object = c_function_at(c_signature("i64"))
_dict_size = c_function_at(c_signature("i64", "i64"))
_dict_get = c_function_at(c_signature("i64", "i64", "i64"))
_dict_set = c_function_at(c_signature("i32", "i64", "i64", "i64"))
_array_new = c_function_at(c_signature("i64", "i32", "i64", "i64", "i32"))


@device
def class_of(interpreter: Interpreter, item: int) -> int:
    """Return the address of an object's class."""
    return type_word_at(item + interpreter.header - WORD_BYTES).kind


@device
def hold(interpreter: Interpreter, item: int) -> None:
    """Add a reference to an object."""
    _call_object(interpreter.increment, item)


@device
def release(interpreter: Interpreter, item: int) -> None:
    """Drop a reference to an object."""
    _call_object(interpreter.decrement, item)


@device
def clear_error(interpreter: Interpreter) -> None:
    """Forget the exception that a function has raised."""
    _call_none(interpreter.clear_error)


@device
def save_thread(interpreter: Interpreter) -> int:
    """Release the GIL; return what ``restore_thread`` needs."""
    return _give_object(interpreter.save_thread)


@device
def restore_thread(interpreter: Interpreter, thread: int) -> None:
    """Acquire the GIL again."""
    _call_object(interpreter.restore_thread, thread)


@device
def dict_size(interpreter: Interpreter, table: int) -> int:
    """Return the number of items of a dict."""
    return _dict_size(interpreter.dict_size, table)


@device
def dict_get(interpreter: Interpreter, table: int, key: int) -> int:
    """Return the value of a key, without a reference to it; 0 if there is none."""
    return _dict_get(interpreter.dict_get, table, key)


@device
def dict_new(interpreter: Interpreter) -> int:
    """Return a new dict; 0 after an exception."""
    return _give_object(interpreter.dict_new)


@device
def dict_set(interpreter: Interpreter, table: int, key: int, value: int) -> bool:
    """Set the value of a key, which adds references to both; return whether it did, False after an exception."""
    return _dict_set(interpreter.dict_set, table, key, value) == 0


@device
def array_new(interpreter: Interpreter, form: ArrayForm) -> int:
    """Return a new C-contiguous array with undefined elements; 0 after an exception."""
    hold(interpreter, form.dtype)  # the array takes over this reference
    return _array_new(interpreter.array_new, form.axes, form.shape, form.dtype, 0)


@device
def data_of(interpreter: Interpreter, array: int) -> int:
    """Return the address of an array's elements."""
    return words_at(array + interpreter.header)[DATA]


@device
def has_form(interpreter: Interpreter, form: ArrayForm, item: int) -> bool:
    """Return whether an object is a plain array of that form."""
    if class_of(interpreter, item) != interpreter.array_type:
        return False
    fields = words_at(item + interpreter.header)
    fits = (fields[DTYPE] == form.dtype) and (fields[AXES] & C_INT_MASK) == form.axes
    fits = fits and (fields[FLAGS] & (form.flags | WARNS)) == form.flags
    if fits:
        actual, expected = words_at(fields[SHAPE]), words_at(form.shape)
        for axis in range(form.axes):
            fits = fits and actual[axis] == expected[axis]
    return fits


@functools.cache
def this_interpreter() -> Interpreter:
    """Return the addresses of this process."""
    interpreter = Interpreter.new()
    interpreter.header, interpreter.array_type, interpreter.dict_type = HEADER_BYTES, id(np.ndarray), id(dict)
    interpreter.nothing, interpreter.array_new = id(None), _numpy_function(PYARRAY_EMPTY_INDEX)
    for field, name in FUNCTIONS.items():
        setattr(interpreter, field, address_of_function(name))
    return interpreter


def _numpy_function(index: int) -> int:
    """Return the address of a function of numpy's C interface."""
    from numpy._core import multiarray

    table = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )(multiarray._ARRAY_API, None)  # pyright: ignore[reportAttributeAccessIssue]
    return (ctypes.c_void_p * (index + 1)).from_address(table)[index] or 0


@functools.cache
def arrays_are_known() -> bool:
    """Return whether numpy's array headers have the layout that this module expects, checked on one array."""
    array = np.zeros((3, 5), np.float32)[:2, 1:4]
    words = (ctypes.c_int64 * (HEADER_BYTES // WORD_BYTES + FLAGS + 1)).from_address(id(array))
    kind, fields = words[HEADER_BYTES // WORD_BYTES - 1], words[HEADER_BYTES // WORD_BYTES :]
    return (
        kind == id(np.ndarray)
        and fields[DATA] == array.ctypes.data
        and fields[AXES] & C_INT_MASK == array.ndim
        and tuple((ctypes.c_int64 * 2).from_address(fields[SHAPE])) == array.shape
        and fields[DTYPE] == id(array.dtype)
        and fields[FLAGS] & (WRITTEN | WARNS) == ALIGNED | WRITEABLE
    )
