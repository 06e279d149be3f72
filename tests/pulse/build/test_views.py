"""Views of graphs: parts, overlaps, copies, replacement, unknown operators."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import pulse
from pulse.build import (
    GRU,
    Add,
    BatchNorm2D,
    Connector,
    Conv1D,
    Conv2D,
    Function,
    GraphView,
    Node,
    Parallel,
    ReLU,
    Sequential,
    Sigmoid,
    Tanh,
)
from pulse.errors import InputError, PulsifyError
from pulse.extend import Pointwise, TypedFact
from tests.noise import normal_noise


def row() -> tuple[GraphView, dict[str, Node]]:
    nodes = [Conv1D(1, 2, 3, "conv"), ReLU("relu"), Conv1D(2, 2, 3, "second"), Tanh("tanh")]
    return Sequential(nodes), {node.name: node for node in nodes}


def test_a_part_runs_alone() -> None:
    whole, nodes = row()
    part = GraphView([nodes["relu"], nodes["second"]])
    assert [wire.node.name for wire in part.inputs()] == ["conv"]
    x = normal_noise(1, 1, 9)
    before = whole.graph("1,1,T").analyse().run({"x": x}, ["conv", "second"])
    (y,) = part.forward(before["conv"]).values()
    assert np.array_equal(y, before["second"])
    model = part.graph("1,2,T")
    assert [node.op.name for node in model.graph.nodes if node.inputs] == ["Relu", "Conv"]


def test_an_edit_through_one_view_is_seen_in_the_others() -> None:
    whole, nodes = row()
    part, other = GraphView([nodes["relu"], nodes["second"]]), GraphView([nodes["conv"], nodes["relu"]])
    new = Sigmoid("sigmoid")
    GraphView([nodes["relu"]]).replace(new)
    assert [node.name for node in whole] == ["conv", "second", "tanh", "sigmoid"]
    assert new in part
    assert new in other
    assert nodes["relu"] not in other
    assert new.parents() == [nodes["conv"]]
    assert new.children() == [nodes["second"]]
    x = normal_noise(1, 1, 9)
    names = ["conv", "sigmoid"]
    values = whole.graph("1,1,T").analyse().run({"x": x}, names)
    np.testing.assert_allclose(values["sigmoid"], 1 / (1 + np.exp(-values["conv"])), rtol=1e-6)
    pulse.verify(whole.graph("1,1,T"), pulse=2, backend="numpy").require()


def test_a_view_takes_the_place_of_a_view() -> None:
    whole, nodes = row()
    old = GraphView([nodes["relu"], nodes["second"]])
    old.replace(Sequential([Conv1D(2, 3, 1, "in"), Conv1D(3, 2, 1, "out")]))
    assert [node.name for node in whole] == ["conv", "tanh", "in", "out"]
    (y,) = whole.forward(normal_noise(1, 1, 9)).values()
    assert y.shape == (1, 2, 7)
    with pytest.raises(InputError, match="1 input and 1 output cannot be replaced by one with 2"):
        whole.replace(Add())


def test_a_clone_is_independent() -> None:
    whole, _ = row()
    x = normal_noise(1, 1, 9)
    (before,) = whole.forward(x).values()
    clone, shared = whole.clone(), whole.clone(share="params")
    for original, copied, same in zip(whole.parameters(), clone.parameters(), shared.parameters()):
        assert np.array_equal(original.op.value, copied.op.value)
        assert not np.shares_memory(original.op.value, copied.op.value)
        assert np.shares_memory(original.op.value, same.op.value)
    for node in clone.parameters():
        node.op.value[...] = 0
    (after,) = whole.forward(x).values()
    (zero,) = clone.forward(x).values()
    assert np.array_equal(before, after)
    assert not zero.any()
    with pytest.raises(InputError, match="share"):
        whole.clone(share="all")


def test_a_view_is_called_as_a_node_is() -> None:
    whole, _ = row()
    y = whole(Connector("sound", "1,1,T"))
    view = Add()(y, y).graph()
    x = normal_noise(1, 1, 9)
    (doubled,) = view.forward(x).values()
    (once,) = whole.forward(x).values()
    assert np.array_equal(doubled, once + once)


def test_a_named_view_follows_rewriting() -> None:
    conv, norm = Conv2D(2, 3, [3, 1], "conv"), BatchNorm2D(3, name="norm", scale=[1, 2, 3])
    whole = Sequential([Sequential([conv, norm], name="encoder"), Sequential([ReLU("relu")], name="rest")])
    typed = whole.graph("1,2,T,4").analyse()
    assert "conv" in [node.name for node in typed.view("encoder")]
    simplified = typed.declutter()
    (fused,) = simplified.view("encoder")
    assert fused.op.name == "Conv"
    assert fused.name not in ("conv", "relu")
    assert [node.name for node in simplified.view("rest")] == ["relu"]
    with pytest.raises(pulse.PulseError, match="unknown view 'other'; choose one of encoder, rest"):
        simplified.view("other")


def test_two_views_of_one_name_are_refused() -> None:
    whole = Sequential([Sequential([ReLU()], name="a"), Sequential([Tanh()], name="a")])
    with pytest.raises(InputError, match="two views are called a"):
        whole.graph("1,T")


def test_the_receptive_field_equals_a_perturbation() -> None:
    whole, _ = row()
    field = whole.receptive_field("1,1,T")["tanh"]
    x = normal_noise(1, 1, 20)
    (y,) = whole.forward(x).values()
    reached: list[int] = []
    for index in range(20):
        other = x.copy()
        other[..., index] += 1
        (z,) = whole.forward(other).values()
        if not np.array_equal(y[..., 5], z[..., 5]):
            reached.append(index - 5)
    assert [reached[0], reached[-1]] == [field.first, field.last] == [0, 4]
    with pytest.raises(PulsifyError, match="in reverse direction the first frame needs the last one"):
        Sequential([GRU(1, 1, direction="reverse")]).receptive_field("T,1,1")


def test_nothing_runs_backward() -> None:
    whole, _ = row()
    assert not hasattr(whole, "backward")
    assert not hasattr(whole.graph("1,1,T"), "backward")


def unknown() -> bytes:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="relu"),
        helper.make_node("Foo", ["a"], ["b"], domain="my", gain=2.0, name="foo"),
        helper.make_node("Tanh", ["b"], ["y"], name="tanh"),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, "T"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "unknown", [x], [y])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def gain(x: np.ndarray) -> np.ndarray:
    return x * np.float32(2)


def pointwise(inputs: list[TypedFact], axes: list[int | None]) -> Pointwise:
    assert axes[0] is not None
    return Pointwise((axes[0],))


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(lambda: Function(gain, relation=pointwise, name="gain"), id="function"),
        pytest.param(
            lambda: Sequential([Conv1D(3, 3, 1, weight=2 * np.eye(3)[:, :, None], no_bias=True)]),
            id="sequence",
        ),
    ],
)
def test_something_takes_the_place_of_an_unknown_operator(part: Callable[[], Any]) -> None:
    view = GraphView.of(pulse.load(unknown()).model)
    assert view.unsupported_operators() == ["my::Foo"]
    assert view["b"].attributes == {"gain": 2.0}
    with pytest.raises(pulse.LoadError, match="my::Foo"):
        view.forward(normal_noise(1, 3, 5))
    GraphView([view["b"]]).replace(part())
    assert view.unsupported_operators() == []
    model = view.graph()
    assert model.graph.output_names == ["y"]
    x = normal_noise(1, 3, 5)
    (y,) = view.forward(x).values()
    np.testing.assert_allclose(y, np.tanh(2 * np.maximum(x, 0)), rtol=1e-6)
    pulse.verify(model, pulse=2, backend="numpy").require()


def test_a_function_without_a_relation_does_not_stream() -> None:
    view = GraphView.of(pulse.load(unknown()).model)
    GraphView([view["b"]]).replace(Function(gain, name="gain"))
    assert view.forward(normal_noise(1, 3, 5))["y"].shape == (1, 3, 5)
    with pytest.raises(PulsifyError, match="a function without a relation"):
        pulse.stream(view.graph(), pulse=2)


def test_a_function_with_facts_changes_the_shape() -> None:
    def ends(x: np.ndarray) -> np.ndarray:
        return x[:, :1]

    def facts(inputs: list[TypedFact]) -> list[TypedFact]:
        (x,) = inputs
        return [TypedFact(x.dtype, (x.shape[0], x.shape[1] - x.shape[1] + 1, x.shape[2]))]

    view = Sequential([ReLU(), Function(ends, facts=facts, relation=pointwise), Tanh()])
    pulse.verify(view.graph("1,3,T"), pulse=2, backend="numpy").require()


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda x: x[:1], id="shorter"),
        pytest.param(lambda x: x.astype(np.int64), id="another type"),
        pytest.param(lambda x: (x, x), id="two results"),
        pytest.param(lambda x: "x", id="text"),
    ],
)
def test_a_function_that_gives_something_else_is_refused(function: Callable[[Any], Any]) -> None:
    with pytest.raises(InputError, match=r"returns .* but its facts say"):
        Sequential([Function(function)]).forward(normal_noise(2, 3))


def test_a_model_that_was_read_comes_back() -> None:
    whole, _ = row()
    view = GraphView.of(whole.graph("1,1,T"))
    x = normal_noise(1, 1, 9)
    assert np.array_equal(view.forward(x)["tanh"], whole.forward(x)["tanh"])
    assert str(view.graph().analyse().inputs["x"]) == "1,1,T,f32"


def test_built_models_are_verified_and_chained() -> None:
    x = Connector("x", "1,1,T")
    y = Add()(Conv1D(1, 1, 3, "conv", padding_dims=[2, 0])(x), x)
    pulse.verify(y, pulse=2, backend="numpy").require()
    pulse.verify(pulse.chain(y, y.graph()), pulse=2, backend="numpy").require()
    whole, _ = row()
    inner = pulse.load(whole, inputs={"x": "1,1,T"}, outputs=["relu"])
    assert pulse.cost_report(inner).parameters == pulse.cost_report(y).parameters * 2


def test_built_models_are_loaded_with_shapes_and_outputs() -> None:
    node = GRU(4, 3)
    typed = pulse.load(node, inputs={"x": "T,1,4"}).analyse()
    assert [str(fact) for fact in typed.inputs.values()] == ["T,1,4,f32"]
    whole, _ = row()
    inner = pulse.load(whole, inputs={"x": "1,1,T"}, outputs=["relu"])
    assert list(inner.analyse().outputs) == ["relu"]
    with pytest.raises(pulse.LoadError, match=r"no size for axis 0, 2.*inputs="):
        pulse.stream(whole, pulse=2)
    with pytest.raises(pulse.LoadError, match="constants= is an option for reading a file"):
        pulse.load(whole, constants={"x": 1})


def test_inputs_are_called_as_they_were_named() -> None:
    """Any parts are joined in the order in which the result reads them; copies of a part keep the name of the wire."""
    noisy, far = Connector("noisy", "1,1,T"), Connector("far", "1,1,T")
    view = Add()(Conv1D(1, 1, 1, "conv")(noisy), ReLU("relu")(far)).graph()
    assert list(pulse.load(view).analyse().inputs) == ["noisy", "far"]
    branches = Sequential([Parallel([Conv1D(1, 2, 1), [ReLU(), Conv1D(1, 2, 1)]]), Add()])
    assert list(pulse.load(branches, inputs={"x": "1,1,T"}).analyse().inputs) == ["x"]
    whole, nodes = row()
    (y,) = GraphView([nodes["relu"]]).clone().forward({"conv": normal_noise(1, 2, 4)}).values()
    assert np.array_equal(y, np.maximum(normal_noise(1, 2, 4), 0))
    assert repr(whole) == "<GraphView conv, relu, second, tanh>"
    assert repr(noisy) == "<Connector noisy>"
