"""Canonical forms, text, values and errors by example."""

import copy
import operator
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pulse.dim import Symbol, SymbolScope, TDim, broadcast, ceil_div, dim_max, dim_min, eq, ge, gt
from pulse.errors import DimError


@pytest.fixture
def scope() -> SymbolScope:
    return SymbolScope()


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("(S+23)/2-1", "10+(S+1)/2"),
        ("((S+1)/2+1)/2", "(S+3)/4"),
        ("(S-2*(S/2))/2", "0"),
        ("(14*S+6)/8", "(3+7*S)/4"),
        ("(T+1)*P-T*P", "P"),
        ("(2*S)/2", "S"),
        ("(4*S+6)/2", "2*S+3"),
        ("min(S, S+3)", "S"),
        ("3*min(S/2, 1) + 2*max(S/2 - 1, 0)", "2*(S/2) + min(S/2, 1)"),
        ("min(S, T) + max(S + 1, T)", "min(S, T) + max(S + 1, T)"),
        ("(2*((S+1)/2)-S)/2", "0"),
        ("S/2+(S+1)/2", "S"),
        ("S-S/2", "(S+1)/2"),
        ("-(-S/3)", "(S+2)/3"),
        ("(2*S)/3-S", "-((S+2)/3)"),
        ("(T-S/2)/3", "(2*T-S+1)/6"),
        ("max(S, T, max(T, 3), 3)", "max(3, T, S)"),
        ("broadcast(1, S, broadcast(S, T))", "broadcast(T, S)"),
        ("S % 4", "S - 4*(S/4)"),
        ("(2*S >= 3)", "(S > 1)"),
        ("((S+1)/2 >= 3)", "(S >= 5)"),
        ("(S < 3)", "1 - (S >= 3)"),
        ("(S != T)", "1 - (T == S)"),
        ("(2*S == 3)", "0"),
        ("(S >= T)*(S >= T)", "(S >= T)"),
        ("S*T//1", "T * S"),
    ],
)
def test_equal_values_have_one_form(scope: SymbolScope, left: str, right: str) -> None:
    a, b = scope.parse(left), scope.parse(right)
    assert a == b
    assert hash(a) == hash(b)
    assert str(a) == str(b)
    assert scope.parse(str(a)) == a


@pytest.mark.parametrize(
    ("left", "right", "value_of_s"),
    [("(S+1)/2+(1-S)/2", "1", 2), ("-S/2", "-(S/2)", 3), ("(2*S)/4*2", "S", 3), ("min(S, T)", "S", 9)],
)
def test_invalid_floor_divisions_are_refused(
    scope: SymbolScope, left: str, right: str, value_of_s: int
) -> None:
    a, b = scope.parse(left), scope.parse(right)
    values = {scope.symbol("S"): value_of_s, scope.symbol("T"): 0}
    assert a != b
    assert a.eval(values) != b.eval(values)


def test_assumptions_decide_extremes(scope: SymbolScope) -> None:
    before = scope.parse("max(1, (S+1)/4-1)")
    assert before != scope.parse("(S+1)/4-1")
    scope.assume("S > 8")
    assert scope.parse("max(1, (S+1)/4-1)") == scope.parse("(S+1)/4-1")
    assert before.eval({scope.symbol("S"): 30}) == 6
    scope.assume("S >= 2*T")
    assert scope.parse("min(S+1, 2*T)") == scope.parse("2*T")
    assert [str(a) for a in scope.assumptions] == ["(S>=9)", "(S-2*T>=0)"]
    scope.assume("S >= 3")
    assert len(scope.assumptions) == 2


def test_assumptions_must_be_comparisons_that_can_hold(scope: SymbolScope) -> None:
    scope.assume("S > 8")
    with pytest.raises(DimError, match=r"S < 3 can never hold.*S>=9"):
        scope.assume("S < 3")
    scope.assume("2*(S/2) == S")
    assert scope.symbol("S").prove_ge(10).yes
    with pytest.raises(DimError, match="can never hold"):
        scope.assume("S % 2 == 1")
    with pytest.raises(DimError, match="one comparison"):
        scope.assume("S + 1")
    with pytest.raises(DimError, match="one comparison"):
        scope.assume("(S > 20) * (T > 3)")
    assert len(scope.assumptions) == 2


@pytest.mark.parametrize(
    ("left", "relation", "right"),
    [
        ("2*((S+1)/2)-S", "ge", "0"),
        ("(S+1)/2", "ge", "S/2"),
        ("((S+2)/3)*3", "ge", "S"),
        ("S/4 + (S+1)/4 + (S+2)/4 + (S+3)/4", "eq", "S"),
        ("S % 6", "lt", "6"),
        ("S*S + S", "eq", "2*((S*S + S)/2)"),
        ("(S*T)/2", "le", "(S*T+1)/2"),
        ("max(S, T) + min(S, T)", "eq", "S + T"),
        ("(S >= T) + (T > S)", "eq", "1"),
        ("broadcast(S, T)", "le", "max(S, T)"),
    ],
)
def test_relations_of_dims_are_proved(scope: SymbolScope, left: str, relation: str, right: str) -> None:
    assert getattr(scope.parse(left), f"prove_{relation}")(scope.parse(right)).yes


def test_relations_of_dims_are_refuted(scope: SymbolScope) -> None:
    S, T = scope.symbol("S"), scope.symbol("T")
    assert (2 * S).prove_eq(2 * T + 1).no
    assert S.prove_gt(S).no


def test_dims_have_bounds_and_an_order(scope: SymbolScope) -> None:
    S = scope.symbol("S")
    assert (S % 6).bounds() == (0, 5)
    assert S + 1 > S
    assert sorted([S + 2, S, S + 1]) == [S, S + 1, S + 2]


def test_a_relation_of_two_symbols_is_not_decided(scope: SymbolScope) -> None:
    S, T = scope.symbol("S"), scope.symbol("T")
    assert S.prove_ge(T).unknown
    assert S.bounds() == (None, None)
    with pytest.raises(DimError, match=r"cannot decide S >= T.*"):
        bool(S.prove_ge(T))
    with pytest.raises(DimError, match="cannot decide S > T"):
        _ = S > T


def test_a_proof_uses_assumed_residues(scope: SymbolScope) -> None:
    S = scope.symbol("S")
    assert (2 * ((S - 2) // 2) + 2).prove_eq(S).unknown
    scope.assume("2*(S/2) == S")
    assert (2 * ((S - 2) // 2) + 2).prove_eq(S).yes
    assert (S % 4).prove_eq(1).no
    assert (S % 4).bounds() == (0, 2)


def test_past_the_case_limit_proofs_stay_sound(scope: SymbolScope) -> None:
    S, T = scope.symbol("S"), scope.symbol("T")
    wide = S // 7919 + T // 7907
    assert (wide + 1).prove_ge(wide - 3).yes
    assert (7919 * (S // 7919)).prove_le(S).yes
    assert ((S + 7918) // 7919).prove_ge(S // 7919).yes
    assert ((S // 7919) + (S + 1) // 7919 - (2 * S) // 7919).prove_ge(0).unknown
    many = TDim.of(0)
    for i in range(8):
        many = many + dim_max(scope.symbol(f"x{i}"), 0)
    assert many.prove_ge(0).yes
    assert many.prove_ge(1).unknown


def test_symbols_are_replaced_and_evaluated(scope: SymbolScope) -> None:
    S, T = scope.symbol("S"), scope.symbol("T")
    dim = (S * T + 3) // 2 - T
    assert dim.eval({S: 5, T: -2}) == -2
    assert dim.subs({S: T, T: S}) == (S * T + 3) // 2 - S
    assert dim.subs({S: 0, T: 0}) == 1
    assert int(dim.subs({S: 5, T: -2})) == -2
    with pytest.raises(DimError, match="symbol T has no value"):
        dim.eval({S: 5})
    assert range(10)[TDim.of(3)] == 3
    with pytest.raises(DimError, match=r"S\+1 is not an integer"):
        int(S + 1)


def test_broadcast_dims_are_equal_or_one(scope: SymbolScope) -> None:
    S, T = scope.symbol("S"), scope.symbol("T")
    assert broadcast(1, S) == S
    assert broadcast(S, S) == S
    assert broadcast(1, 1) == 1
    both = broadcast(S, T)
    assert [both.eval({S: s, T: t}) for s, t in ((1, 4), (4, 1), (4, 4), (1, 1))] == [4, 4, 4, 1]
    with pytest.raises(DimError, match=r"sizes \[2, 3\] differ"):
        both.eval({S: 2, T: 3})
    with pytest.raises(DimError, match="2, 3"):
        broadcast(2, S, 3)


@pytest.mark.parametrize(
    ("text", "slope"),
    [
        pytest.param("(S+23)/2-1", Fraction(1, 2), id="(S+23)/2-1"),
        pytest.param("(3*S+T)/4 - S/2", Fraction(1, 4), id="(3*S+T)/4 - S/2"),
        pytest.param("T*P + 3", 0, id="T*P + 3"),
        pytest.param("max(S, 2*T, 7) - min(S, T)", 1, id="max(S, 2*T, 7) - min(S, T)"),
        pytest.param("min(S/3, S/2 + 9)", Fraction(1, 3), id="min(S/3, S/2 + 9)"),
        pytest.param("max(S, S+T)", 1, id="max(S, S+T)"),
        pytest.param("S*(S > T)", 1, id="S*(S > T)"),
        pytest.param("S*(S == T) + S % 5", 0, id="S*(S == T) + S % 5"),
        pytest.param("S*min(S, 3)", 3, id="S*min(S, 3)"),
        pytest.param("broadcast(S/2, T)", Fraction(1, 2), id="broadcast(S/2, T)"),
        pytest.param("-S/5", Fraction(-1, 5), id="-S/5"),
        pytest.param("S*S/7 - S*S/7", 0, id="S*S/7 - S*S/7"),
        pytest.param("max(3, -S*S)", 0, id="max(3, -S*S)"),
    ],
)
def test_slopes_of_dims_are_exact(scope: SymbolScope, text: str, slope: Fraction) -> None:
    assert scope.parse(text).slope(scope.symbol("S")) == slope


@pytest.mark.parametrize(
    "text", ["S*S", "S*T", "S*(S%2)", "S*(S/2) - (S*S)/2", "broadcast(S, 2*S)", "S*(T>3)"]
)
def test_a_dim_without_a_slope_is_refused(scope: SymbolScope, text: str) -> None:
    with pytest.raises(DimError, match="slope"):
        scope.parse(text).slope(scope.symbol("S"))


def test_a_dim_that_is_a_number_divides(scope: SymbolScope) -> None:
    S = scope.symbol("S")
    assert S // TDim.of(2) == S // 2
    assert 7 // TDim.of(2) == 3
    assert 7 % TDim.of(4) == 3


@pytest.mark.parametrize("divide", [operator.floordiv, operator.mod])
@pytest.mark.parametrize(
    "divisor",
    [
        pytest.param(0, id="zero"),
        pytest.param(-2, id="negative"),
        pytest.param("S", id="symbol"),
        pytest.param(TDim.of(-1), id="negative dim"),
    ],
)
def test_division_needs_a_positive_integer(
    scope: SymbolScope, divisor: int | str | TDim, divide: Callable[[TDim, Any], TDim]
) -> None:
    S = scope.symbol("S")
    with pytest.raises(DimError, match="positive integer"):
        divide(S + 1, S if divisor == "S" else divisor)


def test_a_number_is_not_divided_by_a_symbol(scope: SymbolScope) -> None:
    with pytest.raises(DimError, match="positive integer"):
        _ = 7 // scope.symbol("S")


def test_floats_are_not_dims(scope: SymbolScope) -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        _ = scope.symbol("S") // 0.5  # type: ignore[operator]
    with pytest.raises(DimError, match=r"0\.5 is not a dimension"):
        TDim.of(0.5)


def test_constant_dims_equal_ints_and_have_their_hashes(scope: SymbolScope) -> None:
    S = scope.symbol("S")
    assert TDim.of(3) == 3
    assert TDim.of(np.int64(3)) == 3
    assert S - S + 3 == 3
    assert hash(TDim.of(-7)) == hash(-7)
    assert S != 3


def test_dims_of_one_symbol_equal_it_and_have_its_hash(scope: SymbolScope) -> None:
    S = scope.symbol("S")
    assert S + 0 == S
    assert S == S + 0
    assert hash(S + 0) == hash(S)
    assert {S: 1}[TDim.of(S)] == 1  # type: ignore[index]
    assert TDim.of(S).symbols == {S}


def test_symbols_are_unique_in_their_scope(scope: SymbolScope) -> None:
    S = scope.symbol("S")
    assert scope.symbol("S") is S
    assert S != "S"
    assert SymbolScope().symbol("S") != S


def test_undecided_truth_values_are_refused(scope: SymbolScope) -> None:
    S = scope.symbol("S")
    assert not S - S
    assert S % 2 + 1
    with pytest.raises(DimError, match="cannot decide S == 0"):
        bool(S)


def test_scopes_do_not_mix(scope: SymbolScope) -> None:
    with pytest.raises(DimError, match="different symbol scopes"):
        _ = scope.symbol("S") + SymbolScope().symbol("T")
    other = SymbolScope().parse("S")
    assert other.subs({scope.symbol("S"): 1}) == other


def test_copies_are_the_same_and_pickles_keep_everything(scope: SymbolScope) -> None:
    scope.assume("S > 8")
    dim = scope.parse("max(T, S/2) + (S+1)/3")
    assert copy.deepcopy([dim])[0] is dim
    assert copy.deepcopy(scope) is scope
    twin_scope, twin = pickle.loads(pickle.dumps((scope, dim)))
    assert str(twin) == str(dim)
    assert twin == twin_scope.parse(str(dim))
    assert twin_scope.symbol("S").prove_ge(9).yes


def test_text_of_dims_is_parsed_back(scope: SymbolScope) -> None:
    assert str(scope.parse("time_1.x*2//3 - 4")) == "(2*time_1.x)/3-4"
    odd = scope.symbol("time-axis")
    assert str(odd + 1) == "`time-axis`+1"
    assert scope.parse("`time-axis` + 1") == odd + 1
    assert scope.parse("`max`*3") == 3 * scope.symbol("max")
    assert str(TDim.of(0)) == "0"
    with pytest.raises(DimError, match="cannot name a symbol"):
        scope.symbol("")


@pytest.mark.parametrize("text", ["", "S+", "(S", "S S", "min()", "3 ? 4", "S >= T >= 1", "max(S", "2**S"])
def test_unreadable_text_is_refused(scope: SymbolScope, text: str) -> None:
    with pytest.raises(DimError, match="cannot read"):
        scope.parse(text)


def test_functions_of_dims_are_simplified(scope: SymbolScope) -> None:
    S = scope.symbol("S")
    assert ceil_div(S, 2) == (S + 1) // 2
    assert ceil_div(7, 2) == 4
    assert dim_min(3, 5) == 3
    assert dim_max(S, S - 1) == S
    with pytest.raises(DimError, match="min of no dimensions"):
        dim_min()


def test_comparisons_of_dims_are_simplified(scope: SymbolScope) -> None:
    S = scope.symbol("S")
    assert isinstance(S, Symbol)
    assert ge(S, S) == 1
    assert gt(S, S) == 0
    assert eq(S, S + 1) == 0
    assert ge(S, 3).eval({S: 3}) == 1


def dims_of(S: Symbol) -> np.ndarray:
    return np.array([TDim.of(S), S + 1, TDim.of(4)], dtype=object)


def test_arrays_of_dims_compute_with_arrays_of_ints(scope: SymbolScope) -> None:
    S = scope.symbol("S")
    dims, ints = dims_of(S), np.array([1, 2, 3])
    assert (dims + ints).tolist() == [S + 1, S + 3, 7]
    assert (ints - dims).tolist() == [1 - S, 1 - S, -1]
    assert (dims * 2).tolist() == [2 * S, 2 * S + 2, 8]
    assert (dims // ints).tolist() == [S, (S + 1) // 2, 1]
    assert np.mod(dims, 2).tolist() == [S % 2, (S + 1) % 2, 0]


def test_dims_compute_with_arrays_and_numpy_integers(scope: SymbolScope) -> None:
    S = scope.symbol("S")
    dims, ints = dims_of(S), np.array([1, 2, 3])
    assert (S + ints).tolist() == [S + 1, S + 2, S + 3]
    assert ((S + 0) * dims).tolist() == [S * S, S * S + S, 4 * S]
    assert np.int64(3) + (S + 0) == S + 3
    assert (S + 0) * np.int64(3) == 3 * S
    assert np.array([S + 1, S]).dtype == object


def test_arrays_of_dims_are_reduced_and_compared(scope: SymbolScope) -> None:
    S = scope.symbol("S")
    dims = dims_of(S)
    assert np.sum(dims) == 2 * S + 5
    assert np.prod(dims[1:]) == 4 * S + 4
    assert (dims == S).tolist() == [True, False, False]


def test_a_trial_leaves_nothing_behind() -> None:
    scope = SymbolScope()
    S = scope.symbol("S")
    scope.assume("S >= 3")
    with scope.trial():
        scope.assume("S >= 9")
        scope.symbol("hole")
        assert S.prove_ge(8).yes
    assert S.prove_ge(8).unknown
    assert S.prove_ge(3).yes
    assert [str(assumption) for assumption in scope.assumptions] == ["(S>=3)"]


def test_a_remainder_is_compared_in_one_form() -> None:
    """The remainder of a minimum by 2 has two forms, and the negative of each begins with a negative number."""
    scope = SymbolScope()
    remainder = scope.parse("min(S,T)") % 2
    pairs = [(eq(0, remainder), eq(remainder, 0)), (ge(0, remainder), 1 - ge(remainder, 1))]
    for left, right in pairs:
        assert left == right
        assert scope.parse(str(left)) == left
