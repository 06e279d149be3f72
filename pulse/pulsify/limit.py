"""The longest stream that a model takes."""

from collections.abc import Sequence

from pulse.bounds import FAR_FRAMES
from pulse.dim import Symbol, TDim


def allows_length(length: int, symbol: Symbol, assumptions: Sequence[TDim]) -> bool:
    """Whether a stream of ``length`` frames satisfies all that is assumed of this symbol alone."""
    return all(test.eval({symbol: length}) for test in assumptions if test.symbols <= {symbol})


def longest_stream(symbol: Symbol, assumptions: Sequence[TDim]) -> int | None:
    """The most frames that satisfy what is assumed of the length, None if there is no limit.

    An assumption may hold for some remainders only, so each length stands for the 64 from it on.
    """
    tests = [test for test in assumptions if test.symbols <= {symbol}]

    def near(length: int) -> bool:
        return any(allows_length(length + more, symbol, tests) for more in range(64))

    beyond = FAR_FRAMES
    if not tests or near(beyond):
        return None
    inside = next((length for length in (1 << power for power in range(40)) if near(length)), 0)
    while beyond - inside > 1:
        middle = (inside + beyond) // 2
        inside, beyond = (middle, beyond) if near(middle) else (inside, middle)
    return max(
        (length for length in range(inside, inside + 64) if allows_length(length, symbol, tests)), default=0
    )
