"""Facts that are found out about a dim are kept as long as they hold, and no longer than the dim's scope."""

import gc
import weakref

from pulse.dim import Symbol, SymbolScope, TDim, cache_in_scope
from pulse.ops.clock import max_frames
from pulse.support.bounds import UNBOUNDED


def test_a_result_is_computed_once_for_equal_dims_and_arguments() -> None:
    calls: list[tuple[TDim, int]] = []

    @cache_in_scope
    def look_up(dim: TDim, more: int) -> int:
        calls.append((dim, more))
        return more

    @cache_in_scope
    def other(dim: TDim, more: int) -> int:
        return -more

    scope = SymbolScope()
    dims = [TDim.of(scope.symbol("T")) + 1 for _ in range(2)]
    assert [look_up(dim, more) for dim in dims for more in (3, 4)] == [3, 4, 3, 4]
    assert calls == [(dims[0], 3), (dims[0], 4)]
    assert other(dims[0], 3) == -3
    assert look_up(SymbolScope().parse("T+1"), 3) == 3
    assert len(calls) == 3, "another T"
    assert look_up(dims[0], more=3) == 3
    assert look_up(TDim.of(7), 5) == 5


def test_an_assumption_changes_a_result_that_was_kept() -> None:
    scope = SymbolScope()
    length = scope.parse("T+1")
    assert max_frames(length) == UNBOUNDED
    with scope.trial():
        scope.assume("T<=100")
        assert max_frames(length) == 101
    assert max_frames(length) == UNBOUNDED
    scope.assume("T<=9")
    assert max_frames(length) == 10


def test_nothing_outlives_its_scope() -> None:
    scope = SymbolScope()
    symbol: weakref.ref[Symbol] = weakref.ref(scope.symbol("T"))
    assert max_frames(scope.parse("T")) == UNBOUNDED
    del scope
    gc.collect()
    assert symbol() is None
