"""The lengths of streams that a model takes."""

from collections.abc import Sequence

from pulse.dim import Symbol, SymbolScope, TDim
from pulse.support.bounds import FAR_FRAMES

MAX_TRIED_LENGTHS = 4096
"""How many lengths are tried on each side; if all of them are refused, there is none."""


def allows_length(length: int, symbol: Symbol, assumptions: Sequence[TDim]) -> bool:
    """Return whether a stream of ``length`` frames satisfies every assumption on this symbol alone."""
    return all(test.eval({symbol: length}) for test in assumptions if test.symbols <= {symbol})


def nearest_length(length: int, symbol: Symbol, assumptions: Sequence[TDim], limit: int | None) -> int | None:
    """Return an allowed length of at most ``limit``: the first one from ``length`` on, else the last one before it.

    Looks at ``MAX_TRIED_LENGTHS`` lengths on each side; None if all of them are refused.
    """
    start = length if limit is None else max(1, min(length, limit))
    stop = start + MAX_TRIED_LENGTHS if limit is None else min(start + MAX_TRIED_LENGTHS, limit + 1)
    near = (*range(start, stop), *range(start - 1, max(0, start - MAX_TRIED_LENGTHS), -1))
    return next((other for other in near if allows_length(other, symbol, assumptions)), None)


def longest_stream(symbol: Symbol, assumptions: Sequence[TDim]) -> int | None:
    """Return the most frames that the assumptions on the length allow; None without a proven limit."""
    tests = [test for test in assumptions if test.symbols <= {symbol}]
    if allows_length(FAR_FRAMES, symbol, tests):
        return None
    scope = SymbolScope()
    frames = TDim.of(scope.symbol(symbol.name))
    for test in tests:
        scope.assume(test.subs({symbol: frames}))
    highest = frames.bounds()[1]
    return None if highest is None else max(0, highest)
