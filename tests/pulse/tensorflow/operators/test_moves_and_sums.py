"""Operators that move, join and sum entries, against numpy."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.tensorflow.registry import TRANSLATORS
from tests.noise import normal_noise
from tests.pulse.tensorflow.graphs import F32, I32, I64, GraphDefBuilder
from tests.pulse.tensorflow.operator_results import X, results_of_operator

I = np.array([[7, -7, 3], [5, 0, -4]], np.int32)
PADS = ((0, 0), (1, 2), (0, 1))
EYE = np.eye(3, dtype=np.float32)
IMAGE = normal_noise(1, 4, 6, 3)
BLOCKS = IMAGE.reshape(1, 2, 2, 3, 2, 3).transpose(0, 1, 3, 2, 4, 5).reshape(1, 2, 3, 12)
SHAPES: dict[str, tuple[str, Sequence[Any], Mapping[str, Any], Any]] = {
    "reshape": ("Reshape", (X, np.int32([-1, 2])), {}, X.reshape(-1, 2)),
    "expand": ("ExpandDims", (X, np.int32(-1)), {}, X[..., None]),
    "squeeze": ("Squeeze", (X[:, None],), {"squeeze_dims": [1]}, X),
    "transpose": ("Transpose", (X, np.int32([2, 0, 1])), {}, X.transpose(2, 0, 1)),
    "concat": ("ConcatV2", (X, X, np.int32(-2)), {"N": 2}, np.concatenate([X, X], 1)),
    "pack": ("Pack", (X, X), {"axis": 1, "N": 2}, np.stack([X, X], 1)),
    "slice": ("Slice", (X, np.int32([0, 1, 2]), np.int32([-1, 3, 1])), {}, X[:, 1:4, 2:3]),
    "strided": (
        "StridedSlice",
        (X, np.int32([0, 4, 1]), np.int32([0, 0, 2]), np.int32([1, -2, 1])),
        {"begin_mask": 1, "end_mask": 1, "shrink_axis_mask": 4},
        X[:, 4:0:-2, 1],
    ),
    "strided_new": (
        "StridedSlice",
        (X, np.int32([0, 0, -2]), np.int32([0, 0, 0]), np.int32([1, 1, 1])),
        {"ellipsis_mask": 1, "new_axis_mask": 2, "end_mask": 4},
        X[..., None, -2:],
    ),
    "gather": ("GatherV2", (X, np.int32([3, 0]), np.int32(1)), {}, X[:, [3, 0]]),
    "div_no_nan": ("DivNoNan", (X, np.float32([2, 0, -1, 0.5])), {}, X * np.float32([0.5, 0, -1, 2])),
    "cumprod": ("Cumprod", (X, np.int32(1)), {}, np.cumprod(X, 1)),
    "cumprod_back": (
        "Cumprod",
        (X, np.int32(-1)),
        {"exclusive": True, "reverse": True},
        np.pad(np.cumprod(X[..., :0:-1], 2)[..., ::-1], ((0, 0), (0, 0), (0, 1)), constant_values=1),
    ),
    "l2_loss": ("L2Loss", (X,), {}, (X * X).sum() / 2),
    "lrn": (
        "LRN",
        (IMAGE,),
        {"depth_radius": 1, "bias": 2.0, "alpha": 0.5, "beta": 0.75},
        IMAGE
        / (2 + 0.5 * np.stack([(IMAGE[..., max(0, c - 1) : c + 2] ** 2).sum(-1) for c in range(3)], -1))
        ** 0.75,
    ),
    "xdivy": ("Xdivy", (np.float32([0, 3]), np.float32([0, 2])), {}, np.float32([0, 1.5])),
    "xlogy": ("Xlogy", (np.float32([0, 3]), np.float32([0, 2])), {}, np.float32([0, 3 * np.log(2)])),
    "xlog1py": ("Xlog1py", (np.float32([0, 3]), np.float32([-1, 2])), {}, np.float32([0, 3 * np.log(3)])),
    "mul_no_nan": ("MulNoNan", (np.float32([np.inf, 3]), np.float32([0, 2])), {}, np.float32([0, 6])),
    "roll": ("Roll", (X, np.int32([1, -2]), np.int32([2, 1])), {}, np.roll(X, (1, -2), (2, 1))),
    "roll_by_nothing": ("Roll", (X, np.int32([4]), np.int32([-1])), {}, X),
    "top_k": ("TopKV2", (X, np.int32(2)), {}, -np.sort(-X, -1)[..., :2]),
    "scatter": (
        "TensorScatterUpdate",
        (X, np.int32([[1, 2], [0, 4]]), X[0, :2]),
        {},
        np.stack([np.concatenate([X[0, :4], X[0, 1:2]]), np.concatenate([X[1, :2], X[0, :1], X[1, 3:]])]),
    ),
    "scatter_add": (
        "TensorScatterAdd",
        (X, np.int32([[1, 2], [1, 2]]), X[0, :2]),
        {},
        X + np.pad((X[0, :1] + X[0, 1:2])[None], ((1, 0), (2, 2), (0, 0))),
    ),
    "gather_nd": ("GatherNd", (X, np.int32([[1, 2], [0, 4]])), {}, X[[1, 0], [2, 4]]),
    "tile": ("Tile", (X, np.int32([1, 2, 1])), {}, np.tile(X, (1, 2, 1))),
    "pad": ("PadV2", (X, np.int32(PADS), np.float32(9)), {}, np.pad(X, PADS, constant_values=9)),
    "mirror": ("MirrorPad", (X, np.int32(PADS)), {"mode": "REFLECT"}, np.pad(X, PADS, mode="reflect")),
    "reverse": ("ReverseV2", (X, np.int32([1])), {}, X[:, ::-1]),
    "broadcast": ("BroadcastTo", (X[:, :1], np.int32([2, 5, 4])), {}, np.broadcast_to(X[:, :1], X.shape)),
    "sum": ("Sum", (X, np.int32([0, 2])), {"keep_dims": True}, X.sum((0, 2), keepdims=True)),
    "mean": ("Mean", (X, np.int32(-1)), {}, X.mean(-1)),
    "max": ("Max", (X, np.int32(1)), {}, X.max(1)),
    "all": ("All", (X > -1, np.int32(1)), {}, (X > -1).all(1)),
    "argmax": ("ArgMax", (X, np.int32(2)), {"output_type": I64}, X.argmax(2)),
    "cumsum": ("Cumsum", (X, np.int32(1)), {"exclusive": True}, X.cumsum(1) - X),
    "matmul": ("MatMul", (X[0], X[1]), {"transpose_b": True}, X[0] @ X[1].T),
    "batched": ("BatchMatMulV2", (X, X), {"adj_y": True}, X @ X.transpose(0, 2, 1)),
    "einsum": ("Einsum", (X, X[0]), {"equation": "abc,dc->abd", "N": 2}, np.einsum("abc,dc->abd", X, X[0])),
    "onehot": ("OneHot", (I % 3, np.int32(3), np.float32(2), np.float32(1)), {}, EYE[I % 3] + 1),
    "onehot_narrow": (
        "OneHot",
        (np.uint8([1, 255]), np.int32(300), np.float32(1), np.float32(0)),
        {},
        np.eye(300, dtype=np.float32)[[1, 255]],
    ),
    "cast": ("Cast", (X,), {"SrcT": F32, "DstT": I32}, X.astype(np.int32)),
    "bias": ("BiasAdd", (X, X[0, 0]), {}, X + X[0, 0]),
    "space_to_depth": ("SpaceToDepth", (IMAGE,), {"block_size": 2}, BLOCKS),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_and_sums_agree_with_numpy(name: str) -> None:
    op, inputs, attributes, expected = SHAPES[name]
    (output,) = results_of_operator(op, inputs, **attributes)
    assert output.shape == expected.shape
    np.testing.assert_allclose(output, expected, rtol=2e-6, atol=2e-6)


def test_parts_of_tensors_give_what_numpy_gives() -> None:
    parts = results_of_operator("SplitV", (X, np.int32([1, -1, 2]), np.int32(1)), 3)
    for part, expected in zip(parts, (X[:, :1], X[:, 1:3], X[:, 3:])):
        assert np.array_equal(part, expected)
    for place, part in enumerate(results_of_operator("Unpack", (X,), 2, num=2, axis=0)):
        assert np.array_equal(part, X[place])


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "message"),
    [
        ("SpaceToDepth", (normal_noise(1, 4, 5, 3),), {"block_size": 2}, "width 5 does not divide"),
        (
            "StridedSlice",
            (X, np.int32([2]), np.int32([3]), np.int32([1])),
            {"shrink_axis_mask": 1},
            "entry 2 of axis 0",
        ),
    ],
    ids=["blocks", "entry"],
)
def test_parts_that_a_tensor_does_not_have_are_refused(
    op: str, inputs: Sequence[Any], attributes: Mapping[str, Any], message: str
) -> None:
    with pytest.raises(pulse.LoadError, match=message):
        results_of_operator(op, inputs, **attributes)


def test_enough_operators_are_supported() -> None:
    assert len(TRANSLATORS) >= 100


@pytest.mark.parametrize(("below", "above"), [(1, 0), (-1, 1), (0, -1), (-1, -1)])
def test_bands_of_matrices_give_what_numpy_gives(below: int, above: int) -> None:
    (output,) = results_of_operator("MatrixBandPart", (X, np.int64(below), np.int64(above)))
    expected = X
    expected = np.triu(expected, -below) if below >= 0 else expected
    expected = np.tril(expected, above) if above >= 0 else expected
    assert np.array_equal(output, expected)


def test_shapes_are_broadcast() -> None:
    builder = GraphDefBuilder()
    builder.place("x", -1, 4)
    builder.const("other", [3, 1, 1], np.int32)
    builder.node("shape", "Shape", "x", T=F32, out_type=I32)
    builder.node("both", "BroadcastArgs", "shape", "other", T=I32)
    builder.node("y", "BroadcastTo", "x", "both", T=F32)
    x = normal_noise(2, 4)
    assert np.array_equal(pulse.load(builder.data).model.analyse().run(x)["y"], np.broadcast_to(x, (3, 2, 4)))
