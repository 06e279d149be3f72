"""Bounds of a stream's length before it has ended, proved for every length at once."""

from fractions import Fraction

from pulse.dim import Symbol, SymbolScope, TDim, cache_in_scope, dim_max, never_falls
from pulse.ops.clock import max_frames
from pulse.support.bounds import FAR_FRAMES, UNBOUNDED


def min_value_for(length: TDim, frames: int, symbol: Symbol) -> int:
    """Return the smallest value of the symbol at which a growing length has at least that many frames."""
    low, high = 0, 1
    while length.eval({symbol: high}) < frames:
        low, high = high, high * 2
    while low < high:
        middle = (low + high) // 2
        if length.eval({symbol: middle}) < frames:
            low = middle + 1
        else:
            high = middle
    return low


@cache_in_scope
def never_shrinks(length: TDim, symbol: Symbol) -> bool:
    """Return whether the length is proved never to decrease as the stream gets longer."""
    return never_falls(length, symbol) or never_falls(dim_max(0, length), symbol)


@cache_in_scope
def determines_length(length: TDim, rate: Fraction, symbol: Symbol) -> bool:
    """Return whether ``rate*x`` frames of an input prove that the stream has at least x frames, for all whole x > 0."""
    counts = _count("counts") + 1
    frames = counts * rate.denominator
    return length.subs({symbol: frames - 1}).prove_lt(counts * rate.numerator).yes


@cache_in_scope
def lag(length: TDim, rate: Fraction, symbol: Symbol, pulse: int) -> int | None:
    """Return the smallest delay at which a wire sends only frames that are known to exist.

    After n pulses the stream has at least ``x = n*pulse`` frames, so the wire has at least ``length(x)``; a wire
    of delay d has sent ``rate*x - d``. Frames beyond a proven bound of the length do not exist. None if no delay
    suffices, because the wire falls ever further behind its rate, or if none is proved to suffice.
    """
    longest = max_frames(length)
    if longest == UNBOUNDED and length.slope(symbol) != rate:
        return None
    pulses = _count("pulses")
    if longest != UNBOUNDED and length.eval({symbol: FAR_FRAMES}) >= longest:
        unsure = -(-min_value_for(length, longest, symbol) // pulse)
        if not unsure:
            return -UNBOUNDED
        pulses = _count("pulses", unsure - 1)
    frames = pulses * pulse
    frames_sent = frames * rate.numerator // rate.denominator
    return (frames_sent - dim_max(0, length.subs({symbol: frames}))).bounds()[1]


def _count(name: str, largest: int | None = None) -> TDim:
    """Return a new symbol in its own scope, between 0 and ``largest``."""
    scope = SymbolScope()
    scope.assume(f"{name} >= 0")
    if largest is not None:
        scope.assume(f"{name} <= {largest}")
    return TDim.of(scope.symbol(name))
