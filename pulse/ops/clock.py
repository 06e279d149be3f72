"""The clock of a stream, and which frames of a wire belong to it."""

import numpy as np
from numpy.typing import NDArray

from pulse.dim import Symbol, TDim, cache_in_scope
from pulse.facts import Array
from pulse.support.bounds import UNBOUNDED


@cache_in_scope
def max_frames(length: TDim) -> int:
    """Return the most frames that a wire of this length can have, UNBOUNDED if there is no proven bound."""
    if _is_endless(length):
        return UNBOUNDED
    highest = length.bounds()[1]
    return UNBOUNDED if highest is None else max(0, highest)


def _is_endless(length: TDim) -> bool:
    """Return whether a length is proved unbounded: it rises with its only, unbounded symbol. Residues are ignored."""
    if len(length.symbols) != 1:
        return False
    (symbol,) = length.symbols
    return TDim.of(symbol).bounds()[1] is None and length.slope(symbol) > 0


class Clock:
    """The registers of a running stream.

    end        frames of the symbol in the whole stream, None until it ends
    completed  those of them that are zeros, with which the stream was completed
    whole      if it was, the longest length that the model takes without them
    last       the number of the last pulse, None until the stream ends
    counter    the array of one element that holds ``pulse``; ``word`` is its memory, which is faster to read
    """

    __slots__ = ("completed", "counter", "end", "last", "symbol", "whole", "word")

    def __init__(self, symbol: Symbol, pulse: int = 0, end: int | None = None) -> None:
        self.symbol, self.end = symbol, end
        self.completed = self.whole = 0
        self.last: int | None = None
        self.count_in(np.zeros(1, np.int64))
        self.pulse = pulse

    def count_in(self, counter: NDArray[np.int64]) -> None:
        """Keep ``pulse`` in this array of one element, which compiled code may increment."""
        self.counter = counter
        self.word = counter.data

    @property
    def pulse(self) -> int:
        """The number of pulses before this one."""
        return self.word[0]

    @pulse.setter
    def pulse(self, pulse: int) -> None:
        self.word[0] = pulse

    def frames(self, length: TDim) -> int:
        """Return the length of a wire; until the stream ends, the largest that it can be."""
        return max_frames(length) if self.end is None else max(0, length.eval({self.symbol: self.end}))

    def span(self, frames: int, offset: int, length: TDim) -> tuple[int, int]:
        """Return which of a pulse's frames belong to the stream, as start and stop."""
        first = self.pulse * frames - offset
        start = min(frames, max(0, -first))
        return start, max(start, min(frames, self.frames(length) - first))


def frames_at(array: Array, axis: int, start: int, stop: int) -> Array:
    """Return frames of one axis, a view."""
    return array[(slice(None),) * axis + (slice(start, stop),)]
