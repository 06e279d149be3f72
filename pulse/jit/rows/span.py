"""Spans: the elements that a row reaches, for ``RowFields.reaches``."""

from typing import Any, TypeAlias

from numpy.typing import NDArray

from pulse.jit.rows.pointer import WEIGHTS, Pointer

MAX_NUMBER = 1 << 31
"""The bound of numbers of elements and frames in a row: sums and products of them stay exact."""
COPIED_SIZES = (1, 2, 4, 8)
"""The sizes, in bytes, of elements that are copied without conversion."""


class Span:
    """Elements relative to a pointer: from ``low`` to ``last``, none if ``empty``.

    loops   the number of accesses that a kernel makes
    """

    __slots__ = ("empty", "last", "loops", "low")

    def __init__(self, low: int, last: int, loops: int, empty: bool = False) -> None:
        self.low, self.last, self.loops, self.empty = low, last, loops, empty

    def __add__(self, other: "Span") -> "Span":
        """Return the span of all sums of two elements."""
        empty = self.empty or other.empty
        return Span(self.low + other.low, self.last + other.last, self.loops * other.loops, empty)

    def __mul__(self, size: int) -> "Span":
        """Return the span in elements that are ``size`` times smaller."""
        return Span(self.low * size, self.last * size + size - 1, self.loops, self.empty or size == 0)


Reach: TypeAlias = tuple[Pointer | None, Span]
NOTHING = Span(0, 0, 1, True)


class UnsafeRowError(ValueError):
    """Raised if a row reaches outside its memories, or may do so."""


class Located(Pointer):
    """A pointer of a row that is checked.

    region      the memory that it points to
    is_checked  whether the row has declared how far it reaches, or moved it
    """

    __slots__ = ("is_checked", "region")

    def __init__(self, elements: NDArray[Any], start: int, region: int) -> None:
        super().__init__(elements, start)
        self.region = region
        self.is_checked = False

    def __add__(self, count: int) -> "Located":
        self.is_checked = True
        return Located(self.elements, self.start + count, self.region)


def run(count: int, step: int = 1) -> Span:
    """Return the span of this many elements, ``step`` apart. Raises UnsafeRowError: a number is negative."""
    if count <= 0:
        if count < 0:
            raise UnsafeRowError(f"a count of {count}")
        return NOTHING
    last = (count - 1) * step
    return Span(0, last, count) if last >= 0 else Span(last, 0, count)


def words(pointer: Pointer, count: int) -> NDArray[Any]:
    """Return ``count`` words of a table. Raises UnsafeRowError: it is not a weight."""
    assert isinstance(pointer, Located)
    if count < 0 or pointer.region != WEIGHTS:
        raise UnsafeRowError("a table of offsets that rows may change")
    pointer.is_checked = True
    if count and (pointer.start < 0 or pointer.start + count > len(pointer.elements)):
        raise UnsafeRowError("a table of offsets beyond the weights")
    return pointer.elements[pointer.start : pointer.start + count]


def table(pointer: Pointer, count: int) -> Span:
    """Return the span of the offsets in ``count`` words of a table. Raises UnsafeRowError: it is not a weight."""
    offsets = words(pointer, count)
    if count == 0:
        return NOTHING
    low, last = (int(offsets[0]),) * 2 if count == 1 else (int(offsets.min()), int(offsets.max()))
    if max(-low, last) > MAX_NUMBER:
        raise UnsafeRowError(f"an offset of {last if last > -low else low}")
    return Span(low, last, count)


def require(holds: bool, subject: str) -> None:
    """Raise UnsafeRowError if a row does not meet a condition of its kernel."""
    if not holds:
        raise UnsafeRowError(subject)


def require_element_size(size: int) -> None:
    """Raise UnsafeRowError if no elements have this size."""
    require(size in COPIED_SIZES, f"elements of {size} bytes")
