"""Assumptions with quotients of one size: they allow what they say, and nothing more."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from pulse.dim import SymbolScope
from pulse.errors import DimError


def test_bounds_under_a_premise_are_those_of_all_sizes() -> None:
    """The premises rise or fall with the size."""
    reached: Counter[str] = Counter()

    @settings(max_examples=200, deadline=None)
    @given(
        st.integers(1, 7),
        st.integers(1, 7),
        st.integers(0, 9),
        st.integers(0, 9),
        st.integers(0, 6),
        st.integers(2, 8),
    )
    def check_bounds_of_draws(num: int, den: int, less: int, shift: int, other: int, k: int) -> None:
        reached[assert_bounds(num, den, less, shift, other, k)] += 1

    check_bounds_of_draws()
    assert reached["rises"] >= 10
    assert reached["falls"] >= 10


def assert_bounds(num: int, den: int, less: int, shift: int, other: int, k: int) -> str:
    """``num*T/den - other*T/2 - less >= 0``, and the bounds of a remainder under it; what the premise does."""
    scope = SymbolScope()
    size = scope.symbol("T")
    scope.assume("T >= 0")
    premise = (num * size + shift) // den - (other * size) // 2 - less
    allowed = [n for n in range(2000) if premise.eval({size: n}) >= 0]
    try:
        scope.assume(f"{premise} >= 0")
    except DimError:
        assert not allowed
        return "refused"
    slope = premise.slope(size)
    dim = size - k * (size // k)
    low, high = dim.bounds()
    values = [dim.eval({size: n}) for n in allowed]
    assert values
    assert low is not None
    assert high is not None
    assert low <= min(values)
    assert max(values) <= high
    if slope > 0:
        assert (low, high) == (min(values), max(values))
        assert size.bounds()[0] == allowed[0] or min(allowed) >= (size.bounds()[0] or 0)
    return "rises" if slope > 0 else "falls"
