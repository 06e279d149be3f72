"""Bounds of a stream's length before it has ended."""

from collections.abc import Iterator
from fractions import Fraction

from pulse.dim import Symbol, TDim, cached_in_scope
from pulse.ops.stateful import FAR, most_frames

NEAR, FURTHEST_POWER = 64, 40
"""Pulses looked at in a row, and the power of two up to which there are such rows."""


def least_reaching(length: TDim, frames: int, symbol: Symbol) -> int:
    """The least value of the symbol at which a growing length has at least that many frames."""
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


def _is_piecewise(length: TDim) -> bool:
    """Whether a minimum, maximum, comparison or broadcast may change its growth for large values."""
    text = str(length)
    return any(word in text for word in ("min", "max", "=", "<", ">", "broadcast"))


def _sample_points(length: TDim, pulse: int) -> Iterator[int]:
    """Whole pulses, in frames: the first ones, and if the length is piecewise some after each power of two."""
    yield from (step * pulse for step in range(NEAR + 1))
    if _is_piecewise(length):
        for power in range(NEAR.bit_length(), FURTHEST_POWER + 1):
            first = max(0, (1 << power) // pulse - 2)
            yield from (step * pulse for step in range(first, first + NEAR // 2))


@cached_in_scope
def grows(length: TDim, symbol: Symbol) -> bool:
    """Whether a longer stream never has fewer frames of this length."""
    before, at = 0, -1
    for frames in _sample_points(length, 1):
        now = max(0, length.eval({symbol: frames}))
        if frames > at and now < before:
            return False
        before, at = now, frames
    return True


@cached_in_scope
def lag(length: TDim, rate: Fraction, symbol: Symbol, pulse: int) -> int | None:
    """The smallest delay at which a wire sends no frame before it is sure whether the frame exists.

    After n pulses the stream has at least ``x = n*pulse`` frames, so the wire has at least ``length(x)``; a wire
    of delay d has sent ``rate*x - d``. Frames beyond a proven bound of the length surely do not exist. None if
    no delay suffices, because the wire falls ever further behind its rate.
    """
    most = most_frames(length)
    if most == FAR and length.slope(symbol) != rate:
        return None
    steps = set(_sample_points(length, pulse))
    if most != FAR and length.eval({symbol: 1 << FURTHEST_POWER}) >= most:
        last = least_reaching(length, most, symbol) // pulse
        steps |= {step * pulse for step in range(max(0, last - NEAR), last + 2)}
    worst = -FAR
    for frames in steps:
        sure = max(0, length.eval({symbol: frames}))
        if sure < most:
            worst = max(worst, int(rate * frames) - sure)
    return worst
