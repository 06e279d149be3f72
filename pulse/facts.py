"""Facts about wires."""

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pulse.dim import Symbol, SymbolScope, TDim
from pulse.errors import DimError, FactError
from pulse.support.record import record

Array: TypeAlias = NDArray[Any]
Doubles: TypeAlias = NDArray[np.float64]
DType: TypeAlias = np.dtype[Any]
Shape: TypeAlias = tuple[TDim, ...]

_BETWEEN_DIMS = re.compile(r",(?![^()]*\))")
"""Commas outside brackets; ``max(0,T-1)`` has one inside."""
MAX_AXES = 64
"""Maximum number of axes of a tensor in numpy."""
MAX_EXACT_F32 = 1 << 24
"""Integers up to here are exact in f32; sums of integers that stay below are exact in any order."""

DTYPES: dict[str, DType] = {
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "u8": np.dtype(np.uint8),
    "u16": np.dtype(np.uint16),
    "u32": np.dtype(np.uint32),
    "u64": np.dtype(np.uint64),
    "bool": np.dtype(np.bool_),
}
F16, F32, F64, I32, I64, U8, BOOL = (
    DTYPES[name] for name in ("f16", "f32", "f64", "i32", "i64", "u8", "bool")
)
_DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}


def dtype_name(dtype: DType) -> str:
    """Return the short name of a type: f32, i64, bool …"""
    return _DTYPE_NAMES.get(dtype, dtype.name)


def convert_numbers(value: Any, dtype: DType) -> Array | None:
    """Convert a user's value to a type; None if it is not numeric or does not fit. Only floats round."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            return None
        with np.errstate(invalid="ignore"):
            cast = array.astype(dtype)
    except (ValueError, TypeError, OverflowError):
        return None
    return cast if np.issubdtype(dtype, np.floating) or np.array_equal(cast, array) else None


def widen_f16(array: Array, dtype: DType) -> Array:
    """Convert f16 to f32 where that is asked for, which is exact; return other arrays unchanged.

    A model in f16 computes in f32; its users may feed it the type of the file.
    """
    return array.astype(F32) if array.dtype == F16 and dtype == F32 else array


def shape_of(*dims: TDim | Symbol | int) -> Shape:
    """Return a shape from integers, symbols and dims."""
    return tuple(TDim.of(dim) for dim in dims)


def shape_text(shape: Sequence[TDim | int]) -> str:
    """Return a shape as text: 1,80,T; or scalar without axes."""
    return ",".join(str(dim) for dim in shape) or "scalar"


def is_symbolic(value: Array) -> bool:
    """Return whether a tensor holds dims rather than numbers."""
    return value.dtype == object


def is_sound_shape(shape: Shape, max_channels: int = 1) -> bool:
    """Return whether each frame of a tensor has one value, or up to this many, all before or all after its axis."""
    axes = [axis for axis, dim in enumerate(shape) if dim.symbols]
    if len(axes) != 1:
        return False
    before, after = (prod(map(int, sizes)) for sizes in (shape[: axes[0]], shape[axes[0] + 1 :]))
    return 1 in (before, after) and before * after <= max_channels


def cancel_sizes(sizes: Iterable[TDim], divisors: Iterable[TDim]) -> tuple[list[TDim], list[TDim]]:
    """Return sizes and divisors without those that both have."""
    over, under = list(sizes), list[TDim]()
    for divisor in divisors:
        if divisor in over:
            over.remove(divisor)
        else:
            under.append(divisor)
    return over, under


def volume(shape: Sequence[TDim]) -> TDim:
    """Return the number of elements."""
    constants_product = prod(dim.const for dim in shape if not dim.terms)
    return prod((dim for dim in shape if dim.terms), start=TDim.of(1) * constants_product)


@record(eq=False)
class TypedFact:
    """The type and shape of a wire, and its value if that is known before running.

    ``value`` is an array of ``dtype``; for ``i64`` it may be an array of TDim (numpy object dtype) instead.
    """

    dtype: DType
    shape: Shape
    value: Array | None = None

    @classmethod
    def of(cls, value: Array) -> "TypedFact":
        """Return the fact of a known tensor."""
        dtype = np.dtype(np.int64) if is_symbolic(value) else value.dtype
        return cls(dtype, shape_of(*value.shape), value)

    @classmethod
    def parse(cls, text: str, scope: SymbolScope) -> "TypedFact":
        """Parse ``1,80,T,f32``: dims, then a type (f32 by default). Raises FactError: not such a text."""
        parts = [part.strip() for part in _BETWEEN_DIMS.split(text) if part.strip()]
        dtype = DTYPES["f32"]
        if parts and parts[-1] in DTYPES:
            dtype = DTYPES[parts.pop()]
        try:
            return cls(dtype, tuple(scope.parse(part) for part in parts))
        except DimError as error:
            raise FactError(f"{text!r} is not a shape such as '1,80,T,f32': {error}") from error

    @classmethod
    def of_input(cls, text: str, scope: SymbolScope) -> "TypedFact":
        """Parse the shape of an input: its symbols are sizes, so none is negative. Raises FactError: not a shape."""
        fact = cls.parse(text, scope)
        for symbol in sorted({s for dim in fact.shape for s in dim.symbols}, key=lambda s: s.name):
            scope.assume(f"{symbol} >= 0")
        return fact

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The shape, in numbers. Raises DimError: a size depends on a symbol."""
        return tuple(int(dim) for dim in self.shape)

    def with_size(self, axis: int, size: TDim | int) -> "TypedFact":
        """Return the fact of a tensor of the same type with another size along an axis, and of no known value."""
        return TypedFact(self.dtype, (*self.shape[:axis], TDim.of(size), *self.shape[axis + 1 :]))

    def without_axis(self, axis: int) -> "TypedFact":
        """Return the fact of a tensor of the same type without an axis, and of no known value."""
        return TypedFact(self.dtype, (*self.shape[:axis], *self.shape[axis + 1 :]))

    def agrees(self, other: "TypedFact") -> bool:
        """Return whether type and shape are the same, for every allowed value of the symbols."""
        if self.dtype != other.dtype or self.rank != other.rank:
            return False
        return all(a == b or a.prove_eq(b).yes for a, b in zip(self.shape, other.shape))

    def symbolic_axes(self, symbol: Symbol) -> list[int]:
        """Return the axes whose length depends on a symbol."""
        return [axis for axis, dim in enumerate(self.shape) if symbol in dim.symbols]

    def __str__(self) -> str:
        text = f"{shape_text(self.shape)},{dtype_name(self.dtype)}" if self.shape else dtype_name(self.dtype)
        if self.value is not None and self.value.size <= 8:
            text += f" = {self.value.tolist() if not is_symbolic(self.value) else symbolic_text(self.value)}"
        return text


def symbolic_text(value: Array) -> str:
    """Return a tensor of dims as text."""
    return "[" + ", ".join(str(dim) for dim in value.ravel()) + "]"


@record
class StreamFact:
    """The position of a pulsed wire in time.

    axis     the stream axis
    length   frames of the whole stream, a function of the stream's symbol
    rate     frames for each frame of the symbol
    offset   frame j of the offline tensor is at index j + offset of the concatenated pulses.
             A positive offset is a delay; a negative one is a left-context prefix: that many frames are never sent,
             because they are known before the stream begins, and stand in ``prefix``.
    prefix   the left-context prefix: an array with -offset frames along ``axis``
    """

    axis: int
    length: TDim
    rate: Fraction
    offset: int
    prefix: Array | None = None

    @property
    def prefix_frames(self) -> int:
        """How many leading frames are known before the stream begins."""
        return max(0, -self.offset)

    def __str__(self) -> str:
        text = f"axis {self.axis}, length {self.length}, rate {self.rate}, "
        return text + (f"prefix {self.prefix_frames}" if self.offset < 0 else f"delay {self.offset}")


@record(eq=False)
class PulsedFact(TypedFact):
    """A wire of a pulsed model: a typed fact of constant shape, and its position in time if it is a stream."""

    stream: StreamFact | None = None

    @property
    def frames(self) -> int:
        """Frames in each pulse."""
        return int(self.shape[self.stream.axis]) if self.stream is not None else 0

    def __str__(self) -> str:
        text = super().__str__()
        return text if self.stream is None else f"{text} [{self.stream}]"
