"""Scales and shifts that become part of the weights, where nothing forbids it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pulse.dim import TDim
from pulse.facts import Array
from pulse.ops.concat import Concat
from pulse.ops.conv import Conv, ConvTranspose, Pads, no_pads
from pulse.ops.elementwise import Elementwise
from pulse.ops.matmul import MatMul
from pulse.ops.norm import Softmax
from pulse.ops.op import Op
from pulse.ops.slice import Slice
from pulse.typed import known_value
from tests.noise import normal_noise
from tests.pulse.declutter.decluttered_models import SmallModel, declutter_and_compare, ops

PADDED: Pads = ((TDim.of(2), TDim.of(1)),)
FORMS = [
    ("add", False),
    ("add", True),
    ("sub", False),
    ("sub", True),
    ("mul", False),
    ("mul", True),
    ("div", False),
]


def draw(*shape: int) -> Array:
    return normal_noise(*shape, seed=7)


def conv_of(group: int, pads: Pads = PADDED) -> tuple[Op, Array]:
    return Conv((2,), (1,), pads, group), draw(6, 4 // group, 3)


def deconv_of(group: int, pads: Pads = PADDED) -> tuple[Op, Array]:
    return ConvTranspose((2,), (1,), pads, (1,), group), draw(4, 6 // group, 3)


@pytest.mark.parametrize("make", [conv_of, deconv_of])
@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize(("kind", "constant_first"), FORMS)
@pytest.mark.parametrize("shape", [(6, 1), (1, 6, 1), ()])
def test_scales_and_shifts_after_a_convolution_join_its_weights(
    make: Callable[..., Any],
    group: int,
    with_bias: bool,
    kind: str,
    constant_first: bool,
    shape: tuple[int, ...],
) -> None:
    op, w = make(group)
    small = SmallModel()
    y = small.add("conv", op, small.x, w, *([draw(6)] if with_bias else []))
    value = draw(*shape) + np.float32(3)
    y = small.add("affine", Elementwise(kind), *((value, y) if constant_first else (y, value)))
    result, fired = declutter_and_compare(small.model(y), tolerance=1e-5)
    assert fired == {"affine_after_conv": 1}
    assert ops(result) == [op.name]
    node = result.graph.node(result.graph.outputs[0])
    assert node.name == "affine"
    has_bias = with_bias or kind in ("add", "sub")
    assert len(node.inputs) == 2 + has_bias


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize(("kind", "constant_first"), FORMS)
def test_scales_and_shifts_before_a_convolution_join_its_weights(
    group: int, with_bias: bool, kind: str, constant_first: bool
) -> None:
    op, w = conv_of(group, no_pads(1))
    small = SmallModel()
    value = draw(1, 4, 1) + np.float32(3)
    x = small.add("square", Elementwise("mul"), small.x, small.x)
    y = small.add("affine", Elementwise(kind), *((value, x) if constant_first else (x, value)))
    y = small.add("conv", op, y, w, *([draw(6)] if with_bias else []))
    result, fired = declutter_and_compare(small.model(y), tolerance=1e-5)
    assert fired == {"affine_before_conv": 1}
    assert ops(result) == ["mul", "Conv"]
    assert result.graph.node(result.graph.outputs[0]).name == "conv"


@pytest.mark.parametrize("exact", [None, "round", "relu"])
def test_a_shift_of_exact_values_stays(exact: str | None) -> None:
    """Such a shift may cancel most digits: of codes near their zero point, or of levels far from 0."""
    op, w = conv_of(1, no_pads(1))
    small = SmallModel()
    x = small.x if exact is None else small.add("exact", Elementwise(exact), small.x)
    y = small.add("conv", op, small.add("shift", Elementwise("sub"), x, np.float32(30_000)), w)
    result, fired = declutter_and_compare(small.model(y), tolerance=1e-5)
    assert "affine_before_conv" not in fired
    near = {"x": np.round(draw(1, 4, 12)) + np.float32(30_000)}
    np.testing.assert_array_equal(result.run(near)["conv"], small.model(y).run(near)["conv"])


def test_a_shift_stays_if_a_part_of_the_values_is_exact() -> None:
    conv, w = conv_of(1, no_pads(1))
    small = SmallModel()
    parts = [
        small.add(f"part{index}", Slice(1, TDim.of(0), TDim.of(2)), x)
        for index, x in enumerate((small.add("rounded", Elementwise("tanh"), small.x), small.x))
    ]
    joined = small.add("joined", Concat(1), *parts)
    y = small.add("conv", conv, small.add("shift", Elementwise("sub"), joined, np.float32(3)), w)
    assert "affine_before_conv" not in declutter_and_compare(small.model(y), tolerance=1e-5)[1]


@pytest.mark.parametrize("op", [Elementwise("tanh"), Softmax(1)], ids=["tanh", "softmax"])
def test_a_shift_of_rounded_values_joins_the_weights(op: Op) -> None:
    conv, w = conv_of(1, no_pads(1))
    small = SmallModel()
    part = small.add("part", Slice(1, TDim.of(0), TDim.of(4)), small.add("rounded", op, small.x))
    y = small.add("conv", conv, small.add("shift", Elementwise("sub"), part, np.float32(3)), w)
    assert declutter_and_compare(small.model(y), tolerance=1e-5)[1]["affine_before_conv"] == 1


@pytest.mark.parametrize(
    ("kind", "expected"), [("mul", ["Conv"]), ("div", ["Conv"]), ("add", ["add", "Conv"])]
)
def test_only_scales_pass_a_pad(kind: str, expected: list[str]) -> None:
    op, w = conv_of(1)
    small = SmallModel()
    y = small.add("affine", Elementwise(kind), small.x, draw(4, 1) + np.float32(3))
    assert ops(declutter_and_compare(small.model(small.add("conv", op, y, w)), tolerance=1e-5)[0]) == expected


@pytest.mark.parametrize(("kind", "shape", "expected"), [
    ("mul", (5,), ["MatMul"]),
    ("mul", (), ["MatMul"]),
    ("div", (1, 1, 5), ["MatMul"]),
    ("add", (5,), ["MatMul", "add"]),
    ("mul", (1, 7, 1), ["MatMul", "mul"]),
])  # fmt: skip
def test_scales_after_a_product_join_its_matrix(
    kind: str, shape: tuple[int, ...], expected: list[str]
) -> None:
    small = SmallModel("T,7,4,f32")
    y = small.add("product", MatMul(), small.x, draw(4, 5))
    y = small.add("affine", Elementwise(kind), y, draw(*shape) + np.float32(3))
    assert ops(declutter_and_compare(small.model(y), tolerance=1e-5)[0]) == expected


def test_products_of_wires_with_another_reader_stay() -> None:
    op, w = conv_of(1, no_pads(1))
    small = SmallModel()
    before = small.add("before", Elementwise("mul"), small.x, 3.0)
    conv = small.add("conv", op, before, w)
    after = small.add("after", Elementwise("mul"), conv, 3.0)
    result, fired = declutter_and_compare(
        small.model(small.add("y", Elementwise("neg"), before), conv, after), tolerance=1e-5
    )
    assert set(fired) <= {"common"}
    assert sorted(ops(result)) == ["Conv", "mul", "mul", "neg"]


def test_scales_of_shared_weights_stay() -> None:
    small = SmallModel()
    w = small.add("w", Elementwise("neg"), draw(6, 4, 3))
    first = small.add("first", Conv((1,), (1,), no_pads(1)), small.x, w)
    second = small.add("second", Conv((1,), (2,), no_pads(1)), small.x, w)
    result, fired = declutter_and_compare(small.model(small.add("y", Elementwise("mul"), first, 2.0), second))
    assert not fired
    assert ops(result) == ["Conv", "mul", "Conv"]


@pytest.mark.parametrize(("kind", "value"), [
    pytest.param("div", np.float32(0), id="division by 0"),
    pytest.param("mul", np.float32(np.inf), id="infinity"),
    pytest.param("mul", np.float32(3e38), id="overflow"),
    pytest.param("mul", np.float32(1e-38), id="underflow"),
])  # fmt: skip
def test_values_beyond_the_type_are_not_folded(kind: str, value: np.float32) -> None:
    op, w = conv_of(1, no_pads(1))
    small = SmallModel()
    y = small.add("conv", op, small.x, w * np.float32(2))
    result, fired = declutter_and_compare(
        small.model(small.add("y", Elementwise(kind), y, np.asarray(value)))
    )
    assert not fired
    assert ops(result) == ["Conv", kind]


def test_a_value_for_each_frame_or_of_another_shape_stays() -> None:
    small = SmallModel("1,4,8,f32")
    y = small.add("conv", Conv((1,), (1,), no_pads(1)), small.x, draw(4, 4, 3))
    scaled = small.add("scaled", Elementwise("mul"), y, draw(6) + np.float32(3))
    wider = small.add("wider", Elementwise("add"), scaled, draw(2, 1, 1))
    assert ops(declutter_and_compare(small.model(wider))[0]) == ["Conv", "mul", "add"]


def test_a_chain_is_folded_and_the_weights_keep_their_name() -> None:
    op, w = conv_of(1, no_pads(1))
    small = SmallModel()
    weights = small.add("weights", Elementwise("neg"), w)
    y = small.add("scale", Elementwise("mul"), small.x, 2.0)
    y = small.add("conv", op, small.add("shift", Elementwise("add"), y, draw(4, 1)), weights)
    y = small.add("b", Elementwise("sub"), small.add("a", Elementwise("div"), y, 3.0), draw(6, 1))
    result, fired = declutter_and_compare(small.model(y), tolerance=1e-5)
    assert fired == {"affine_before_conv": 2, "affine_after_conv": 2}
    assert ops(result) == ["Conv"]
    conv = result.graph.node(result.graph.outputs[0])
    assert (conv.name, result.graph.label(conv.inputs[1])) == ("b", "weights")
    folded = known_value(result.graph, conv.inputs[1])
    assert folded is not None
    np.testing.assert_allclose(folded, -w * (np.float32(2) / 3), rtol=1e-6)
