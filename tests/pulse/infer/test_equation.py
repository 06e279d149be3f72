"""Equations with one unknown."""

import pytest

from pulse.dim import SymbolScope
from pulse.infer.equation import quotient, solve


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("h-2", "10", "12"),
        ("h-2", "T", "T+2"),
        ("3*h+1", "10", "3"),
        ("3*h+1", "11", None),
        ("3*h+1", "6*T+4", "2*T+1"),
        ("4-h", "1", "3"),
        ("h-2", "-5", "-3"),
        ("(h-1)/2", "4", None),
        ("max(0,h-2)", "5", "7"),
        ("max(0,h-2)", "0", None),
        ("max(0,h-2)", "T", None),
        ("min(h,5)", "3", "3"),
        ("min(h,5)", "5", None),
        ("h*h", "9", None),
        ("T*h", "T", None),
    ],
)
def test_equations_are_solved(left: str, right: str, expected: str | None) -> None:
    scope = SymbolScope()
    solution = solve(scope.parse(left), scope.parse(right), scope.symbol("h"))
    assert (None if solution is None else str(solution)) == expected
    assert scope.assumptions == ()


@pytest.mark.parametrize(
    ("total", "divisor", "expected"),
    [("4*T", 2, "2*T"), ("4*T", -4, "-T"), ("4*T+1", 2, None), ("T", 0, None)],
)
def test_only_exact_quotients_are_given(total: str, divisor: int, expected: str | None) -> None:
    result = quotient(SymbolScope().parse(total), divisor)
    assert (None if result is None else str(result)) == expected
