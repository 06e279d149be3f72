"""Graphs written by hand: three ways to write one, parameters, errors."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.build import (
    ELU,
    FC,
    GELU,
    GRU,
    LSTM,
    RNN,
    Add,
    AvgPool1D,
    AvgPool2D,
    AvgPool3D,
    BatchNorm1D,
    BatchNorm3D,
    Concat,
    Connector,
    Conv1D,
    Conv2D,
    Conv3D,
    ConvDepthWise1D,
    ConvTranspose1D,
    ConvTranspose2D,
    ConvTranspose3D,
    ConvTransposeDepthWise1D,
    Div,
    Dropout,
    GenericOperator,
    GraphView,
    HardSwish,
    Identity,
    LayerNorm,
    LeakyReLU,
    MatMul,
    MaxPool1D,
    MaxPool2D,
    MaxPool3D,
    Mul,
    Pad,
    Parallel,
    Pow,
    PReLU,
    Producer,
    ReduceMean,
    ReLU,
    Reshape,
    Sequential,
    Sigmoid,
    Slice,
    Softmax,
    Softmin,
    Softplus,
    Split,
    Squeeze,
    Tanh,
    Transpose,
    Unsqueeze,
)
from pulse.errors import InputError, PulsifyError
from tests.noise import normal_noise
from tests.pulse.build.edges import edges


def block() -> tuple[object, ...]:
    return (
        Conv1D(2, 4, 3, "conv", padding_dims=[2, 0]),
        ReLU("relu"),
        Conv1D(4, 4, 1, "point"),
        Add("add"),
        Tanh("tanh"),
    )


def by_calls() -> GraphView:
    conv, relu, point, add, tanh = block()
    x = Connector("x", "1,2,T")
    y = conv(x)
    return tanh(add(point(relu(y)), y)).graph()


def by_structures() -> GraphView:
    conv, relu, point, add, tanh = block()
    merged = Sequential([Parallel([[relu, point], Identity("same")]), add])
    return Sequential([conv, merged, tanh])


def by_edges() -> GraphView:
    conv, relu, point, add, tanh = block()
    conv.add_child(relu).add_child(point).add_child(add, out=0, in_=0)
    conv.add_child(add, out=0, in_=1)
    add.add_child(tanh)
    return GraphView([conv, relu, point, add, tanh])


def test_three_ways_give_one_graph() -> None:
    calls, lines = by_calls(), by_edges()
    assert edges(calls) == edges(lines)
    assert {node.name for node in calls} == {"conv", "relu", "point", "add", "tanh"}
    structures = by_structures()
    through = {edge for edge in edges(structures) if "same" not in (edge[0], edge[2])}
    assert through | {("conv", 0, "add", 1)} == edges(calls)  # the identity stands for a wire
    x = normal_noise(1, 2, 9)
    results = [next(iter(view.forward(x).values())) for view in (calls, structures, lines)]
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


@pytest.mark.parametrize("make", [by_calls, by_structures, by_edges])
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_a_graph_by_hand_streams(make: Callable[[], Any], backend: str) -> None:
    model = make().graph({"x": "1,2,T"})
    pulse.verify(model, pulse=4, backend=backend).require()
    assert pulse.load(model).analyse().outputs["tanh"].rank == 3


def test_deep_nesting_agrees_with_manual_wiring() -> None:
    def inception(seed: int) -> GraphView:
        branches = [
            Conv1D(4, 2, 1, seed=seed),
            [Conv1D(4, 2, 1, seed=seed), Parallel([[ReLU(), Sigmoid()], Tanh()]), Concat(2, 1)],
            [MaxPool1D(3, padding_dims=1), Conv1D(4, 2, 1, seed=seed)],
        ]
        return Sequential([Parallel(branches), Concat(3, 1), Conv1D(8, 4, 1, seed=seed)])

    deep = Sequential([inception(1), [inception(2), [ReLU()]]])
    x = normal_noise(1, 4, 11)
    (y,) = deep.forward(x).values()

    def inception_by_numpy(x: np.ndarray, seed: int) -> np.ndarray:
        def conv(cin: int, cout: int, value: np.ndarray) -> np.ndarray:
            return next(iter(GraphView([Conv1D(cin, cout, 1, seed=seed)]).forward(value).values()))

        first = conv(4, 2, x)
        second = np.concatenate([1 / (1 + np.exp(-np.maximum(first, 0))), np.tanh(first)], 1)
        wide = np.pad(x, [(0, 0), (0, 0), (1, 1)], constant_values=-np.inf)
        third = conv(4, 2, np.maximum(np.maximum(wide[..., :-2], wide[..., 1:-1]), wide[..., 2:]))
        return conv(8, 4, np.concatenate([first, second, third], 1))

    np.testing.assert_allclose(
        y, np.maximum(inception_by_numpy(inception_by_numpy(x, 1), 2), 0), rtol=1e-5, atol=1e-6
    )
    pulse.verify(deep.graph("1,4,T"), pulse=3, backend="numpy").require()


def test_parameters_are_given_or_drawn_from_a_seed() -> None:
    w, b = normal_noise(4, 2, 3), normal_noise(4)
    conv = Conv1D(2, 4, 3, weight=w, bias=b)
    x = normal_noise(1, 2, 5)
    (y,) = GraphView([conv]).forward(x).values()
    expected = sum(np.einsum("oc,ct->ot", w[:, :, k], x[0, :, k : k + 3]) for k in range(3)) + b[:, None]
    np.testing.assert_allclose(y[0], expected, rtol=1e-5, atol=1e-5)
    first, same, other = (Conv1D(2, 4, 3, seed=seed).parent(1) for seed in (1, 1, 2))
    assert np.array_equal(first.op.value, same.op.value)
    assert not np.array_equal(first.op.value, other.op.value)


def test_shared_parameters_are_stored_once_and_states_separately() -> None:
    gru = GRU(2, 3, "gru")
    twin = gru.share()
    assert twin is not gru
    assert twin.op is gru.op
    assert [a is b for a, b in zip(gru.parents(), twin.parents())] == [True] * 3
    first, second = gru(Connector("a", "T,1,2")), twin(Connector("b", "T,1,2"))
    view = first.graph(second)
    assert len(view.parameters()) == 3
    model = view.graph()
    alone = GRU(2, 3).share()(Connector("a", "T,1,2")).graph().graph()
    assert pulse.cost_report(model).parameters == pulse.cost_report(alone).parameters
    pulse.verify(model, pulse=2, backend="numpy").require()
    program = pulse.stream(model, pulse=1, backend="numpy")
    state = program.spawn()
    same = normal_noise(1, 1, 2)
    state.step({"a": same, "b": np.zeros_like(same)})
    a, b = state.step({"a": same, "b": same}).values()
    assert not np.allclose(a, b)


def test_a_node_called_twice_shares_its_parameters() -> None:
    conv = Conv1D(1, 2, 1)
    x = Connector("x", "1,1,T")
    view = Add()(conv(x), conv(x)).graph()
    convolutions = [node for node in view if node.type == "Conv"]
    assert len(convolutions) == 2
    assert convolutions[0].op is convolutions[1].op
    assert len(view.parameters()) == 2


def four_nodes() -> tuple[Any, Any, Any, Any]:
    """Return a split, two functions of its parts, and their concatenation."""
    split = Split([1, 3], axis=1, name="split")
    left, right, both = ReLU("left"), Tanh("right"), Concat(2, 1, "both")
    split.add_child(left, out=1)
    split.add_child(right, out=0)
    left.add_child(both, in_=1)
    right.add_child(both, in_=0)
    return split, left, right, both


def test_nodes_know_parents_and_children_by_slot() -> None:
    split, left, right, both = four_nodes()
    assert set(split.children()) == {left, right}
    assert split.children(0) == [right]
    assert split.children(1) == [left]
    assert both.parents() == [right, left]
    assert both.parent(1) is left
    assert split.category(0) == "data"
    assert split.category(1) == "param"


def test_views_know_their_input_output_and_inner_nodes() -> None:
    split, left, right, both = four_nodes()
    view = GraphView([split, left, right, both])
    assert view.input_nodes() == [split]
    assert view.output_nodes() == [both]
    assert set(view.inner_nodes()) == {left, right}


def test_softmin_is_the_softmax_of_the_negative() -> None:
    x = normal_noise(2, 5)
    (y,) = Softmin(axis=1).forward(x).values()
    (z,) = GraphView([Softmax(axis=1)]).forward(-x).values()
    assert np.array_equal(y, z)


@pytest.mark.parametrize(
    ("part", "shape"),
    [
        pytest.param(lambda: ConvTranspose1D(2, 3, 4, stride_dims=2), "1,2,T", id="ConvTranspose1D"),
        pytest.param(lambda: ConvDepthWise1D(2, 3, padding_dims=1), "1,2,T", id="ConvDepthWise1D"),
        pytest.param(lambda: BatchNorm1D(2, scale=[1, 2], mean=[0.5, 0]), "1,2,T", id="BatchNorm1D"),
        pytest.param(lambda: AvgPool1D(3, stride_dims=2, padding_dims=1), "1,2,T", id="AvgPool1D"),
        pytest.param(
            lambda: [GRU(2, 3, batch_first=True), Reshape([0, 0, -1]), FC(3, 2), Dropout()],
            "1,T,2",
            id="GRU and FC",
        ),
        pytest.param(
            lambda: [Transpose([0, 2, 1]), FC(2, 2, no_bias=True), Softmax()], "1,2,T", id="Transpose and FC"
        ),
        pytest.param(
            lambda: [Conv2D(1, 2, [3, 3], padding_dims=[0, 1, 0, 1]), ReLU()], "1,1,T,4", id="Conv2D"
        ),
        pytest.param(lambda: Conv3D(2, 2, [3, 1, 2], stride_dims=[1, 2, 1]), "1,2,T,3,4", id="Conv3D"),
        pytest.param(
            lambda: ConvTranspose2D(2, 3, [3, 2], stride_dims=[2, 1], groups=1),
            "1,2,T,4",
            id="ConvTranspose2D",
        ),
        pytest.param(
            lambda: ConvTransposeDepthWise1D(2, 3, output_padding=1, stride_dims=2),
            "1,2,T",
            id="ConvTransposeDepthWise1D",
        ),
        pytest.param(lambda: ConvTranspose3D(1, 2, [2, 1, 1]), "1,1,T,3,4", id="ConvTranspose3D"),
        pytest.param(
            lambda: [MaxPool3D([2, 1, 2]), AvgPool3D([3, 2, 1])], "1,2,T,3,4", id="MaxPool3D and AvgPool3D"
        ),
        pytest.param(
            lambda: [MaxPool2D([3, 2], padding_dims=[1, 0]), AvgPool2D(2, count_include_pad=True)],
            "1,2,T,4",
            id="MaxPool2D and AvgPool2D",
        ),
        pytest.param(lambda: [BatchNorm3D(2, variance=[0.5, 2]), ReLU()], "1,2,T,3,4", id="BatchNorm3D"),
        pytest.param(
            lambda: [ELU(0.5), HardSwish(), LeakyReLU(0.1), GELU(), Tanh(), Sigmoid()],
            "1,2,T",
            id="activations",
        ),
        pytest.param(lambda: [Parallel([Softplus(), PReLU(2, 3)]), Mul()], "1,2,T", id="PReLU and Mul"),
        pytest.param(lambda: [Parallel([[Sigmoid(), Sigmoid()], Tanh()]), Pow()], "1,2,T", id="Pow"),
        pytest.param(lambda: [Parallel([Tanh(), [Softplus(), Softplus()]]), Div()], "1,2,T", id="Div"),
        pytest.param(
            lambda: [Parallel([[Transpose([0, 2, 1])], Identity()]), MatMul()], "T,3,3", id="MatMul"
        ),
        pytest.param(lambda: [RNN(2, 3), Squeeze([1]), LayerNorm([3])], "T,1,2", id="RNN"),
        pytest.param(lambda: [LSTM(2, 3, no_bias=True), Unsqueeze([0]), ReduceMean([4])], "T,1,2", id="LSTM"),
        pytest.param(lambda: [Pad([2, 0], [2]), Slice([1], [-1], [2])], "1,2,T", id="Pad and Slice"),
        pytest.param(lambda: [Parallel([Sigmoid(), Tanh()]), Concat(2, 1)], "1,2,T", id="Concat"),
        pytest.param(lambda: GenericOperator("Clip"), "1,2,T", id="GenericOperator"),
    ],
)
@pytest.mark.parametrize("backend", ["numpy", "onnxruntime"])
def test_operators_stream(part: Callable[[], Any], shape: str, backend: str) -> None:
    """Offline by definition, streamed by numpy, and by onnxruntime, which has its own operators."""
    pulse.verify(Sequential([part()]).graph(shape), pulse=2, backend=backend).require()


def test_a_softmax_over_time_does_not_stream() -> None:
    with pytest.raises(PulsifyError, match="softmax"):
        pulse.stream(Sequential([Softmax(2)]).graph("1,2,T"), pulse=2)


def test_a_producer_feeds_an_input() -> None:
    scale = Producer([2.0, 3.0], "scale")
    add = Add()
    scale.add_child(add, in_=1)
    (y,) = GraphView([add]).forward(np.ones((1, 2), np.float32)).values()
    assert y.tolist() == [[3.0, 4.0]]


def test_a_parameter_gives_way_to_a_node() -> None:
    conv = Conv1D(1, 1, 1, "conv", no_bias=True)
    Producer(np.full((1, 1, 1), 5, np.float32), "five").add_child(conv, in_=1)
    assert conv.parent(1).name == "five"
    assert conv.category(1) == "param"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(
            lambda: Conv1D(2, 4, 3, stride_dims=0), "conv.*stride_dims.*at least 1", id="stride of 0"
        ),
        pytest.param(
            lambda: Conv1D(3, 4, 3, groups=2), "2 groups do not divide 3", id="groups that do not divide"
        ),
        pytest.param(
            lambda: Conv1D(1, 1, 3, weight=np.zeros((1, 1, 2))),
            r"weight must have the shape \[1, 1, 3\]",
            id="weight of another shape",
        ),
        pytest.param(
            lambda: Conv2D(1, 1, [3]), "kernel_dims has 1 entry for 2 axes", id="kernel of another rank"
        ),
        pytest.param(
            lambda: Conv1D(1, 1, 3, no_bias=True, bias=[0.0]),
            "both a bias and no_bias are given",
            id="bias and no_bias",
        ),
        pytest.param(lambda: Dropout(training=True), "does not train", id="training"),
        pytest.param(lambda: Dropout(1), "1 must be at least 0 and less than 1", id="everything dropped"),
        pytest.param(lambda: Add()(Connector()), "2 data inputs, and 1 connectors", id="too few connectors"),
        pytest.param(lambda: Sequential([]), "at least one part", id="empty sequence"),
        pytest.param(
            lambda: Sequential([ReLU(), Add()]),
            "has 1 output and .* has 2 open inputs",
            id="too many open inputs",
        ),
        pytest.param(
            lambda: Sequential([relu := ReLU(), relu]), "appears twice", id="part that appears twice"
        ),
        pytest.param(
            lambda: ReLU().add_child("relu"), "feeds a node or a view, not 'relu'", id="child that is text"
        ),
        pytest.param(lambda: ReLU()("x"), "called with connectors, not with 'x'", id="call with text"),
        pytest.param(
            lambda: Conv1D(2, 3, "wide"), "kernel_dims must be integers, not 'wide'", id="kernel that is text"
        ),
        pytest.param(
            lambda: Sequential([Producer([1.0]), ReLU()]), "a constant is not a part", id="constant as a part"
        ),
        pytest.param(lambda: Sequential(["relu"]), "made of nodes, views and lists", id="part that is text"),
        pytest.param(lambda: Parallel([ReLU(), Add()]), "read the same inputs", id="parts of unlike inputs"),
        pytest.param(lambda: ReLU().add_child(Add(), in_=2), "no input 2", id="no such input"),
        pytest.param(lambda: ReLU().add_child(Add(), out=1), "no output 1", id="no such output"),
        pytest.param(
            lambda: GenericOperator("LeakyRelu", alhpa=1.0),
            "alhpa' .did you mean alpha",
            id="misspelled attribute",
        ),
        pytest.param(
            lambda: GenericOperator("LeakyRelu", alpha="much"),
            "alpha must be a number",
            id="attribute that is text",
        ),
        pytest.param(lambda: GenericOperator("Foo"), "give its number of inputs", id="unknown operator"),
        pytest.param(lambda: GenericOperator("Relu", inputs=2), "takes 1 to 1 inputs", id="too many inputs"),
        pytest.param(
            lambda: Transpose([0, 1]).set_attributes(perm=0.5),
            "perm must be integers",
            id="permutation of fractions",
        ),
        pytest.param(lambda: GraphView([ReLU(), ReLU()]), "several graphs", id="several graphs"),
        pytest.param(
            lambda: ReLU()(Connector("x")).graph().graph({"y": "1,T"}),
            "unknown input 'y'",
            id="no input of that name",
        ),
        pytest.param(
            lambda: ReLU()(Connector("x")).graph().graph({"x": "1,,T/0"}),
            "input x: the shape",
            id="malformed shape",
        ),
    ],
)
def test_invalid_graphs_and_attributes_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_an_optional_input_is_fed() -> None:
    gru, clip = GRU(2, 3), GenericOperator("Clip")
    Connector("h", "1,1,3").feed(gru, 5)
    assert gru.category(4) == "optional"
    assert gru.category(5) == "data"
    Producer(np.float32(0.5)).add_child(clip, in_=2)
    model = clip(gru(Connector("x", "T,1,2"))).graph().graph()
    assert set(model.inputs) == {"x", "h"}
    feeds = {"x": normal_noise(4, 1, 2), "h": 3 * np.ones((1, 1, 3), np.float32)}
    (y,) = model.analyse().run(feeds).values()
    assert y.max() == 0.5


def test_a_connector_that_another_wire_replaces_is_refused() -> None:
    x = Connector("x", "1,T")
    view = ReLU()(x).graph()
    view(Connector("z", "1,T"))
    with pytest.raises(InputError, match="another wire now feeds"):
        Tanh()(x)


def test_a_circle_and_a_second_parent_are_refused() -> None:
    first, second = Add("one"), ReLU("two")
    first.add_child(second)
    with pytest.raises(InputError, match="close a cycle"):
        second.add_child(first)
    other = ReLU("other")
    with pytest.raises(InputError, match="already reads one"):
        other.add_child(second)
