"""Comparisons of positions with lengths that are the same in every frame, and masks of padding that they make."""

import numpy as np
import pytest

from pulse.graph import OutletId
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.shape import AddAxis
from pulse.ops.time_position import Range
from tests.pulse.declutter.decluttered_models import SmallModel, declutter_and_compare, ops

INTEGER = np.dtype(np.int64)


def positions(small: SmallModel, start: int = 0, step: int = 1) -> OutletId:
    return small.add("p", Range(start, step, small.dim("T"), INTEGER))


def length(small: SmallModel, more: int = 0) -> OutletId:
    return small.constant(np.array([small.dim("T") + more], object))


def mask_input(small: SmallModel, condition: OutletId) -> OutletId:
    """The input where the condition is true, else 0."""
    row = small.add("row", AddAxis(0), condition)
    return small.add("y", Elementwise("where"), small.add("rows", AddAxis(0), row), small.x, 0.0)


@pytest.mark.parametrize(
    ("kind", "start", "step", "more"),
    [
        ("less", 0, 1, 0),
        ("less_equal", 0, 1, -1),
        ("less", -3, 1, -3),
        ("greater", 4, 1, 0),
        ("greater_equal", 0, -1, 0),
        ("less_equal", 3, -2, 0),
    ],
)
def test_positions_within_the_length_need_no_mask(kind: str, start: int, step: int, more: int) -> None:
    """The comparison is made with the length, or with the first position."""
    small = SmallModel()
    place = positions(small, start, step)
    bound = {
        "less": length(small, more),
        "less_equal": length(small, more) if step > 0 else small.constant(np.array(3)),
        "greater": small.constant(np.array(3)),
        "greater_equal": place,
    }[kind]
    inputs = (small.constant(np.array(0)), place) if kind == "greater_equal" else (place, bound)
    result, fired = declutter_and_compare(
        small.model(mask_input(small, small.add("c", Elementwise(kind), *inputs)))
    )
    assert fired["decided_comparison"] == 1
    assert ops(result) == []


def test_masks_that_are_inverted_and_multiplied_vanish() -> None:
    small = SmallModel()
    is_after_end = small.add("c", Elementwise("greater_equal"), positions(small), length(small))
    visible = small.add("seen", Cast(np.dtype(np.float32)), small.add("n", Elementwise("not"), is_after_end))
    y = small.add("y", Elementwise("mul"), small.x, visible)
    assert ops(declutter_and_compare(small.model(y))[0]) == []


@pytest.mark.parametrize(
    ("kind", "start", "more"),
    [("less", 0, -1), ("less", 1, 0), ("less_equal", 0, -2), ("greater", 0, -2), ("greater_equal", 0, -1)],
)
def test_a_comparison_that_changes_once_stays(kind: str, start: int, more: int) -> None:
    """The last frame, or the first one, is not as the others: off by one."""
    small = SmallModel()
    y = mask_input(small, small.add("c", Elementwise(kind), positions(small, start), length(small, more)))
    result, fired = declutter_and_compare(small.model(y))
    assert not fired["decided_comparison"]
    assert "where" in ops(result)


def test_a_comparison_of_equal_operands_stays() -> None:
    small = SmallModel()
    y = mask_input(small, small.add("c", Elementwise("equal"), positions(small), length(small)))
    assert "where" in ops(declutter_and_compare(small.model(y))[0])
