"""Check that the rows of an untrusted table stay inside their memories.

An operand with a declared number of elements reaches that far. For others, ``Instruction.reaches`` computes the span
from the numbers of the row::

    def reaches(self) -> Iterator[Reach]:
        yield self.x, table(self.rows_x, self.M) + run(self.K)

Nothing runs. Tables of offsets are read, so they must be in the weights, which no row may write.
"""

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulse.jit.rows.fields import Field, fields_of, words_of
from pulse.jit.rows.instruction import ELEMENT_DTYPES, Form, Instruction, RowFields, element_of
from pulse.jit.rows.pointer import ARENA, HEADER_WORDS, REGION_SHIFT, STATE, WEIGHTS, Pointer, real_at
from pulse.jit.rows.span import MAX_NUMBER, Located, Span, UnsafeRowError, run
from pulse.support.bounds import UNBOUNDED
from pulse.support.record import record

MAX_LOOPS = 1 << 32
"""Maximum number of loops of all rows together, a few seconds; a table with more is refused."""


@record
class CheckedInstruction:
    """A row with its fields as for a kernel in plain Python, and the span of each operand."""

    row: Instruction
    reaches: list[tuple[Located, Span]]


class TableCheck:
    """The check of one table, row by row; ``epilogue`` checks all rows together.

    weights, initial  the images of the weights and of a stream's state
    arena_bytes       the size of the arena
    """

    def __init__(self, weights: NDArray[np.uint8], initial: NDArray[np.uint8], arena_bytes: int) -> None:
        arena = np.broadcast_to(np.zeros(1, np.uint8), (arena_bytes,))
        self._memories = (weights, initial, arena)
        self._typed: dict[tuple[int, str], NDArray[Any]] = {}
        self._sizes = tuple(memory.size for memory in self._memories)
        self._state_bytes = initial.size
        self._written: list[tuple[int, int]] = []
        self._times: set[int] = set()
        self._loops = 0
        self._reaches: list[tuple[Located, Span]] = []

    def check_row(self, declared: type[Instruction], form: Form, words: Sequence[int]) -> CheckedInstruction:
        """Check a row, a list of words.

        Raises UnsafeRowError: it may access other memory, or runs too long; IndexError: words are missing.
        """
        self._reaches = []
        pointers: list[tuple[Field, Located]] = []
        row: Any = self._decode(declared, HEADER_WORDS, words, form, pointers)
        if len(words) != HEADER_WORDS + _words_in(row):
            raise UnsafeRowError(f"{len(words)} words, but it takes {HEADER_WORDS + _words_in(row)}")
        written = {id(pointer) for field, pointer in pointers if field.spec.written}
        reaches = list(row.reaches())  # first, since it refuses numbers that other methods do not expect
        loops = int(row.multiply_adds())
        for pointer, span in reaches:
            if pointer is not None:
                self._require_inside(pointer, span)
                loops = max(loops, span.loops)
                if id(pointer) in written:
                    self._record_written(pointer, span)
        for field, pointer in pointers:
            if not pointer.is_checked:
                raise UnsafeRowError(
                    f"it does not declare how far it reaches into {field.name}; see RowFields.reaches"
                )
        self._loops += max(loops, 1)
        if self._loops > MAX_LOOPS:
            raise UnsafeRowError("the rows take too long")
        return CheckedInstruction(row, self._reaches)

    def record_bytes_written(self, region: int, first: int, stop: int) -> None:
        """Record that bytes are written from outside the rows. Raises UnsafeRowError: they may not be."""
        if region == WEIGHTS:
            raise UnsafeRowError("the weights would be written")
        if not 0 <= first <= stop <= self._sizes[region]:
            raise UnsafeRowError("bytes outside the memory")
        if region == STATE:
            self._written.append((first, stop))

    def record_time_word(self, byte: int) -> None:
        """Record that a word of the state holds a time. Raises UnsafeRowError: it is not in the state."""
        if byte % 8 or not 0 <= byte <= self._state_bytes - 8:
            raise UnsafeRowError("a word of time outside the state")
        self._times.add(byte)

    def finish(self) -> None:
        """Raise UnsafeRowError if anything writes to the words that rows use as times."""
        for first, stop in self._written:
            for byte in self._times:
                if first < byte + 8 and byte < stop:
                    raise UnsafeRowError(f"bytes {first} to {stop} of the state overlap a word of time")

    def _decode(
        self,
        group: type[RowFields],
        start: int,
        words: Sequence[int],
        form: Form,
        operands: list[tuple[Field, Located]],
    ) -> RowFields:
        """Decode a group of a row from its first word on."""
        row = object.__new__(group)
        values = row.__dict__
        base, count_before = start - group.START, len(operands)
        for field in fields_of(group).values():
            word = base + field.word
            for count, size in field.groups_before:
                word += values[count] * size
            kind, name = field.kind, field.name
            if kind == "number":
                values[name] = number = words[word]
                if not -MAX_NUMBER <= number <= MAX_NUMBER and name not in group.DATA:
                    raise UnsafeRowError(f"{name} is {number}")
            elif kind == "real":
                values[name] = real_at(words, word)
            elif field.group is not None:
                values[name] = self._decode_groups(field, values, word, words, form, operands)
            elif kind == "scales" and form != "int8":
                values[name] = None
            else:
                values[name] = pointer = self._decode_pointer(field, words[word], form)
                operands.append((field, pointer))
        for field, pointer in operands[count_before:]:
            if field.spec.count and not pointer.is_checked:
                self._require_counted(field, pointer, row)
        return row

    def _decode_groups(
        self,
        field: Field,
        values: dict[str, Any],
        word: int,
        words: Sequence[int],
        form: Form,
        operands: list[tuple[Field, Located]],
    ) -> Any:
        assert field.group is not None
        if field.kind == "group":
            return self._decode(field.group, word, words, form, operands)
        count, size = values[str(field.spec.count[0])], words_of(field.group)
        if not 0 <= count * size <= len(words):
            raise UnsafeRowError(f"{count} of {field.name}")
        return [self._decode(field.group, word + size * i, words, form, operands) for i in range(count)]

    def _decode_pointer(self, field: Field, word: int, form: Form) -> Located:
        element = element_of(field, form)
        region, byte = word >> REGION_SHIFT, word & ((1 << REGION_SHIFT) - 1)
        if not 0 <= region < len(self._memories):
            raise UnsafeRowError(f"{field.name}: no memory {region}")
        elements = self._elements_of(region, element)
        size = elements.itemsize
        if byte % size:
            raise UnsafeRowError(f"{field.name}: byte {byte} is not aligned to {size}")
        if field.spec.written and region == WEIGHTS:
            raise UnsafeRowError(f"{field.name}: the weights would be written")
        return Located(elements, byte // size, region)

    def _elements_of(self, region: int, element: str) -> NDArray[Any]:
        key = region, element
        if key not in self._typed:
            memory, dtype = self._memories[region], np.dtype(ELEMENT_DTYPES[element])  # type: ignore[index]
            size = len(memory) // dtype.itemsize
            if region == ARENA:
                self._typed[key] = np.broadcast_to(np.zeros(1, dtype), (size,))
            else:
                self._typed[key] = memory[: size * dtype.itemsize].view(dtype)
        return self._typed[key]

    def _require_counted(self, field: Field, pointer: Located, row: RowFields) -> None:
        """Check an operand with a declared number of elements."""
        count = prod(
            number if isinstance(number, int) else getattr(row, number) for number in field.spec.count
        )
        span = run(count)
        self._require_inside(pointer, span)
        spec = field.spec
        if spec.element == "i64" and spec.count == (1,):
            self._record_time(field, pointer)
        elif spec.written:
            self._record_written(pointer, span)

    def _record_time(self, field: Field, pointer: Located) -> None:
        """Record a word that a kernel uses as a time or counter."""
        byte = pointer.start * 8
        if field.spec.written and field.name != "clock":
            self._record_written(pointer, run(1))
            return
        if pointer.region == ARENA:
            raise UnsafeRowError(f"{field.name}: the time is kept in the arena")
        now = int(pointer.elements[pointer.start])
        if abs(now) > UNBOUNDED or (field.name == "clock" and now != 0):
            raise UnsafeRowError(f"{field.name} begins with {now}")
        if pointer.region == STATE:
            self._times.add(byte)

    def _require_inside(self, pointer: Pointer, span: Span) -> None:
        assert isinstance(pointer, Located)
        pointer.is_checked = True
        self._reaches.append((pointer, span))
        first, last = pointer.start + span.low, pointer.start + span.last
        if not span.empty and not (first >= 0 and last < len(pointer.elements)):
            raise UnsafeRowError(f"elements {first} to {last} of {len(pointer.elements)}")

    def _record_written(self, pointer: Pointer, span: Span) -> None:
        assert isinstance(pointer, Located)
        if pointer.region == STATE and not span.empty:
            size = pointer.elements.itemsize
            first = (pointer.start + span.low) * size
            self._written.append((first, (pointer.start + span.last + 1) * size))


def _words_in(row: RowFields) -> int:
    """Return the number of words of a decoded row."""
    count, holding = _own_words(type(row))
    for field in holding:
        value = row.__dict__[field.name]
        count += _words_in(value) if field.kind == "group" else sum(map(_words_in, value))
    return count


@cache
def _own_words(group: type[RowFields]) -> tuple[int, list[Field]]:
    """Return the number of words of a group without its inner groups, and the fields of these."""
    group_fields = fields_of(group).values()
    return sum(field.group is None for field in group_fields), [
        field for field in group_fields if field.group is not None
    ]
