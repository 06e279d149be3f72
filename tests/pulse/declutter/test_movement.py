"""Elements that move twice move once, or not at all."""

import pytest

from pulse.dim import TDim
from pulse.ops.elementwise import Elementwise
from pulse.ops.op import Op
from pulse.ops.shape import AddAxis, Expand, RemoveAxis, Reshape, Transpose
from pulse.ops.slice import Slice
from tests.pulse.declutter.decluttered_models import SmallModel, declutter_and_compare, ops

ONE, FOUR, FREE = TDim.of(1), TDim.of(4), TDim.of(-1)


def chain(small: SmallModel, *steps: Op) -> list[str]:
    outlet = small.x
    for number, op in enumerate(steps):
        outlet = small.add(f"step{number}", op, outlet)
    result, _ = declutter_and_compare(small.model(outlet))
    assert result.graph.output_names == [f"step{len(steps) - 1}"]
    return ops(result)


def test_transposes_are_joined_or_removed() -> None:
    assert chain(SmallModel(), Transpose((2, 0, 1)), Transpose((1, 2, 0))) == []
    assert chain(SmallModel(), Transpose((2, 0, 1)), Transpose((2, 0, 1))) == ["Transpose"]
    assert chain(SmallModel(), *[Transpose((2, 0, 1))] * 4) == ["Transpose"]
    assert chain(SmallModel("2,2,2,2,f32"), Transpose((1, 2, 3, 0)), Transpose((1, 0, 2, 3))) == ["Transpose"]


def test_transposes_around_functions_vanish() -> None:
    turn, back = Transpose((2, 0, 1)), Transpose((1, 2, 0))
    assert chain(SmallModel(), turn, Elementwise("tanh"), back) == ["tanh"]
    assert chain(SmallModel(), turn, Elementwise("tanh"), turn) == ["Transpose", "tanh", "Transpose"]
    small = SmallModel()
    two = [
        small.add(f"turn{number}", turn, small.add(kind, Elementwise(kind), small.x))
        for number, kind in enumerate(("neg", "abs"))
    ]
    total = small.add("sum", Elementwise("add"), *two)
    result, fired = declutter_and_compare(
        small.model(
            small.add("one", back, total), small.add("two", Elementwise("exp"), small.add("b", back, total))
        )
    )
    assert fired["function_between_transposes"] == 1
    assert "Transpose" not in ops(result)
    unchanged, _ = declutter_and_compare(small.model(small.add("three", back, total), total))
    assert ops(unchanged) == ["neg", "Transpose", "abs", "Transpose", "add", "Transpose"]


def test_a_transpose_with_another_reader_stays() -> None:
    small = SmallModel()
    first = small.add("first", Transpose((0, 2, 1)), small.x)
    second = small.add("second", Transpose((0, 2, 1)), first)
    result, fired = declutter_and_compare(small.model(first, small.add("y", Elementwise("neg"), second)))
    assert fired == {"two_transposes": 1}
    assert sorted(ops(result)) == ["Transpose", "neg"]


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param((AddAxis(1), RemoveAxis(1)), id="add and remove"),
        pytest.param((AddAxis(0), RemoveAxis(1)), id="add before and remove"),
        pytest.param((AddAxis(3), AddAxis(0), RemoveAxis(4), RemoveAxis(0)), id="two added, two removed"),
        pytest.param((RemoveAxis(0), AddAxis(0)), id="remove and add"),
        pytest.param((Reshape((FOUR, FREE)), AddAxis(0)), id="reshape and add"),
        pytest.param((AddAxis(2), Reshape((ONE, FOUR, FREE))), id="add and reshape"),
        pytest.param(
            (Reshape((TDim.of(2), TDim.of(2), FREE)), Reshape((ONE, FOUR, FREE))), id="two reshapes"
        ),
    ],
)
def test_steps_that_undo_each_other_vanish(steps: tuple[Op, ...]) -> None:
    assert chain(SmallModel(), *steps) == []


def test_reshapes_are_joined_or_removed() -> None:
    small = SmallModel()
    halves = (ONE, TDim.of(2), TDim.of(2), FREE)
    assert chain(small, Reshape((FOUR, FREE)), Reshape(halves)) == ["Reshape"]
    assert chain(SmallModel(), AddAxis(0), Reshape((FOUR, FREE))) == ["Reshape"]
    assert chain(SmallModel(), Reshape((FOUR, FREE)), AddAxis(1)) == ["Reshape", "AddAxis"]


def test_a_reshape_of_a_moved_wire_stays() -> None:
    assert chain(SmallModel(), Transpose((0, 2, 1)), Reshape((ONE, FOUR, FREE))) == ["Transpose", "Reshape"]


def cut(start: str, end: str, step: int = 1, axis: int = 2) -> Op:
    small = SmallModel()
    return Slice(axis, small.dim(start), small.dim(end), step)


@pytest.mark.parametrize(
    ("inner", "outer", "expected"),
    [
        (("1", "T"), ("1", "T-1", 1), "axis 2 2:T"),
        (("1", "T-1"), ("0", "T-3", 1), "axis 2 1:T-2"),
        (("2", "T"), ("1", "T-2", 3), "axis 2 3:T:3"),
        (("1", "T"), ("T-3", "T-1", 1), "axis 2 T-2:T"),
        (("0", "6", 2), ("1", "3", 1), "axis 2 2:5:2"),
        (("1", "6", 2), ("0", "3", 2), "axis 2 1:6:4"),
    ],
)
def test_slices_are_joined_or_removed(
    inner: tuple[str, str], outer: tuple[str, str, int], expected: str
) -> None:
    small = SmallModel()
    first_step = inner[2] if len(inner) > 2 else 1
    first = small.add("a", Slice(2, small.dim(inner[0]), small.dim(inner[1]), first_step), small.x)
    second = small.add("b", Slice(2, small.dim(outer[0]), small.dim(outer[1]), outer[2]), first)
    result, fired = declutter_and_compare(small.model(second))
    assert fired == {"two_slices": 1}
    assert result.graph.node(result.graph.outputs[0]).op.detail() == expected


def test_slices_of_two_axes_or_backwards_stay() -> None:
    small = SmallModel()
    first = small.add("a", Slice(1, TDim.of(1), FOUR), small.x)
    other = small.add("b", Slice(2, ONE, small.dim("T")), first)
    back = small.add("c", Slice(2, small.dim("T-2"), TDim.of(-1), -1), other)
    assert ops(declutter_and_compare(small.model(back))[0]) == ["Slice"] * 3


def test_an_expand_that_the_next_op_does_itself_is_gone() -> None:
    small = SmallModel()
    row = small.source("row", "1,4,1,f32")
    wide = small.add("wide", Expand((ONE, FOUR, small.dim("T"))), row)
    y = small.add("y", Elementwise("add"), small.x, wide)
    assert ops(declutter_and_compare(small.model(y))[0]) == ["add"]


def test_an_expand_that_gives_the_size_stays() -> None:
    small = SmallModel()
    row = small.source("row", "1,4,1,f32")
    wide = small.add("wide", Expand((ONE, FOUR, small.dim("T"))), row)
    y = small.add("y", Elementwise("add"), wide, row)
    assert ops(declutter_and_compare(small.model(small.x, y))[0]) == ["Expand", "add"]


def test_a_slice_beyond_the_end_of_the_first_one_stays() -> None:
    small = SmallModel()
    first = small.add("a", Slice(2, ONE, TDim.of(3)), small.x)
    second = small.add("b", Slice(2, ONE, small.dim("T")), first)
    assert ops(declutter_and_compare(small.model(second))[0]) == ["Slice"] * 2
