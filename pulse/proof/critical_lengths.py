"""Lengths of a stream at which the length of a wire jumps, or follows another formula."""

from collections.abc import Iterable, Iterator
from itertools import combinations

from pulse.dim import Symbol, TDim, choices, period
from pulse.pulsify.network import PulsedNetwork

MAX_SEARCHED_FRAMES = 1 << 24
"""Maximum number of frames up to which changes are searched."""


def critical_lengths(model: PulsedNetwork, shortest: int) -> list[int]:
    """Return lengths around the ends of each period of the wires' lengths, and where a choice changes.

    ``T/1000*1000`` frames are furthest behind T at 999 and jump at 1000; ``min(T, 5700)`` changes at 5700.
    """
    symbol = model.symbol
    facts = (outlet.fact for node in model.graph.nodes for outlet in node.outputs)
    dims = {fact.stream.length for fact in facts if fact.stream is not None}
    lengths: set[int] = set()
    for divisor in {period(dim, symbol) for dim in dims} - {1}:
        start = -(-shortest // divisor) * divisor
        lengths |= {start + divisor // 2, start + divisor - 1, start + divisor}
    for change in _changes(dims, symbol):
        lengths |= {change - 1, change, change + model.pulse // 2, change + model.pulse}
    return sorted(length for length in lengths if shortest <= length <= MAX_SEARCHED_FRAMES)


def _changes(dims: Iterable[TDim], symbol: Symbol) -> Iterator[int]:
    """Yield lengths at which two options of a minimum, maximum or comparison change their order."""
    for options in {options for dim in dims for options in choices(dim)}:
        for left, right in combinations(options, 2):
            difference = left - right
            if difference.symbols <= {symbol}:
                yield from _sign_changes(difference, symbol)


def _sign_changes(difference: TDim, symbol: Symbol) -> Iterator[int]:
    """Yield sign changes between neighbouring powers of two, each found by bisection."""

    def is_positive(frames: int) -> bool:
        return difference.eval({symbol: frames}) > 0

    low = 1
    while low < MAX_SEARCHED_FRAMES:
        high = 2 * low
        if is_positive(low) != is_positive(high):
            before, after = low, high
            while after - before > 1:
                middle = (before + after) // 2
                before, after = (
                    (middle, after) if is_positive(middle) == is_positive(low) else (before, middle)
                )
            yield after
        low = high
