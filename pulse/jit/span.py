"""The elements that a row reaches: what ``RowFields.reaches`` is written in."""

from typing import Any, TypeAlias

from numpy.typing import NDArray

from pulse.jit.pointer import WEIGHTS, Pointer

LARGEST_NUMBER = 1 << 31
"""Of the numbers of a row that stand for elements and frames: sums and products of them stay exact."""
SIZES = (1, 2, 4, 8)
"""Bytes of the elements that are moved as they are."""


class Span:
    """Elements from the one that a pointer shows: from ``low`` to ``last``, none if ``empty``.

    loops   how often a kernel comes by
    """

    __slots__ = ("empty", "last", "loops", "low")

    def __init__(self, low: int, last: int, loops: int, empty: bool = False) -> None:
        self.low, self.last, self.loops, self.empty = low, last, loops, empty

    def __add__(self, other: "Span") -> "Span":
        """All sums of two."""
        empty = self.empty or other.empty
        return Span(self.low + other.low, self.last + other.last, self.loops * other.loops, empty)

    def __mul__(self, size: int) -> "Span":
        """The span in elements that are as many times smaller."""
        return Span(self.low * size, self.last * size + size - 1, self.loops, self.empty or size == 0)


Reach: TypeAlias = tuple[Pointer | None, Span]
NOTHING = Span(0, 0, 1, True)


class UnsafeRowError(ValueError):
    """A row that reaches outside of its memories, or may do so."""


class Located(Pointer):
    """A pointer of a row that is checked: ``region`` is where it points to."""

    __slots__ = ("covered", "region")

    def __init__(self, elements: NDArray[Any], start: int, region: int) -> None:
        super().__init__(elements, start)
        self.region = region
        self.covered = False

    def __add__(self, count: int) -> "Located":
        self.covered = True
        return Located(self.elements, self.start + count, self.region)


def run(count: int, step: int = 1) -> Span:
    """This many elements, ``step`` apart. Raises UnsafeRowError: a negative number."""
    if count <= 0:
        if count < 0:
            raise UnsafeRowError(f"a count of {count}")
        return NOTHING
    far = (count - 1) * step
    return Span(0, far, count) if far >= 0 else Span(far, 0, count)


def table(pointer: Pointer, count: int) -> Span:
    """The offsets in this many words of a table. Raises UnsafeRowError: it is not among the weights."""
    assert isinstance(pointer, Located)
    if count < 0 or pointer.region != WEIGHTS:
        raise UnsafeRowError("a table of offsets that rows may change")
    pointer.covered = True
    if count == 0:
        return NOTHING
    if pointer.start < 0 or pointer.start + count > len(pointer.elements):
        raise UnsafeRowError("a table of offsets beyond the weights")
    words = pointer.elements[pointer.start : pointer.start + count]
    low, last = (int(words[0]),) * 2 if count == 1 else (int(words.min()), int(words.max()))
    if max(-low, last) > LARGEST_NUMBER:
        raise UnsafeRowError(f"an offset of {last if last > -low else low}")
    return Span(low, last, count)


def require(holds: bool, what: str) -> None:
    """Raise UnsafeRowError where a row is not as its kernel needs it."""
    if not holds:
        raise UnsafeRowError(what)


def require_size(size: int) -> None:
    """Raise UnsafeRowError if there are no such elements."""
    require(size in SIZES, f"elements of {size} bytes")
