"""Structs: memory that threads, compiled code and Python share, its fields declared once.

A declaration is a class; a field is a number, a real, several ``numbers``, or another struct::

    class Gate(Struct):
        function: int
        shut: int
        entered: int = starts_line()

    gate_at = struct_at(Gate)

``entered`` has another writer than the fields before it, so it begins a cache line.

Compiled or not, ``gate_at(address)`` is the struct there; ``gate.shut`` loads a field, ``gate.shut = 1`` stores one.
``structs[i]`` is struct i after it. ``atomics`` takes a struct and the name of a field. In compiled code, a field
is at an offset that the compiler knows; ``codegen.structs`` defines that for numba.
"""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from pulse.jit.language.declared import UNREGISTERED, StructAt
from pulse.jit.rows.fields import LINE_WORDS, WORD_BYTES, Field, Fields, Spec, fields_of, words_of


def numbers(count: int | None = None) -> Any:
    """Declare this many int64; None, for the last field: up to the end of the memory."""
    return field(metadata={"spec": Spec("numbers", count=() if count is None else (count,))})


class Struct(Fields):
    """Fields in memory that the creator of the struct owns.

    words  the int64 from its first word to the end of the memory
    """

    __slots__ = ("_numbers", "_reals", "words")
    words: NDArray[np.int64]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(init=False, eq=False, repr=False)(cls)
        for member in fields_of(cls).values():
            if hasattr(Struct, member.name):
                raise TypeError(
                    f"{cls.__name__}.{member.name}: structs use this name for something else; rename the field"
                )
            setattr(cls, member.name, property(_getter(member)))

    def __init__(self, words: NDArray[np.int64]) -> None:
        size = words_of(type(self))
        if words.dtype != np.int64 or not words.flags.c_contiguous or words.size < size:
            raise ValueError(f"{type(self).__name__}: needs {size} int64, got {words.size} of {words.dtype}")
        words = words.reshape(-1)
        memory = words.view(np.uint8).data
        object.__setattr__(self, "words", words)
        object.__setattr__(self, "_numbers", memory.cast("q"))
        object.__setattr__(self, "_reals", memory.cast("d"))

    @classmethod
    def new(cls, count: int = 1, more: int = 0) -> Self:
        """Allocate zeroed structs on a cache line; ``more``: the words of numbers up to the end."""
        words = max(count, 1) * words_of(cls) + more
        memory = np.zeros(words + LINE_WORDS, np.int64)
        first = -memory.ctypes.data // WORD_BYTES % LINE_WORDS
        return cls(memory[first : first + words])

    @classmethod
    def at(cls, address: int) -> Self:
        """Return the struct at an address."""
        memory = (ctypes.c_int64 * words_of(cls)).from_address(address)
        return cls(np.ctypeslib.as_array(memory))

    @property
    def address(self) -> int:
        """The address of the first word."""
        return self.words.ctypes.data

    def address_of(self, name: str) -> int:
        """Return the address of a field. Raises KeyError: no field has that name."""
        return self.address + WORD_BYTES * fields_of(type(self))[name].word

    def __getitem__(self, i: int) -> Self:
        return type(self)(self.words[i * words_of(type(self)) :])

    def __setattr__(self, name: str, value: float) -> None:
        member = fields_of(type(self)).get(name)
        if member is None or member.kind not in ("number", "real"):
            raise AttributeError(f"{type(self).__name__} has no number {name!r}")
        if member.kind == "real":
            self._reals[member.word] = value
        else:
            self._numbers[member.word] = value


S = TypeVar("S", bound=Struct)


def _getter(member: Field) -> Callable[[Any], Any]:
    """Return a function that reads a field of a struct."""
    word, group = member.word, member.group
    if member.kind == "number":
        return lambda struct: struct._numbers[word]
    if member.kind == "real":
        return lambda struct: struct._reals[word]
    if group is not None:
        return lambda struct: group(struct.words[word : word + words_of(group)])
    end = None if not member.spec.count else word + int(member.spec.count[0])
    return lambda struct: struct.words[word:end]


def bytes_of(kind: type[Struct]) -> int:
    """Return how many bytes the fields take."""
    return WORD_BYTES * words_of(kind)


def struct_at(kind: type[S]) -> Callable[[int], S]:
    """Return a function from an address to the struct of this kind there."""

    def view(address: int) -> S:
        return kind.at(address)

    view.__module__, view.__qualname__ = kind.__module__, f"{kind.__qualname__} at"
    UNREGISTERED.append(StructAt(view, kind))
    return view
