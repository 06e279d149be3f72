"""Small recurrent layers that do not depend on each other become one instruction; their outputs do not change."""

import numpy as np
import onnx
import pytest

import pulse
from pulse.facts import Array
from pulse.program.native.native_program import NativeProgram
from tests.pulse.cases.build import floats, model, node
from tests.pulse.cases.scan import body

FRAMES = 9


def weights(name: str, directions: int, hidden: int, features: int) -> dict[str, Array]:
    return {
        f"{name}_w": floats(f"{name}w", directions, 3 * hidden, features),
        f"{name}_r": floats(f"{name}r", directions, 3 * hidden, hidden),
        f"{name}_b": floats(f"{name}b", directions, 6 * hidden),
    }


def gru(name: str, x: str, y: str, hidden: int, directions: int = 1, more: str = "") -> onnx.NodeProto:
    direction = "bidirectional" if directions == 2 else "forward"
    inputs = f"{x} {name}_w {name}_r {name}_b"
    attributes = {"direction": direction, "hidden_size": hidden, "linear_before_reset": 1}
    layer = node("GRU", inputs, f"{y} {y}_h", **attributes)
    if more:
        layer.input.extend(["", more])
    return layer


def gru_kernels_of_proved(proto: onnx.ModelProto, pulse_frames: int) -> list[str]:
    """The kernels of the GRUs of a program that was proved to stream as offline."""
    report = pulse.verify(proto, pulse=pulse_frames, lengths=(1, 7, 12))
    assert report.equal, report
    program = pulse.stream(proto, pulse=pulse_frames)
    assert isinstance(program, NativeProgram)
    return [row.kernel for row in program.instructions if row.kernel.startswith("gru")]


@pytest.mark.parametrize(
    ("hidden", "kernel"), [(1, "gru_fours"), (4, "gru_fours"), (5, "gru_eights"), (8, "gru_eights")]
)
@pytest.mark.parametrize("frames", [1, 3])
def test_both_directions_within_a_frame_are_one_instruction(hidden: int, kernel: str, frames: int) -> None:
    nodes = [gru("a", "x", "both", hidden, 2), node("Add", "both both_h")]
    nodes.insert(1, node("Unsqueeze", "both_h first", "wide"))
    nodes[2] = node("Add", "both wide")
    constants = {**weights("a", 2, hidden, 3), "first": np.array([0])}
    proto = model(nodes, {"x": floats("x", 6, FRAMES, 3)}, constants, stream={"x": 1})
    assert gru_kernels_of_proved(proto, frames) == [kernel]


def test_layers_in_the_body_of_a_scan_are_merged_too() -> None:
    layers = [gru("a", "x_in", "a", 4), gru("b", "x_in", "b", 4), node("Add", "a b", "y_out")]
    scan = node("Scan", "x", "y", body=body(layers, "x_in", "y_out"), num_scan_inputs=1)
    constants = {**weights("a", 1, 4, 3), **weights("b", 1, 4, 3)}
    proto = model([scan], {"x": floats("x", FRAMES, 6, 2, 3)}, constants, stream={"x": 0})
    assert gru_kernels_of_proved(proto, 2) == ["gru_fours"] * 2


def grouped_layers(hidden: int, directions: int, stream: int) -> onnx.ModelProto:
    """Two layers on the halves of the features, joined, then two more on the halves of the result."""
    constants: dict[str, Array] = {"axis": np.array([2]), "middle": np.array([hidden]), "zero": np.array([0])}
    constants |= {"end": np.array([2 * hidden]), "first": np.array([1])}
    nodes: list[onnx.NodeProto] = []
    for layer, x in enumerate(("x", "mixed0")):
        for half, (start, stop) in enumerate((("zero", "middle"), ("middle", "end"))):
            name = f"g{layer}{half}"
            constants |= weights(name, directions, hidden, hidden)
            nodes.append(node("Slice", f"{x} {start} {stop} axis", f"{name}_x"))
            nodes.append(gru(name, f"{name}_x", f"{name}_y", hidden, directions))
            nodes.append(node("ReduceSum", f"{name}_y first", f"{name}_s", keepdims=0))
        nodes.append(node("Concat", f"g{layer}0_s g{layer}1_s", f"c{layer}", axis=2))
        nodes.append(node("Tanh", f"c{layer}", "y" if layer else "mixed0"))
    fed = {"x": floats("x", 6, FRAMES, 2 * hidden)}
    return model(nodes, fed, constants, stream={"x": stream})


@pytest.mark.parametrize(("hidden", "kernel"), [(4, "gru_fours"), (7, "gru_eights")])
def test_pairs_of_layers_within_a_frame_are_merged_if_they_fit(hidden: int, kernel: str) -> None:
    """The second pair reads the first. Two layers of two directions fit into a vector of 16 if each takes 4."""
    assert gru_kernels_of_proved(grouped_layers(hidden, 2, 1), 2) == [kernel] * (2 if hidden == 4 else 4)


@pytest.mark.parametrize("hidden", [3, 8])
@pytest.mark.parametrize("frames", [1, 3])
def test_pairs_of_layers_over_the_stream_are_merged(hidden: int, frames: int) -> None:
    assert (
        gru_kernels_of_proved(grouped_layers(hidden, 1, 0), frames)
        == ["gru_fours" if hidden == 3 else "gru_eights"] * 2
    )


def test_layers_of_more_than_eight_units_stay_separate() -> None:
    assert gru_kernels_of_proved(grouped_layers(9, 1, 0), 1) == ["gru"] * 4


def test_a_layer_without_siblings_stays_alone() -> None:
    alone = model(
        [gru("a", "x", "y", 4)], {"x": floats("x", FRAMES, 2, 3)}, weights("a", 1, 4, 3), stream={"x": 0}
    )
    assert gru_kernels_of_proved(alone, 1) == ["gru"]


@pytest.mark.parametrize(
    ("hidden", "expected"), [(4, ["gru_fours"]), (3, ["gru", "gru"])], ids=["equal", "unequal"]
)
def test_layers_of_unequal_sizes_stay_separate(hidden: int, expected: list[str]) -> None:
    """Equal ones with the same readers are merged."""
    nodes = [gru("a", "x", "p", 4), gru("b", "x", "q", hidden)]
    nodes += [node("ReduceSum", f"{y} last", f"{y}_s", keepdims=1) for y in "pq"]
    nodes += [node("Add", "p_s q_s", "s"), node("Tanh", "s")]
    constants = {**weights("a", 1, 4, 3), **weights("b", 1, hidden, 3), "last": np.array([3])}
    proto = model(nodes, {"x": floats("x", FRAMES, 2, 3)}, constants, stream={"x": 0})
    assert gru_kernels_of_proved(proto, 1) == expected


def test_layers_whose_outputs_are_the_models_stay_separate() -> None:
    """An output of the model with the axis of directions is a view of the layer's output, so the layers are merged."""
    constants = {**weights("a", 1, 4, 3), **weights("b", 1, 4, 3), "directions": np.array([1])}
    layers = [gru("a", "x", "p", 4), gru("b", "x", "q", 4)]
    squeezed = [node("Squeeze", "p directions", "y"), node("Squeeze", "q directions", "z")]
    for nodes, outputs, expected in (
        ([*layers, *squeezed], "y z", ["gru"] * 2),
        (layers, "p q", ["gru_fours"]),
    ):
        proto = model(nodes, {"x": floats("x", FRAMES, 2, 3)}, constants, stream={"x": 0}, outputs=outputs)
        assert gru_kernels_of_proved(proto, 1) == expected


@pytest.mark.parametrize("is_constant", [True, False])
def test_layers_with_and_without_an_initial_state_are_merged(is_constant: bool) -> None:
    """A state that is constant, one that may come from an input, and none."""
    constants = {
        **weights("a", 1, 4, 3),
        **weights("b", 1, 4, 3),
        **weights("c", 1, 4, 3),
        "k": floats("k", 1, 2, 4),
    }
    nodes = [
        gru("a", "x", "p", 4, more="k" if is_constant else "h0"),
        gru("b", "x", "q", 4, more="k"),
        gru("c", "x", "r", 4),
        node("Sum", "p q r", "s"),
        node("Tanh", "s"),
    ]
    fed = {"x": floats("x", FRAMES, 2, 3)} | ({} if is_constant else {"h0": floats("h0", 1, 2, 4)})
    assert gru_kernels_of_proved(model(nodes, fed, constants, stream={"x": 0}), 2) == ["gru_fours"]


def test_alternately_dependent_layers_are_merged_in_pairs() -> None:
    """B reads A, and C reads D: A and D are one instruction, then B and C; never all four."""
    names = ("a", "b", "c", "d")
    constants = {key: value for name in names for key, value in weights(name, 1, 4, 4).items()}
    constants["one"] = np.array([1])
    order = [("a", "x"), ("d", "x"), ("b", "a_s"), ("c", "d_s")]
    nodes: list[onnx.NodeProto] = []
    for name, x in order:
        nodes.append(gru(name, x, f"{name}_y", 4))
        nodes.append(node("Squeeze", f"{name}_y one", f"{name}_s"))
    nodes.append(node("Sum", "a_s b_s c_s d_s", "s"))
    nodes.append(node("Tanh", "s"))
    proto = model(nodes, {"x": floats("x", FRAMES, 2, 4)}, constants, stream={"x": 0})
    assert gru_kernels_of_proved(proto, 2) == ["gru_fours", "gru_fours"]
