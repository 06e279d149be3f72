"""Equal computations become one."""

import numpy as np

from pulse.declutter import declutter_and_count
from pulse.dim import TDim
from pulse.ops.concat import Concat
from pulse.ops.elementwise import Elementwise
from pulse.ops.slice import Slice
from pulse.ops.source import Const
from tests.pulse.declutter.decluttered_models import SmallModel, declutter_and_compare, ops


def test_equal_chains_become_one() -> None:
    small = SmallModel()
    ends = []
    for name in "abc":
        scaled = small.add(f"{name}1", Elementwise("mul"), small.x, np.full((4, 1), 2, np.float32))
        ends.append(small.add(f"{name}2", Elementwise("leaky_relu", (0.5,)), scaled))
    result, fired = declutter_and_compare(small.model(small.add("y", Concat(1), *ends)))
    assert fired == {"common": 6}
    assert ops(result) == ["mul", "leaky_relu", "Concat"]
    assert [node.name for node in result.graph.nodes][1:4] == ["c", "a1", "a2"]


def test_different_nodes_stay() -> None:
    small = SmallModel()
    a = small.add("a", Elementwise("leaky_relu", (0.5,)), small.x)
    b = small.add("b", Elementwise("leaky_relu", (0.25,)), small.x)
    c = small.add("c", Elementwise("sub"), a, b)
    d = small.add("d", Elementwise("sub"), b, a)
    result, fired = declutter_and_compare(small.model(small.add("y", Concat(1), c, d)))
    assert not fired
    assert len(result.graph.nodes) == 6


def test_constants_differ_by_type_shape_and_bytes() -> None:
    small = SmallModel()
    values = [
        np.float32([0.0]), np.float32([-0.0]), np.float32([np.nan]), np.float32([[0.0]]), np.int32([0]),
        np.float32([0.0]), np.float32([np.nan]),
    ]  # fmt: skip
    outlets = [small.constant(value) for value in values]
    result, fired = declutter_and_count(small.model(small.x, *outlets))
    assert fired == {"common": 2}
    assert len(set(result.graph.outputs)) == 6
    assert len(result.graph.output_names) == 8


def test_constants_that_depend_on_a_length_are_compared_as_dims() -> None:
    small = SmallModel()
    values = [np.array([small.dim(text)], dtype=object) for text in ("T+1", "1+T", "T")]
    outlets = [small.constant(value) for value in values]
    result, fired = declutter_and_count(small.model(small.x, *outlets))
    assert fired == {"common": 1}
    assert sum(isinstance(node.op, Const) for node in result.graph.nodes) == 2


def test_equal_nodes_made_by_rewrites_become_one() -> None:
    small = SmallModel()
    end = small.dim("T")
    deep = small.add(
        "deep", Slice(2, TDim.of(1), end - 1), small.add("first", Slice(2, TDim.of(1), end), small.x)
    )
    flat = small.add("flat", Slice(2, TDim.of(2), end), small.x)
    result, fired = declutter_and_compare(small.model(small.add("y", Elementwise("add"), deep, flat)))
    assert fired == {"two_slices": 1, "common": 1}
    assert ops(result) == ["Slice", "add"]
