"""Each node that does nothing goes; its neighbours that do something stay."""

import numpy as np
import pytest

from pulse.dim import TDim
from pulse.ops.concat import Concat
from pulse.ops.conv import no_pads
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.pad import Pad
from pulse.ops.reduce import Reduce
from pulse.ops.shape import Expand, Reshape, Tile, Transpose
from pulse.ops.slice import Slice
from tests.pulse.declutter.decluttered_models import Case, SmallModel, declutter_and_compare, ops

ONE, FOUR = TDim.of(1), TDim.of(4)
NOTHING = np.zeros((1, 4, 0), np.float32)
WIDE = np.ones((1, 4, 1), np.float32)


GONE = [
    pytest.param("identity", lambda s: s.add("y", Reshape((ONE, FOUR, TDim.of(-1))), s.x), id="reshape"),
    pytest.param("identity", lambda s: s.add("y", Expand((ONE, FOUR, ONE)), s.x), id="expand"),
    pytest.param("identity", lambda s: s.add("y", Transpose((0, 1, 2)), s.x), id="transpose"),
    pytest.param("identity", lambda s: s.add("y", Cast(np.dtype(np.float32)), s.x), id="cast"),
    pytest.param("identity", lambda s: s.add("y", Slice(2, TDim.of(0), s.dim("T")), s.x), id="slice"),
    pytest.param("identity", lambda s: s.add("y", Pad(no_pads(3), "edge"), s.x), id="pad"),
    pytest.param("identity", lambda s: s.add("y", Concat(1), s.x), id="join of one"),
    pytest.param("identity", lambda s: s.add("y", Concat(2), NOTHING, s.x), id="join with nothing"),
    pytest.param("identity", lambda s: s.add("y", Tile((ONE, ONE, ONE)), s.x), id="tile"),
    pytest.param("neutral_operand", lambda s: s.add("y", Elementwise("mul"), s.x, 1.0), id="times 1"),
    pytest.param("neutral_operand", lambda s: s.add("y", Elementwise("mul"), WIDE, s.x), id="times ones"),
    pytest.param("neutral_operand", lambda s: s.add("y", Elementwise("div"), s.x, 1.0), id="divided by 1"),
    pytest.param("neutral_operand", lambda s: s.add("y", Elementwise("add"), 0.0, s.x), id="plus 0"),
    pytest.param("neutral_operand", lambda s: s.add("y", Elementwise("sub"), s.x, 0.0), id="minus 0"),
    pytest.param("neutral_operand", lambda s: s.add("y", Elementwise("pow"), s.x, 1.0), id="power of 1"),
    pytest.param("identity", lambda s: s.add("y", Elementwise("mean"), s.x), id="mean of one"),
    pytest.param("identity", lambda s: s.add("y", Elementwise("max"), s.x), id="maximum of one"),
    pytest.param(
        "identity", lambda s: s.add("y", Reduce("mean", (0,), True), s.x), id="mean over an axis of 1"
    ),
    pytest.param("identity", lambda s: s.add("y", Reduce("max", (), True), s.x), id="maximum over no axis"),
    pytest.param(
        "decided_where",
        lambda s: s.add("y", Elementwise("where"), np.ones((4, 1), np.bool_), s.x, 0.0),
        id="always",
    ),
    pytest.param(
        "decided_where", lambda s: s.add("y", Elementwise("where"), np.array(False), 0.0, s.x), id="never"
    ),
]


@pytest.mark.parametrize(("rewrite", "case"), GONE)
def test_ops_without_effect_are_removed(rewrite: str, case: Case) -> None:
    small = SmallModel()
    result, fired = declutter_and_compare(small.model(case(small)))
    assert fired == {rewrite: 1}
    assert ops(result) == []
    assert result.graph.output_names == ["y"]


STAYS = [
    pytest.param(lambda s: s.add("y", Expand((TDim.of(2), FOUR, ONE)), s.x), id="expand"),
    pytest.param(lambda s: s.add("y", Transpose((0, 2, 1)), s.x), id="transpose"),
    pytest.param(lambda s: s.add("y", Cast(np.dtype(np.float64)), s.x), id="cast"),
    pytest.param(lambda s: s.add("y", Slice(2, TDim.of(0), s.dim("T-1")), s.x), id="slice"),
    pytest.param(lambda s: s.add("y", Slice(2, s.dim("T-1"), TDim.of(-1), -1), s.x), id="reversed slice"),
    pytest.param(lambda s: s.add("y", Concat(1), s.x, s.x), id="join"),
    pytest.param(lambda s: s.add("y", Tile((ONE, TDim.of(2), ONE)), s.x), id="tile"),
    pytest.param(
        lambda s: s.add("y", Elementwise("mul"), s.x, np.ones((2, 1, 1), np.float32)), id="broadcast product"
    ),
    pytest.param(lambda s: s.add("y", Elementwise("sub"), 0.0, s.x), id="difference from 0"),
    pytest.param(lambda s: s.add("y", Elementwise("div"), 1.0, s.x), id="quotient of 1"),
    pytest.param(
        lambda s: s.add("y", Elementwise("add"), s.x, np.float32([[0], [0], [0], [1]])),
        id="sum with a vector",
    ),
    pytest.param(lambda s: s.add("y", Reduce("sum", (0,), False), s.x), id="sum without its axis"),
    pytest.param(lambda s: s.add("y", Reduce("l2", (0,), True), s.x), id="norm"),
    pytest.param(
        lambda s: s.add("y", Elementwise("where"), np.array([[True], [False], [True], [True]]), s.x, 0.0),
        id="mixed condition",
    ),
]


def test_a_decided_branch_that_is_broadcast_becomes_an_expansion() -> None:
    small = SmallModel()
    y = small.add("y", Elementwise("where"), np.ones((2, 4, 1), np.bool_), small.x, 0.0)
    result, fired = declutter_and_compare(small.model(y))
    assert fired == {"decided_where": 1}
    assert ops(result) == ["Expand"]
    assert result.graph.fact(result.graph.outputs[0]).shape == (2, 4, small.dim("T"))


@pytest.mark.parametrize("case", STAYS)
def test_ops_with_effect_stay(case: Case) -> None:
    small = SmallModel()
    result, fired = declutter_and_compare(small.model(case(small)))
    assert not fired
    assert len(ops(result)) == 1


def test_a_transpose_is_removed_only_if_the_shape_stays() -> None:
    small = SmallModel("1,1,T,f32")
    y = small.add("y", Transpose((1, 0, 2)), small.x)
    z = small.add("z", Transpose((1, 2, 0)), small.x)
    result, fired = declutter_and_compare(small.model(y, z))
    assert fired == {"identity": 1}
    assert ops(result) == ["Transpose"]


def test_a_transpose_of_a_square_stays() -> None:
    small = SmallModel("4,4,1,f32")
    assert ops(declutter_and_compare(small.model(small.add("y", Transpose((1, 0, 2)), small.x)))[0]) == [
        "Transpose"
    ]


def test_empty_parts_of_a_concat_are_gone() -> None:
    small = SmallModel()
    y = small.add("y", Concat(2), NOTHING, small.x, WIDE)
    result, fired = declutter_and_compare(small.model(y))
    assert fired == {"empty_parts": 1}
    assert len(result.graph.node(result.graph.outputs[0]).inputs) == 2


@pytest.mark.parametrize("kind", ["relu", "abs", "floor", "ceil", "round", "sign"])
def test_a_function_that_repeats_itself_is_removed_once(kind: str) -> None:
    small = SmallModel()
    y = small.add("y", Elementwise(kind), small.add("once", Elementwise(kind), small.x))
    result, fired = declutter_and_compare(small.model(y))
    assert fired == {"twice": 1}
    assert [node.name for node in result.graph.nodes] == ["x", "once"]


def test_neg_twice_stays() -> None:
    small = SmallModel()
    y = small.add("y", Elementwise("neg"), small.add("once", Elementwise("neg"), small.x))
    assert ops(declutter_and_compare(small.model(y))[0]) == ["neg", "neg"]


def test_new_constants_are_folded() -> None:
    small = SmallModel("1,4,f32")
    picked = small.add("picked", Elementwise("where"), np.array(True), np.ones((1, 4), np.float32), small.x)
    y = small.add("y", Elementwise("exp"), picked)
    result, fired = declutter_and_compare(small.model(y))
    assert fired == {"decided_where": 1, "fold": 1}
    assert ops(result) == []
    assert list(result.inputs) == ["x"]
    assert result.graph.node(result.graph.outputs[0]).name == "y"
