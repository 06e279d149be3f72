"""Layouts of tensors: when slices, joins and reshapes need a copy, and when their readers read in place."""

from typing import Any

import numpy as np
import onnx
import pytest

import pulse
from pulse.facts import Array
from pulse.program.native.native_program import NativeProgram
from tests.pulse.cases.build import floats, model, node

FRAMES = 9
SHIFT = [
    node("Pad", "x around", "wide"),
    *(node("Slice", f"wide at{k} to{k} three", f"s{k}") for k in range(3)),
    *(node("Unsqueeze", f"s{k} two", f"u{k}") for k in range(3)),
    node("Concat", "u0 u1 u2", "stack", axis=2),
    node("Reshape", "stack joined", "channels"),
]
"""Each channel with its neighbours along the last axis as channels: [1, 4, T, 6] to [1, 12, T, 6]."""
GIVEN: dict[str, Array] = {
    "around": np.array([0, 0, 0, 1, 0, 0, 0, 1]),
    "two": np.array([2]),
    "three": np.array([3]),
    "joined": np.array([0, 12, -1, 6]),
    **{f"at{k}": np.array([k]) for k in range(3)},
    **{f"to{k}": np.array([k + 6]) for k in range(3)},
    "k": floats("k", 5, 12, 1, 1),
    "k3": floats("k3", 5, 12, 1, 3),
    "kt": floats("kt", 12, 5, 1, 1),
    "kts": floats("kts", 12, 5, 1, 2),
    "first": floats("first", 4, 4, 1, 1),
    "each": floats("each", 12, 1, 1, 1),
}


def kernels_of_proved(
    nodes: list[onnx.NodeProto], x: Array, axis: int, weights: dict[str, Array], frames: int
) -> list[str]:
    """The kernels of a program that was proved to stream as offline."""
    used = {name for proto in nodes for name in proto.input}
    constants = {name: value for name, value in weights.items() if name in used}
    proto = model(nodes, {"x": x}, constants, stream={"x": axis})
    report = pulse.verify(proto, pulse=frames, lengths=(1, 7, 12))
    assert report.equal, report
    program = pulse.stream(proto, pulse=frames)
    assert isinstance(program, NativeProgram)
    return [row.kernel for row in program.instructions]


@pytest.mark.parametrize("frames", [1, 3])
@pytest.mark.parametrize(
    ("reader", "copies"),
    [
        (node("Conv", "channels k"), 0),
        (node("Conv", "channels k3"), 0),
        (node("Conv", "channels k3", pads=[0, 1, 0, 1]), 2),
        (node("ConvTranspose", "channels kt"), 0),
        (node("ConvTranspose", "channels kts", strides=[1, 2]), 0),
        (node("Conv", "channels each", group=12), 1),
        (node("Tanh", "channels"), 1),
    ],
    ids=["1", "3", "padded", "transposed", "strided", "depthwise", "pointwise"],
)
def test_convolutions_read_shifted_channels_in_place(
    frames: int, reader: onnx.NodeProto, copies: int
) -> None:
    """A convolution reads neighbours where they lie, after another one that puts the channels innermost."""
    front = [node("Conv", "sound first", "x")]
    nodes = [onnx.NodeProto.FromString(proto.SerializeToString()) for proto in (*front, *SHIFT, reader)]
    nodes[0].input[0], nodes[0].output[0] = "x", "inner"
    nodes[1].input[0] = "inner"
    names = kernels_of_proved(nodes, floats("x", 1, 4, FRAMES, 6), 2, GIVEN, frames)
    assert names.count("copy") == 2 + copies  # into the first convolution, and inside of the border


@pytest.mark.parametrize("frames", [1, 3])
@pytest.mark.parametrize(("order", "copies"), [("a b", 0), ("b a", 2), ("a a", 2)])
def test_slices_that_are_joined_in_their_order_are_not_copied(frames: int, order: str, copies: int) -> None:
    """Parts in their order are the tensor itself; in another order they are copied."""
    constants = {"zero": np.array([0]), "two": np.array([2]), "five": np.array([5])}
    cut = [node("Slice", "x zero two two_", "a"), node("Slice", "x two five two_", "b")]
    constants["two_"] = np.array([2])
    x = floats("x", 1, FRAMES, 5)
    nodes = [*cut, node("Concat", order, "joined", axis=2), node("Tanh", "joined")]
    assert kernels_of_proved(nodes, x, 1, constants, frames).count("copy") == copies


@pytest.mark.parametrize("frames", [1, 4])
@pytest.mark.parametrize(
    ("perm", "copies", "pairs"),
    [((0, 2, 1, 3), 2, 0), ((0, 2, 3, 1), 0, 1)],
    ids=["groups after each other", "groups in turns"],
)
def test_stacked_parts_that_a_reshape_joins_are_views_or_pairs(
    frames: int, perm: tuple[int, ...], copies: int, pairs: int
) -> None:
    """Written so that the reshape is a view; one row puts the channels of two groups in turns."""
    constants = {
        "w": floats("w", 4, 6),
        "v": floats("v", 4, 6),
        "one": np.array([1]),
        "flat": np.array([1, -1, 12]),
    }
    parts = [node("MatMul", "x w", "a"), node("MatMul", "x v", "b")]
    wide = [node("Unsqueeze", f"{name} one", f"{name}_wide") for name in "ab"]
    x = floats("x", 1, FRAMES, 4)
    nodes = [*parts, *wide, node("Concat", "a_wide b_wide", "stack", axis=1)]
    nodes += [
        node("Transpose", "stack", "turned", perm=perm),
        node("Reshape", "turned flat", "r"),
        node("Tanh", "r"),
    ]
    names = kernels_of_proved(nodes, x, 1, constants, frames)
    assert (names.count("copy"), names.count("paired_copy")) == (copies, pairs)


@pytest.mark.parametrize(("depth", "copies"), [(5, 1), (16, 0)])
@pytest.mark.parametrize("frames", [1, 3])
def test_columns_of_products_of_few_terms_are_copied(depth: int, copies: int, frames: int) -> None:
    """Scores of 10 by 10: their columns become neighbours where the terms do not fill a vector."""
    nodes = [node("Transpose", "x", "turned", perm=(0, 1, 3, 2)), node("MatMul", "x turned")]
    assert kernels_of_proved(nodes, floats("x", 1, FRAMES, 10, depth), 1, {}, frames).count("copy") == copies


@pytest.mark.parametrize("frames", [1, 3])
@pytest.mark.parametrize(
    ("kernel", "attributes", "pieces"),
    [
        ((16, 1, 2, 3), {"group": 16, "pads": [0, 1, 0, 1]}, 3),
        ((16, 1, 2, 3), {"group": 16, "pads": [0, 2, 0, 2], "dilations": [1, 2]}, 3),
        ((8, 16, 1, 5), {"pads": [0, 2, 0, 2], "strides": [1, 2]}, 3),
        ((8, 8, 2, 3), {"group": 2, "pads": [0, 1, 0, 0]}, 4),
        ((8, 16, 1, 5), {"pads": [0, 9, 0, 2]}, 1),
        ((96, 16, 1, 5), {"pads": [0, 2, 0, 2]}, 1),
    ],
    ids=["depthwise", "dilated", "strided", "groups", "beyond", "many weights"],
)
def test_padded_ends_are_products_of_fewer_taps(
    kernel: tuple[int, ...], attributes: dict[str, Any], pieces: int, frames: int
) -> None:
    """Outputs near the ends have fewer taps; outputs of the padding alone, or of many weights, need a padded input."""
    nodes = [
        node("Conv", "x first", "inner"),
        node("Conv", "inner w b", "c", **attributes),
        node("PRelu", "c slope", "p"),
        node("Add", "p p2", "sum"),
        node("Tanh", "sum"),
    ]
    nodes.insert(1, node("Conv", "inner w2 b", "p2", **attributes))
    constants = {
        "first": floats("first", 16, 4, 1, 1),
        "w": floats("w", *kernel),
        "b": floats("b", kernel[0]),
    }
    constants |= {"w2": floats("w2", *kernel), "slope": floats("slope", kernel[0], 1, 1)}
    names = kernels_of_proved(nodes, floats("x", 1, 4, FRAMES, 120), 2, constants, frames)
    assert sum(names.count(name) for name in ("product", "product_few", "depthwise")) == 1 + 2 * pieces
    margins = 2 if frames == 1 else 1  # of several frames, all of the tensor is filled
    assert names.count("fill") == (2 * margins if pieces == 1 else 0)


@pytest.mark.parametrize("frames", [1, 3])
@pytest.mark.parametrize(("pads", "dilation"), [([0, 1, 0, 1], 1), ([1, 0, 0, 2], 2), ([0, 3, 0, 0], 1)])
def test_a_transposed_convolution_by_channel_is_a_depthwise_row(
    pads: list[int], dilation: int, frames: int
) -> None:
    """An ordinary convolution with the flipped kernel, also where more is cut off than the kernel is long."""
    transposed = node("ConvTranspose", "x w b", "t", group=16, pads=pads, dilations=[1, dilation])
    constants = {"w": floats("w", 16, 1, 2, 3), "b": floats("b", 16)}
    names = kernels_of_proved(
        [transposed, node("Relu", "t")], floats("x", 1, 16, FRAMES, 80), 2, constants, frames
    )
    assert "depthwise" in names
    assert not {"product", "product_few"} & {*names}
    assert "chain" not in names


@pytest.mark.parametrize("frames", [1, 3])
@pytest.mark.parametrize(("pads", "stride"), [((2, 2), 4), ((1, 0), 4), ((3, 1), 2), ((7, 3), 4)])
def test_few_transposed_channels_are_one_product(pads: tuple[int, int], stride: int, frames: int) -> None:
    """Where more than whole strides is cut off at the start, the product computes some outputs that nothing reads."""
    before, after = pads
    transposed = node("ConvTranspose", "x w b", "t", strides=[1, stride], pads=[0, before, 0, after])
    constants = {"w": floats("w", 6, 2, 1, 8), "b": floats("b", 2)}
    names = kernels_of_proved(
        [transposed, node("Relu", "t")], floats("x", 1, 6, FRAMES, 9), 2, constants, frames
    )
    assert names.count("product") + names.count("product_few") == 1


@pytest.mark.parametrize("frames", [1, 3])
@pytest.mark.parametrize("channels", [1, 2])
def test_a_long_kernel_of_few_channels_becomes_two_products(channels: int, frames: int) -> None:
    """36 or 32 of 37 taps fill whole vectors; a second product adds the others before the activation."""
    constants = {"w": floats("w", channels, 1, 1, 37), "b": floats("b", channels)}
    nodes = [node("Conv", "x w b", "c"), node("Relu", "c")]
    names = kernels_of_proved(nodes, floats("x", 1, 1, FRAMES, 60), 2, constants, frames)
    assert names.count("product_few") == names.count("product") == 1
    assert "chain" not in names


@pytest.mark.parametrize("mode", ["reflect", "edge"])
def test_padded_frames_are_copied_in_runs(mode: str) -> None:
    """The runs are the tensor, and all earlier frames and after it."""
    x = floats("x", FRAMES, 1, 7)
    amounts = {"p": np.array([0, 0, 4, 0, 0, 5])}
    names = kernels_of_proved([node("Pad", "x p", mode=mode)], x, 0, amounts, 3)
    assert names.count("copy") == 3


@pytest.mark.parametrize("frames", [1, 3])
@pytest.mark.parametrize(
    ("channels", "order", "other", "copies"),
    [
        (16, "a b", node("Conv", "a v", "c"), 0),
        (16, "b a", node("Conv", "a v", "c"), 0),
        (12, "a b", node("Conv", "a v", "c"), 2),
        (16, "a a", node("Conv", "a v", "c"), 2),
        (16, "a b", node("Tanh", "a", "c"), 1),
    ],
    ids=["vectors", "turned", "ragged", "twice", "elementwise"],
)
def test_products_of_whole_vectors_write_into_a_concatenation(
    channels: int, order: str, other: onnx.NodeProto, copies: int, frames: int
) -> None:
    """The layer before a skip connection and the one after it write their rows where the next one reads both."""
    constants = {
        "w": floats("w", channels, 4, 1, 3),
        "v": floats("v", channels, channels, 1, 1),
        "u": floats("u", 5, 2 * channels, 1, 1),
    }
    nodes = [
        node("Conv", "x w", "a"),
        other,
        node("Conv", "c v", "b"),
        node("Concat", order, "joined", axis=1),
        node("Conv", "joined u"),
    ]
    names = kernels_of_proved(nodes, floats("x", 1, 4, FRAMES, 9), 2, constants, frames)
    assert names.count("copy") == 1 + copies  # into the first convolution


@pytest.mark.parametrize("frames", [1, 3])
@pytest.mark.parametrize(
    ("groups", "perm", "copies"),
    [(2, [0, 2, 1, 3, 4], 0), (2, [0, 1, 2, 3, 4], 2), (3, [0, 2, 1, 3, 4], 3)],
    ids=["shuffled", "one after the other", "three groups"],
)
def test_channels_of_two_groups_are_shuffled_by_one_row(
    groups: int, perm: list[int], copies: int, frames: int
) -> None:
    """Neither group is copied, and the next layer reads the shuffled channels in place."""
    constants = {
        "w": floats("w", 8, 4, 1, 1),
        "u": floats("u", 5, 8 * groups, 1, 1),
        "one": np.array([1]),
        "shape": np.array([0, 8 * groups, -1, 6]),
    }
    nodes = [
        *(node("Conv", "x w" if not k else f"c{k - 1} w2", f"c{k}") for k in range(groups)),
        *(node("Unsqueeze", f"c{k} one", f"g{k}") for k in range(groups)),
        node("Concat", " ".join(f"g{k}" for k in range(groups)), "stack", axis=1),
        node("Transpose", "stack", "shuffled", perm=perm),
        node("Reshape", "shuffled shape", "channels"),
        node("Conv", "channels u"),
    ]
    constants["w2"] = floats("w2", 8, 8, 1, 1)
    names = kernels_of_proved(nodes, floats("x", 1, 4, FRAMES, 6), 2, constants, frames)
    assert names.count("paired_copy") == (not copies)
    assert names.count("copy") == 1 + copies  # into the first convolution


@pytest.mark.parametrize("frames", [1, 3])
@pytest.mark.parametrize(
    ("square", "axis", "kind", "other", "expected"),
    [
        (node("Pow", "a two", "s"), 3, "ReduceMean", "b", ["pool"]),
        (node("Pow", "a two", "s"), 3, "ReduceSum", "b", ["pool"]),
        (node("Pow", "a two", "s"), 1, "ReduceMean", "b", ["chain", "reduce"]),
        (node("Pow", "a two", "s"), 3, "ReduceMax", "b", ["chain", "pool"]),
        (node("Pow", "a two", "s"), 3, "ReduceMean", "s", ["chain", "pool"]),
        (node("Pow", "a three", "s"), 3, "ReduceMean", "b", ["chain", "pool"]),
    ],
    ids=["mean", "sum", "channels", "largest", "read twice", "cubes"],
)
def test_sums_of_squares_are_one_row(
    square: onnx.NodeProto, axis: int, kind: str, other: str, expected: list[str], frames: int
) -> None:
    """If the channels are kept and nothing else reads the squares; the last chain is the sum with ``v``."""
    constants: dict[str, Array] = {"w": floats("w", 8, 4, 1, 1), "two": np.array(2.0, np.float32)}
    constants |= {"three": np.array(3.0, np.float32), "over": np.array([axis])}
    reduced = node(kind, "s over", "m") if kind == "ReduceSum" else node(kind, "s", "m", axes=[axis])
    nodes = [node("Conv", "x w", "a"), square, reduced, node("Conv", f"{'s' if other == 's' else 'a'} w2")]
    nodes[-1].output[0] = "v"
    nodes.append(node("Add", "m v"))
    constants["w2"] = floats("w2", 8, 8, 1, 1)
    names = kernels_of_proved(nodes, floats("x", 1, 4, FRAMES, 6), 2, constants, frames)
    assert [name for name in names if name in ("chain", "pool", "reduce")] == [*expected, "chain"]


@pytest.mark.parametrize("axes", [[4], [2], [0], [2, 4]], ids=str)
def test_squares_with_a_broadcast_exponent_sum_their_own_axes(axes: list[int]) -> None:
    nodes = [node("Relu", "x", "a"), node("Pow", "a two", "s"), node("ReduceMean", "s", axes=axes)]
    kernels_of_proved(
        nodes, floats("x", 1, 4, FRAMES, 6), 2, {"two": np.full((1, 1, 1, 1, 1), 2, np.float32)}, 1
    )
