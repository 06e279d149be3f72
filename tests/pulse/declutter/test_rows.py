"""Rows of frames that are merged with time inside: the rewritten model is equal, and streams."""

from collections.abc import Callable

import numpy as np
import pytest

import pulse
from pulse.declutter.rows import AxisPart, split_into_parts
from pulse.dim import SymbolScope
from pulse.errors import PulsifyError
from pulse.graph import OutletId
from pulse.ops.concat import Concat
from pulse.ops.cumulative import CumSum
from pulse.ops.elementwise import Elementwise
from pulse.ops.matmul import MatMul
from pulse.ops.norm import LayerNorm
from pulse.ops.shape import Expand, RemoveAxis, Reshape, Transpose
from tests.noise import normal_noise
from tests.pulse.declutter.decluttered_models import SmallModel, declutter_and_compare, ops

REWRITE = "rows_of_a_frame_together"


def reshape(small: SmallModel, name: str, x: OutletId, *dims: str) -> OutletId:
    return small.add(name, Reshape(tuple(map(small.dim, dims))), x)


def linear(
    small: SmallModel, x: OutletId, inputs: int = 8, outputs: int = 8, name: str = "linear"
) -> OutletId:
    return small.add(name, MatMul(), x, normal_noise(inputs, outputs, seed=len(name)))


def make_projection(small: SmallModel) -> OutletId:
    rows = reshape(small, "rows", small.x, "3*T", "8")
    return reshape(small, "y", linear(small, rows, 8, 5), "3", "T", "5")


def with_heads(small: SmallModel) -> OutletId:
    """The last axis is split before, and its parts are merged with the rows' merge."""
    heads = reshape(small, "heads", small.x, "3", "2*T", "4")
    rows = reshape(small, "rows", heads, "3*T", "8")
    return reshape(small, "y", linear(small, rows), "3", "T", "2", "4")


def of_two_merges(small: SmallModel) -> OutletId:
    other = small.add("other", Elementwise("tanh"), small.x)
    first = linear(small, reshape(small, "first", small.x, "3*T", "8"))
    second = reshape(small, "second", other, "3*T", "8")
    return reshape(small, "y", small.add("sum", Elementwise("add"), first, second), "3", "T", "8")


def with_a_norm(small: SmallModel) -> OutletId:
    rows = reshape(small, "rows", small.x, "3*T", "8")
    ones, zeros = np.ones(8, np.float32), np.zeros(8, np.float32)
    rows = small.add("norm", LayerNorm(1, 1e-5), rows, ones, zeros)
    return reshape(small, "y", small.add("relu", Elementwise("relu"), rows), "3", "T", "8")


def with_moved_rows(small: SmallModel) -> OutletId:
    rows = reshape(small, "rows", small.x, "3*T", "8")
    turned = small.add("turned", Transpose((1, 0)), rows)
    product = small.add("product", MatMul(), normal_noise(5, 8), turned)
    return reshape(small, "y", product, "5", "3", "T")


def with_joined_columns(small: SmallModel) -> OutletId:
    rows = reshape(small, "rows", small.x, "3*T", "8")
    joined = small.add("joined", Concat(1), linear(small, rows), rows)
    return reshape(small, "y", joined, "3", "T", "16")


def with_merged_heads(small: SmallModel) -> OutletId:
    """The parts of each row become rows themselves, which are joined again."""
    rows = linear(small, reshape(small, "rows", small.x, "3*T", "8"))
    heads = linear(small, reshape(small, "heads", rows, "6*T", "4"), 4, 4, "inner")
    return reshape(small, "y", reshape(small, "joined", heads, "3*T", "8"), "3", "T", "8")


def split_with_heads(small: SmallModel) -> OutletId:
    """The parts of each row are rows until the end."""
    heads = reshape(small, "heads", reshape(small, "rows", small.x, "3*T", "2", "4"), "6*T", "4")
    return reshape(small, "y", linear(small, heads, 4, 4), "3", "T", "2", "4")


def with_equal_rows(small: SmallModel) -> OutletId:
    """Another operand has one value for all rows, in the size of the rows."""
    rows = reshape(small, "rows", small.x, "3*T", "8")
    column = small.add("column", Expand(tuple(map(small.dim, ("1", "3*T", "8")))), normal_noise(8))
    offset = small.add("offset", Elementwise("tanh"), small.add("flat", RemoveAxis(0), column))
    return reshape(small, "y", small.add("sum", Elementwise("add"), rows, offset), "3", "T", "8")


@pytest.mark.parametrize(
    "build",
    [
        with_merged_heads,
        split_with_heads,
        with_equal_rows,
        make_projection,
        with_heads,
        of_two_merges,
        with_a_norm,
        with_moved_rows,
        with_joined_columns,
    ],
    ids=lambda build: build.__name__,
)
def test_rows_that_are_split_again_stream(build: Callable[[SmallModel], OutletId]) -> None:
    small = SmallModel("3,T,8,f32")
    model = small.model(build(small))
    with pytest.raises(PulsifyError, match="interleaves frames"):
        model.pulsify(pulse=2)
    simplified, applied = declutter_and_compare(model)
    assert applied[REWRITE] == 1
    assert pulse.verify(simplified, pulse=2).outcome == "equal"


def split_otherwise(small: SmallModel) -> OutletId:
    rows = reshape(small, "rows", small.x, "3*T", "8")
    return reshape(small, "y", linear(small, rows), "T", "3", "8")


def sum_rows(small: SmallModel) -> OutletId:
    """Each row needs those before it."""
    rows = reshape(small, "rows", small.x, "3*T", "8")
    return reshape(small, "y", small.add("sums", CumSum(0), rows), "3", "T", "8")


def split_heads_otherwise(small: SmallModel) -> OutletId:
    rows = linear(small, reshape(small, "rows", small.x, "3*T", "8"))
    heads = linear(small, reshape(small, "heads", rows, "6*T", "4"), 4, 4, "inner")
    return reshape(small, "y", heads, "6", "T", "4")


def left_as_rows(small: SmallModel) -> OutletId:
    return linear(small, reshape(small, "rows", small.x, "3*T", "8"))


def with_another_input(small: SmallModel) -> OutletId:
    """The other input has a number for each row, in their order."""
    rows = reshape(small, "rows", small.x, "3*T", "8")
    weights = small.source("weights", "3*T,1,f32")
    return reshape(small, "y", small.add("scaled", Elementwise("mul"), rows, weights), "3", "T", "8")


def with_time_outermost(small: SmallModel) -> OutletId:
    turned = small.add("turned", Transpose((1, 0, 2)), small.x)
    rows = reshape(small, "rows", turned, "3*T", "8")
    return reshape(small, "y", linear(small, rows), "T", "3", "8")


@pytest.mark.parametrize(
    "build",
    [split_otherwise, sum_rows, split_heads_otherwise, left_as_rows, with_another_input, with_time_outermost],
    ids=lambda build: build.__name__,
)
def test_rows_whose_order_counts_stay(build: Callable[[SmallModel], OutletId]) -> None:
    small = SmallModel("3,T,8,f32")
    model = small.model(build(small))
    simplified, applied = declutter_and_compare(model)
    assert applied[REWRITE] == 0
    assert ops(simplified).count("Reshape") == ops(model).count("Reshape")


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("3,T,8", "3*T,8", [("3", 0, 0), ("T", 1, 0), ("8", 2, 1)]),
        ("3,2*T,4", "3*T,8", [("3", 0, 0), ("T", 1, 0), ("2", 1, 1), ("4", 2, 1)]),
        ("1,6,T", "2,3,T,1", [("2", 1, 0), ("3", 1, 1), ("T", 2, 2)]),
        ("6,T", "4,3*T/2", None),
    ],
    ids=["merge", "heads", "ones", "no common parts"],
)
def test_a_reshape_is_a_split_and_a_merge(
    source: str, target: str, expected: list[tuple[str, int, int]] | None
) -> None:
    scope = SymbolScope()
    shapes = [tuple(map(scope.parse, text.split(","))) for text in (source, target)]
    parts = split_into_parts(*shapes)
    if expected is None:
        assert parts is None
    else:
        assert parts == [AxisPart(scope.parse(size), left, right) for size, left, right in expected]
