"""Attention within a frame is one instruction, and gives what a product, a softmax and a product give."""

import numpy as np
import onnx
import pytest

import pulse
from pulse.program.native.native_program import NativeProgram
from tests.pulse.cases.build import floats, model, node
from tests.pulse.cases.scan import body

FRAMES, BANDS, HEADS, CHANNELS = 5, 12, 3, 4
CONSTANTS = {
    "w": floats("w", HEADS * CHANNELS, 3 * HEADS * CHANNELS) * 0.3,
    "parts": np.array([0, BANDS, 3, HEADS, CHANNELS]),
    "joined": np.array([0, BANDS, HEADS * CHANNELS]),
    "scale": np.array(0.4, np.float32),
    "zero": np.array(0),
    "one": np.array(1),
    "two": np.array(2),
}
SCORES = [node("MatMul", "q kt", "scores"), node("Mul", "scores scale", "scaled")]
MEANS = [node("Softmax", "scaled", "p", axis=-1), node("MatMul", "p v", "means")]


def attention(middle: list[onnx.NodeProto], outputs: str = "y") -> onnx.ModelProto:
    """Queries, keys and values of each frame from one product; ``middle`` makes ``means`` of them."""
    nodes = [
        node("MatMul", "x w", "qkv"),
        node("Reshape", "qkv parts", "split"),
        node("Transpose", "split", "turned", perm=[2, 0, 3, 1, 4]),
        *(
            node("Gather", f"turned {index}", name, axis=0)
            for index, name in zip(("zero", "one", "two"), "qkv")
        ),
        node("Transpose", "k", "kt", perm=[0, 1, 3, 2]),
        *middle,
        node("Transpose", "means", "back", perm=[0, 2, 1, 3]),
        node("Reshape", "back joined", "y"),
    ]
    used = {name for proto in nodes for name in proto.input}
    constants = {name: value for name, value in CONSTANTS.items() if name in used}
    fed = {"x": floats("x", FRAMES, BANDS, HEADS * CHANNELS)}
    return model(nodes, fed, constants, stream={"x": 0}, outputs=outputs)


def kernels_of_proved(proto: onnx.ModelProto) -> list[str]:
    """The kernels of a program that was proved to stream as offline."""
    pulse.verify(proto, pulse=2, lengths=(1, 2, 5)).require()
    program = pulse.stream(proto, pulse=2)
    assert isinstance(program, NativeProgram)
    return [row.kernel for row in program.instructions]


def test_attention_is_one_instruction_that_writes_for_its_reader() -> None:
    names = kernels_of_proved(attention([*SCORES, *MEANS]))
    assert names.count("whole_attention") == names.count("copy") == 1  # the copy makes queries neighbours
    assert not {"matmul", "softmax", "chain"} & set(names)


def test_scales_of_queries_and_values_join_the_instruction() -> None:
    scores = [node("Mul", "q scale", "scaled_q"), node("MatMul", "scaled_q kt", "scaled")]
    means = [
        node("Mul", "v scale", "scaled_v"),
        MEANS[0],
        node("MatMul", "p scaled_v", "m"),
        node("Mul", "m scale", "means"),
    ]
    names = kernels_of_proved(attention([*scores, *means]))
    assert "whole_attention" in names
    assert "softmax" not in names


def test_attention_in_a_scan_is_one_instruction_for_each_frame() -> None:
    scores = [node("Transpose", "x_in", "turned", perm=[1, 0]), node("MatMul", "x_in turned", "scores")]
    means = [node("Softmax", "scores", "p", axis=-1), node("MatMul", "p x_in", "y_out")]
    scan = node("Scan", "x", "y", body=body([*scores, *means], "x_in", "y_out"), num_scan_inputs=1)
    names = kernels_of_proved(model([scan], {"x": floats("x", FRAMES, BANDS, CHANNELS)}, stream={"x": 0}))
    assert names.count("whole_attention") == 2
    assert "softmax" not in names


def test_attentions_that_share_a_product_become_one_instruction() -> None:
    middle = [node("MatMul", "k kt", "kk"), *SCORES, MEANS[0], node("MatMul", "p kk", "more")]
    middle += [node("Softmax", "more", "p2", axis=-1), node("MatMul", "p2 v", "means")]
    names = kernels_of_proved(attention(middle))
    assert names.count("whole_attention") == names.count("softmax") == 1


@pytest.mark.parametrize(
    ("middle", "outputs"),
    [
        ([*SCORES, *MEANS], "y p"),
        ([*SCORES, *MEANS], "y scores"),
        ([*SCORES, node("LogSoftmax", "scaled", "p", axis=-1), MEANS[1]], "y"),
        ([*SCORES, node("Softmax", "scaled", "p", axis=-2), MEANS[1]], "y"),
        ([*SCORES, node("Relu", "scaled", "r"), node("Softmax", "r", "p", axis=-1), MEANS[1]], "y"),
    ],
    ids=["weights are read", "scores are read", "log", "over queries", "between scores and weights"],
)
def test_attention_whose_parts_have_other_readers_stays_separate(
    middle: list[onnx.NodeProto], outputs: str
) -> None:
    names = kernels_of_proved(attention(middle, outputs))
    assert "whole_attention" not in names
    assert "softmax" in names


def test_sixteen_interleaved_lanes_agree_with_streams() -> None:
    program = pulse.stream(attention([*SCORES, *MEANS]), pulse=1)
    lanes, alone = program.spawn_many(16), [program.spawn() for _ in range(16)]
    for step in range(4):
        x = floats(f"lanes{step}", 16, 1, BANDS, HEADS * CHANNELS)
        expected = np.stack([state.step({"x": lane})["y"] for state, lane in zip(alone, x)])
        np.testing.assert_allclose(lanes.step({"x": x})["y"], expected, 1e-5, 1e-6)
