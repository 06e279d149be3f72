"""Facts of shape ops, matrix products and reductions, with symbolic dims, and their errors."""

import numpy as np
import pytest

from pulse.dim import SymbolScope, TDim
from pulse.errors import FactError
from pulse.facts import TypedFact, shape_text
from pulse.ops.gather import Gather
from pulse.ops.matmul import MatMul
from pulse.ops.norm import LayerNorm, Softmax
from pulse.ops.op import Op
from pulse.ops.reduce import Reduce
from pulse.ops.shape import AddAxis, Expand, RemoveAxis, Reshape, Tile, Transpose


def dims(scope: SymbolScope, text: str) -> tuple[TDim, ...]:
    return tuple(scope.parse(part) for part in text.split(",")) if text else ()


def fact(scope: SymbolScope, text: str, dtype: type[np.generic] = np.float32) -> TypedFact:
    return TypedFact(np.dtype(dtype), dims(scope, text))


@pytest.mark.parametrize(
    ("before", "target", "after"),
    [
        ("1,80,T", "1,-1", "1,80*T"),
        ("B,T,4", "B,T,2,-1", "B,T,2,2"),
        ("1,T,2,33", "1,-1,66", "1,T,66"),
        ("4*T", "-1,4", "T,4"),
        ("4*T,B", "B,T,-1", "B,T,4"),
        ("2*T+2,3", "-1,6", "T+1,6"),
        ("T", "-1,2", "T/2,2"),
    ],
)
def test_reshape_infers_the_open_dim(before: str, target: str, after: str) -> None:
    scope = SymbolScope()
    (result,) = Reshape(dims(scope, target)).facts([fact(scope, before)])
    assert result.shape == dims(scope, after), shape_text(result.shape)


def test_a_split_assumes_that_the_length_divides() -> None:
    scope = SymbolScope()
    Reshape(dims(scope, "-1,2")).facts([fact(scope, "T")])
    (assumption,) = scope.assumptions
    symbol = scope.symbol("T")
    assert assumption.eval({symbol: 4})
    assert not assumption.eval({symbol: 5})


def test_shapes_that_agree_assume_nothing() -> None:
    scope = SymbolScope()
    Reshape(dims(scope, "-1,T,2")).facts([fact(scope, "T,4,3")])
    MatMul().facts([fact(scope, "1,T,4"), fact(scope, "4,5")])
    Expand(dims(scope, "B,T,3")).facts([fact(scope, "T,1")])
    assert scope.assumptions == ()


WRONG: list[tuple[Op, list[str], str]] = [
    (Transpose((0, 0)), ["2,3"], "perm"),
    (AddAxis(4), ["2,3"], "cannot add axis 4"),
    (RemoveAxis(1), ["2,3"], "size 1"),
    (RemoveAxis(2), ["2,3"], "cannot remove axis 2"),
    (Tile((TDim.of(1),)), ["2,3"], "repeats"),
    (Expand((TDim.of(4),)), ["2,3"], "expand"),
    (Reshape((TDim.of(4), TDim.of(2))), ["2,3"], "reshape"),
    (Reshape((TDim.of(-1), TDim.of(-1))), ["2,3"], "more than one"),
    (Reshape((TDim.of(-1), TDim.of(4))), ["2,3"], "do not divide"),
    (Gather(2), ["2,3", "1"], "out of range"),
    (Gather(0), ["2,3", "1"], "integers"),
    (MatMul(), ["2,3", "4,5"], "summed over"),
    (MatMul(), ["2,3", ""], "scalar"),
    (Reduce("sum", (3,), True), ["2,3"], "out of range"),
    (Softmax(2), ["2,3"], "out of range"),
    (LayerNorm(1), ["2,3", "4"], "scale and bias"),
]


@pytest.mark.parametrize(("op", "inputs", "message"), WRONG, ids=lambda value: str(value)[:50])
def test_inputs_that_do_not_fit_are_refused(op: Op, inputs: list[str], message: str) -> None:
    scope = SymbolScope()
    with pytest.raises(FactError, match=message):
        op.facts([fact(scope, text) for text in inputs])


def test_gather_checks_constant_indices() -> None:
    scope = SymbolScope()
    with pytest.raises(FactError, match="out of range for 3 entries"):
        Gather(0).facts([fact(scope, "3,4"), TypedFact.of(np.array([0, 3]))])


def test_sums_of_floats_are_wide() -> None:
    x = np.full((1, 1 << 16), 0.1, dtype=np.float32)
    (total,) = Reduce("sum", (1,), False).eval([x], {})
    assert total.dtype == np.float32
    assert total[0] == np.float32(x.astype(np.float64).sum())
