"""The longest stream that a model takes."""

from collections.abc import Sequence

from pulse.dim import Symbol, SymbolScope, TDim
from pulse.support.bounds import FAR_FRAMES


def allows_length(length: int, symbol: Symbol, assumptions: Sequence[TDim]) -> bool:
    """Whether a stream of ``length`` frames satisfies every assumption on this symbol alone."""
    return all(test.eval({symbol: length}) for test in assumptions if test.symbols <= {symbol})


def longest_stream(symbol: Symbol, assumptions: Sequence[TDim]) -> int | None:
    """The most frames that the assumptions on the length allow; None without a proven limit."""
    tests = [test for test in assumptions if test.symbols <= {symbol}]
    if allows_length(FAR_FRAMES, symbol, tests):
        return None
    scope = SymbolScope()
    frames = TDim.of(scope.symbol(symbol.name))
    for test in tests:
        scope.assume(test.subs({symbol: frames}))
    highest = frames.bounds()[1]
    return None if highest is None else max(0, highest)
