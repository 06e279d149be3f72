"""Small recurrent layers that do not wait for each other become one instruction, and give what each gave."""

import numpy as np
import onnx
import pytest

import pulse
from pulse.facts import Array
from pulse.program.backends.native_program import NativeProgram
from tests.pulse.cases.build import floats, model, node

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


def kernels(proto: onnx.ModelProto, pulse_frames: int) -> list[str]:
    """The kernels of the program, after proving that it streams as offline."""
    report = pulse.verify(proto, pulse=pulse_frames, lengths=(1, 7, 12))
    assert report.equal, report
    program = pulse.stream(proto, pulse=pulse_frames)
    assert isinstance(program, NativeProgram)
    return [row.kernel for row in program.instructions if row.kernel.startswith("gru")]


@pytest.mark.parametrize(
    ("hidden", "kernel"), [(1, "gru_fours"), (4, "gru_fours"), (5, "gru_eights"), (8, "gru_eights")]
)
def test_both_directions_within_a_frame(hidden: int, kernel: str) -> None:
    nodes = [gru("a", "x", "both", hidden, 2), node("Add", "both both_h")]
    nodes.insert(1, node("Unsqueeze", "both_h first", "wide"))
    nodes[2] = node("Add", "both wide")
    constants = {**weights("a", 2, hidden, 3), "first": np.array([0])}
    proto = model(nodes, {"x": floats("x", 6, FRAMES, 3)}, constants, stream={"x": 1})
    for frames in (1, 3):
        assert kernels(proto, frames) == [kernel]


def grouped_layers(hidden: int, directions: int, stream: int, more: str = "") -> onnx.ModelProto:
    """Two layers on the halves of the features, joined, and the same again behind it."""
    constants: dict[str, Array] = {"axis": np.array([2]), "middle": np.array([hidden]), "zero": np.array([0])}
    constants |= {"end": np.array([2 * hidden]), "first": np.array([1])}
    nodes: list[onnx.NodeProto] = []
    for layer, x in enumerate(("x", "mixed0")):
        for half, (start, stop) in enumerate((("zero", "middle"), ("middle", "end"))):
            name = f"g{layer}{half}"
            constants |= weights(name, directions, hidden, hidden)
            nodes.append(node("Slice", f"{x} {start} {stop} axis", f"{name}_x"))
            nodes.append(gru(name, f"{name}_x", f"{name}_y", hidden, directions, more))
            nodes.append(node("ReduceSum", f"{name}_y first", f"{name}_s", keepdims=0))
        nodes.append(node("Concat", f"g{layer}0_s g{layer}1_s", f"c{layer}", axis=2))
        nodes.append(node("Tanh", f"c{layer}", "y" if layer else "mixed0"))
    fed = {"x": floats("x", 6, FRAMES, 2 * hidden)}
    if more == "h0":
        constants["h0"] = floats("h0", directions, 6 if stream == 0 else FRAMES, hidden)[:, :1]
    return model(nodes, fed, constants, stream={"x": stream})


@pytest.mark.parametrize(("hidden", "kernel"), [(4, "gru_fours"), (7, "gru_eights")])
def test_groups_within_a_frame(hidden: int, kernel: str) -> None:
    """The second pair waits for the first; both directions of both groups share a vector where they fit."""
    assert kernels(grouped_layers(hidden, 2, 1), 2) == [kernel] * (2 if hidden == 4 else 4)


@pytest.mark.parametrize("hidden", [3, 8])
@pytest.mark.parametrize("frames", [1, 3])
def test_groups_over_the_stream(hidden: int, frames: int) -> None:
    assert kernels(grouped_layers(hidden, 1, 0), frames) == ["gru_fours" if hidden == 3 else "gru_eights"] * 2


def test_layers_that_do_not_fit_stay_separate() -> None:
    """Layers of other sizes, of more units, of one direction only, and those whose outputs are the model's."""
    for hidden, kernel in ((9, ["gru"] * 4), (4, ["gru_fours"] * 2)):
        assert kernels(grouped_layers(hidden, 1, 0), 1) == kernel
    alone = model(
        [gru("a", "x", "y", 4)], {"x": floats("x", FRAMES, 2, 3)}, weights("a", 1, 4, 3), stream={"x": 0}
    )
    assert kernels(alone, 1) == ["gru"]
    both = [gru("a", "x", "y", 4), gru("b", "x", "z", 4)]
    constants = {**weights("a", 1, 4, 3), **weights("b", 1, 4, 3)}
    proto = model(both, {"x": floats("x", FRAMES, 2, 3)}, constants, stream={"x": 0}, outputs="y z")
    assert kernels(proto, 1).count("gru_fours") <= 1


@pytest.mark.parametrize("is_constant", [True, False])
def test_initial_states(is_constant: bool) -> None:
    """One that is constant, one that an input gives, and none."""
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
    assert kernels(model(nodes, fed, constants, stream={"x": 0}), 2) == ["gru_fours"]


def test_layers_that_wait_for_each_other_in_turns() -> None:
    """A before B, and the second B before the second A: one pair at most runs side by side."""
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
    assert set(kernels(proto, 2)) == {"gru_fours"}
