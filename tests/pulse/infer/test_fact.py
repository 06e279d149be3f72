"""Facts that refine or contradict each other."""

import itertools
import re

import numpy as np
import pytest

from pulse.dim import SymbolScope, TDim
from pulse.errors import FactError
from pulse.facts import DTYPES, TypedFact
from pulse.infer.fact import Dim, InferenceFact, meet

F32 = DTYPES["f32"]
SCOPE = SymbolScope()


def fact(text: str) -> InferenceFact:
    """``1,?,T,…,f32`` the other way round."""
    *parts, dtype = text.split(",")
    is_open = bool(parts) and parts[-1] == "…"
    dims = tuple(None if part == "?" else SCOPE.parse(part) for part in parts[: len(parts) - is_open])
    dtype_or_none = None if dtype == "?" else DTYPES[dtype]
    return InferenceFact(dtype_or_none, None if is_open and not dims else dims, open=is_open and bool(dims))


@pytest.mark.parametrize("text", ["1,?,T,…,f32", "…,?", "1,T-2,i64", "f32", "?,?"])
def test_partial_facts_print_as_they_are_written(text: str) -> None:
    assert str(fact(text)) == text


def test_values_are_written_after_the_fact() -> None:
    dims = np.array([None, SCOPE.parse("T"), TDim.of(3)], dtype=object)
    assert str(InferenceFact(DTYPES["i64"], (TDim.of(3),), dims)) == "3,i64 = [?, T, 3]"
    assert str(InferenceFact.of(TypedFact.of(np.float32(0.1)))) == "f32 = 0.1"


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (("…,f32", "1,?,?"), "1,?,f32"),
        (("1,?,…,?", "?,2,3,?"), "1,2,3,?"),
        (("1,…,?", "?,2,…,?"), "1,2,…,?"),
        (("T,?", "64,?"), "T,?"),  # an expression of the inputs' symbols goes before a number
        (("T-2,?", "S,?", "64,?"), "S,?"),
        (("S,?", "T,?"), "S,?"),
        (("?,?", "…,?", "…,f32"), "?,f32"),
    ],
)
def test_meeting_facts_agree_in_any_order(facts: tuple[str, ...], expected: str) -> None:
    for order in itertools.permutations(facts):
        assert str(meet(*map(fact, order))) == expected


@pytest.mark.parametrize("turned", [False, True], ids=["in order", "turned"])
@pytest.mark.parametrize(
    ("left", "right", "reason"),
    [
        ("1,3,f32", "1,4,?", "axis 1: 3 and 4 differ"),
        ("1,T,f32", "1,T-2,?", "axis 1: T and T-2 differ"),
        ("1,T,f32", "1,T,1,?", "2 and 3 axes"),
        ("1,T,f32", "1,?,?,…,?", "2 and 3 axes"),
        ("1,f32", "1,i64", "types f32 and i64"),
    ],
)
def test_contradictions_name_both(left: str, right: str, reason: str, turned: bool) -> None:
    first, second = (right, left) if turned else (left, right)
    message = f"{first} and {second} contradict each other: {reason}"
    with pytest.raises(FactError, match=f"^{re.escape(message)}$"):
        meet(fact(first), fact(second))


@pytest.mark.parametrize("other", ["…,?", "?,?,…,?", "1,?,f32", "1,T,f32"])
def test_nothing_new_gives_the_fact_itself(other: str) -> None:
    precise = fact("1,T,f32")
    assert meet(precise, fact(other)) is precise


def list_fact(*entries: Dim | int) -> InferenceFact:
    value = np.empty(len(entries), dtype=object)
    value[:] = [None if entry is None else TDim.of(entry) for entry in entries]
    return InferenceFact(DTYPES["i64"], (TDim.of(len(entries)),), value)


def test_unknown_values_are_filled_from_the_other_fact() -> None:
    assert str(meet(list_fact(1, None, None), list_fact(None, SCOPE.parse("T"), None))) == "3,i64 = [1, T, ?]"
    whole = meet(list_fact(1, None), list_fact(None, 2)).value
    assert whole is not None
    assert whole.dtype == np.int64
    assert whole.tolist() == [1, 2]
    with pytest.raises(FactError, match="values: 1 and 2 differ"):
        meet(list_fact(1, None), list_fact(2, None))


def test_typed_leaves_out_values_with_gaps() -> None:
    typed = list_fact(1, None).to_typed()
    assert typed is not None
    assert typed.value is None
    assert fact("1,?,f32").to_typed() is None
    assert fact("1,…,f32").to_typed() is None
    assert str(fact("1,T,f32").to_typed()) == "1,T,f32"


def test_dims_from_the_end_need_the_rank() -> None:
    assert fact("1,2,f32").dim(-1) == 2
    assert fact("1,2,…,f32").dim(-1) is None
    assert fact("1,2,…,f32").dim(1) == 2
    assert fact("1,2,f32").dim(5) is None
