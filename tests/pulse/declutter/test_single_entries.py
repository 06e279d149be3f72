"""One entry of an axis, taken from what the tensor is made of."""

from collections.abc import Callable

import numpy as np
import pytest

from pulse.graph import OutletId
from pulse.ops.concat import Concat
from pulse.ops.gather import Gather
from pulse.ops.pad import Pad
from pulse.ops.shape import AddAxis, Expand
from pulse.ops.slice import Slice
from tests.pulse.declutter.decluttered_models import SmallModel, declutter_and_compare, ops
from tests.pulse.model_builder import pads_of


def make_slice(small: SmallModel) -> OutletId:
    return small.add("cut", Slice(2, small.dim("2"), small.dim("T")), small.x)


def make_join(small: SmallModel) -> OutletId:
    return small.add("join", Concat(2), np.ones((1, 4, 1), np.float32), small.x)


def make_padding(small: SmallModel) -> OutletId:
    row = small.source("row", "1,4,3,f32")
    return small.add("pad", Pad(pads_of((0, 0), (0, 0), (1, 5))), row)


def of_a_new_axis(small: SmallModel) -> OutletId:
    return small.add("wide", AddAxis(2), small.source("row", "1,4,f32"))


def of_equal_entries(small: SmallModel) -> OutletId:
    return small.add("wide", Expand((small.dim("1"), small.dim("4"), small.dim("T"))), np.float32(3))


def too_late(small: SmallModel) -> OutletId:
    """The entry may be of either part."""
    return small.add("join", Concat(2), small.x, np.ones((1, 4, 3), np.float32))


@pytest.mark.parametrize(
    ("source", "index", "left"),
    [
        pytest.param(make_slice, 1, ["Gather"], id="slice"),
        pytest.param(make_join, 2, ["Gather"], id="second part"),
        pytest.param(make_join, 0, [], id="first part"),
        pytest.param(make_padding, 2, ["Gather"], id="inside a padding"),
        pytest.param(make_padding, 0, ["Pad", "Gather"], id="the padding itself"),
        pytest.param(of_a_new_axis, 0, [], id="new axis"),
        pytest.param(of_equal_entries, 1, [], id="equal entries"),
        pytest.param(too_late, 4, ["Concat", "Gather"], id="unknown part"),
    ],
)
def test_an_entry_is_taken_from_its_source(
    source: Callable[[SmallModel], OutletId], index: int, left: list[str]
) -> None:
    small = SmallModel()
    y = small.add("y", Gather(2), source(small), np.array(index))
    result, fired = declutter_and_compare(small.model(y))
    assert [name for name in ops(result) if name not in ("Expand", "RemoveAxis")] == left
    assert fired["single_entry"] == (left[:-1] == [])
