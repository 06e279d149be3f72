"""Sizes computed in floats: the dims that come out are what floats give, or there is an error."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulse.dim import Ratio, SymbolScope, TDim
from pulse.errors import DimError

SCOPE = SymbolScope()
T = SCOPE.symbol("T")
SCOPE.assume("T >= 0")
SIZES = [*range(200), 999, 16_000, 16_001, 480_000, 1_323_001]

Step = tuple[str, float]
STEPS: dict[str, tuple[Callable[[Ratio, Ratio], Ratio], Callable[..., np.ndarray]]] = {
    "+": (Ratio.__add__, np.add),
    "-": (Ratio.__sub__, np.subtract),
    "*": (Ratio.__mul__, np.multiply),
    "/": (Ratio.__truediv__, np.divide),
    "min": (Ratio.minimum, np.minimum),
    "max": (Ratio.maximum, np.maximum),
}
ROUNDINGS = {"floor": (Ratio.floor, np.floor), "ceil": (Ratio.ceil, np.ceil), "round": (Ratio.round, np.rint)}
NUMBERS = [1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 8.0, 0.5, 0.25, 1.5, -1.0, -3.0]


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.sampled_from(NUMBERS)), max_size=4),
    st.sampled_from(sorted(ROUNDINGS)),
)
def test_exact_ratios_equal_those_of_f64(steps: list[Step], rounding: str) -> None:
    """Ratios that are not refused have the value of PyTorch's own floats, at all sizes."""
    value, numbers = Ratio.of(T), np.array(SIZES, np.float64)
    for name, number in steps:
        exact, floats = STEPS[name]
        try:
            value = exact(value, Ratio.of(number))
        except DimError:
            return
        numbers = floats(numbers, number)
    symbolic, rounded = ROUNDINGS[rounding]
    (dim, denominator) = (symbolic(value).num, symbolic(value).den)
    assert denominator == 1
    assert [dim.eval({T: size}) for size in SIZES] == rounded(numbers).tolist()


@pytest.mark.parametrize("divisor", [3, 5, 7, 480])
def test_f32_rounds_no_size_to_another(divisor: int) -> None:
    """Files compute in f32: quotients of sizes up to 2^20 are on the same side of every integer."""
    sizes = np.arange(1, 1 << 20, 7)
    quotients = np.ceil(sizes.astype(np.float32) / np.float32(divisor))
    dim = (Ratio.of(T) / Ratio.of(divisor)).ceil().num
    assert dim == (T + divisor - 1) // divisor
    assert (quotients == -(-sizes // divisor)).all()


def test_rounded_values_that_may_become_whole_are_refused() -> None:
    third = Ratio.of(T) / Ratio.of(3)
    with pytest.raises(DimError, match=r"\(T\)/3 is rounded in floats"):
        third * Ratio.of(3)
    with pytest.raises(DimError, match="is rounded in floats"):
        third + third
    with pytest.raises(DimError, match=r"0\.1 is not a simple fraction"):
        Ratio.of(0.1)
    with pytest.raises(DimError, match="nan is not a size"):
        Ratio.of(float("nan"))
    with pytest.raises(DimError, match="divide by a constant other than 0"):
        Ratio.of(3) / Ratio.of(T)
    with pytest.raises(DimError, match="may be negative"):
        ((Ratio.of(T) - Ratio.of(9)) / Ratio.of(2)).truncate()


def test_ratios_are_truncated_and_written() -> None:
    half = Ratio.of(T) / Ratio.of(2)
    assert half.truncate() == T // 2
    assert (half * Ratio.of(2)).truncate() == TDim.of(T)
    assert (str(half), str(Ratio.of(T))) == ("(T)/2", "T")
    assert Ratio.of(0.75) == Ratio(TDim.of(3), 4)
    assert Fraction(3, 4) == Fraction(int(Ratio.of(0.75).num), 4)
