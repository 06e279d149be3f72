"""The budget of a file's analysis: each limit, how it is reported and raised, and that nothing is counted twice."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

import pulse
from pulse.errors import LoadError, PulseWarning
from pulse.ops.control import Loop
from pulse.support.budget import Budget, Spending, count_spending, current_spending
from tests.invariants.hostile_models import counting_loop, model
from tests.noise import normal_noise
from tests.pulse.cases.build import node

ONE, FIRST, YES = np.ones(1, np.float32), np.zeros(1, np.float32), np.array(True)
BASE = {"one": ONE, "first": FIRST, "yes": YES}


def loop_model(
    iterations: int, step: Sequence[NodeProto] = (node("Add", "v one", "w"),), condition: str = "c1"
) -> ModelProto:
    """X + the state of a loop after this many iterations."""
    nodes = [
        node("Loop", "iterations yes first", "r", body=counting_loop(step, condition)),
        node("Add", "x r"),
    ]
    return model(nodes, BASE | {"iterations": np.array(iterations), "far": np.full(1, 1e9, np.float32)})


def with_constants(count: int, size: int) -> ModelProto:
    """X + the sums of constants of this many elements, which no file has to store."""
    nodes = [node("Expand", "one size", "wide"), *(node("Add", "wide one", f"w{k}") for k in range(count))]
    nodes += [node("ReduceSum", f"w{k}", f"s{k}", keepdims=0) for k in range(count)]
    nodes.append(node("Sum", " ".join(["x", *(f"s{k}" for k in range(count))])))
    return model(nodes, BASE | {"size": np.array([size])})


def feeds(frames: int = 5) -> np.ndarray:
    return normal_noise(1, 2, frames)


def test_nodes_that_loops_unfold_to_are_limited() -> None:
    inner = [node("Relu", "v", f"a{k}") for k in range(50)] + [node("Add", "v one", "w")]
    with pytest.raises(
        LoadError, match=r"r\.body: .* unfold to more than 1000 nodes; .*budget=\{\"nodes\": 10000\}"
    ):
        pulse.load(loop_model(100, inner), budget={"nodes": 1000}).analyse()
    assert pulse.load(loop_model(100, inner)).analyse().spending.nodes >= 5000


def test_nodes_that_functions_unfold_to_are_limited() -> None:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    names = ["a", *(f"v{k}" for k in range(9)), "b"]
    body = [helper.make_node("Relu", [left], [right]) for left, right in pairwise(names)]
    function = helper.make_function("own", "F", ["a"], ["b"], body, opsets)
    calls = [
        helper.make_node("F", [f"y{k}" if k else "x"], [f"y{k + 1}" if k < 9 else "y"], domain="own")
        for k in range(10)
    ]
    proto = model(calls, functions=[function])
    assert pulse.load(proto, budget={"nodes": 100}).analyse().inputs
    with pytest.raises(LoadError, match=r"y9 \(F\)|y\d \(F\): .* more than 50 nodes"):
        pulse.load(proto, budget={"nodes": 50})


def test_plain_nodes_are_not_counted() -> None:
    chain = [node("Relu", f"v{k}" if k else "x", f"v{k + 1}") for k in range(300)]
    assert pulse.load(model([*chain, node("Relu", "v300")]), budget={"nodes": 0}).analyse().declutter()


def test_constants_beyond_the_budget_are_computed_at_run_time() -> None:
    proto, x = with_constants(10, 1000), feeds()
    with pytest.warns(
        PulseWarning, match=r"w\d \(.*\) is not computed .*: 1000 elements, .* of 4000 .*\"elements\": 40000"
    ):
        less = pulse.load(proto, budget={"elements": 4000}).analyse()
    whole = pulse.load(proto).analyse()
    assert less.spending.not_folded
    assert not whole.spending.not_folded
    np.testing.assert_array_equal(less.run(x)["y"], whole.run(x)["y"])
    np.testing.assert_array_equal(less.declutter().run(x)["y"], whole.run(x)["y"])


def test_elements_grow_with_what_the_file_stores() -> None:
    stored = np.ones((50, 40), np.float32)
    proto = model([node("Transpose", "w", "t", perm=[1, 0]), node("MatMul", "t w", "m"), node("MatMul", "x m")],
                 {"w": stored}, (1, "T", 40))  # fmt: skip
    typed = pulse.load(proto, budget={"elements": 0}).analyse()
    assert not typed.spending.not_folded
    assert typed.spending.stored == stored.size


def test_the_error_of_a_needed_value_names_the_budget() -> None:
    shape = [node("Expand", "one size", "wide"), node("ReduceSum", "wide", "total", keepdims=0)]
    shape += [
        node("Cast", "total", "n", to=TensorProto.INT64),
        node("Reshape", "n minus", "n1"),
        node("Expand", "x n1"),
    ]
    proto = model(shape, BASE | {"size": np.array([3000]), "minus": np.array([-1])}, (1, 1, 1))
    with pytest.raises(
        LoadError, match=r"y \(Expand\): .*wide \(\w+\) is not computed before running: 3000 elements"
    ):
        pulse.load(proto, budget={"elements": 1000}).analyse()


def test_a_loop_of_known_turns_beyond_the_budget_is_left_to_run() -> None:
    proto, x = loop_model(5000), feeds()
    assert np.array_equal(pulse.load(proto).analyse().run(x)["y"], x + 5000)
    with pytest.warns(
        PulseWarning, match=r"r \(Loop\) .*: it takes about .* seconds, .* 0\.01 .*\{\"seconds\":"
    ):
        left = pulse.load(proto, budget={"seconds": 0.01}).analyse()
    assert any(isinstance(node.op, Loop) for node in left.graph.nodes)
    assert np.array_equal(left.run(x)["y"], x + 5000)


def test_a_loop_that_stops_by_itself_spends_at_most_the_budget() -> None:
    step = [node("Add", "v one", "w"), node("Less", "w far", "go")]
    proto = loop_model(10**6, step, "go")
    with pytest.warns(PulseWarning, match=r"r \(Loop\) is not computed"):
        left = pulse.load(proto, budget={"seconds": 0.5}).analyse()
    assert left.spending.seconds <= 0.5


def test_long_convolutions_are_not_folded() -> None:
    nodes = [node("Expand", "one size", "wide"), node("Conv", "wide taps", "c"), node("Add", "x c")]
    sizes = {"size": np.array([1, 1, 1 << 20]), "taps": np.ones((1, 1, 1 << 19), np.float32)}
    with pytest.warns(PulseWarning, match=r"c \(Conv\) is not computed before running: it takes about"):
        pulse.load(model(nodes, BASE | sizes)).analyse()


def test_lists_beyond_the_budget_are_refused() -> None:
    proto = model([node("HannWindow", "n", "w"), node("Mul", "x w")], {"n": np.array(50_000)})
    with pytest.raises(
        LoadError, match=r"w \(HannWindow\): its size is 50000: .*budget=\{\"elements\": 100000\}"
    ):
        pulse.load(proto, budget={"elements": 10_000}).analyse()


def test_a_repeated_analysis_is_counted_once() -> None:
    read = pulse.load(with_constants(3, 1000), budget={"elements": 5000}).model
    first = read.analyse()
    for _ in range(5):
        again = read.analyse()
        assert again.spending == first.spending
        assert not again.spending.not_folded
        assert again.declutter().spending == first.declutter().spending


def test_nested_reading_counts_in_the_outer_analysis() -> None:
    with count_spending(Spending(Budget(nodes=5))) as outer:
        with count_spending(current_spending()) as inner:
            inner.take_nodes(3, "a")
        assert outer.nodes == 3
        with pytest.raises(LoadError, match=r"b: .* more than 5 nodes"):
            current_spending().take_nodes(3, "b")
    assert current_spending().nodes == 0


@pytest.mark.parametrize(
    ("budget", "match"),
    [
        ({"knots": 3}, "'knots' .did you mean nodes.*; choose one of nodes, elements, seconds"),
        ({"nodes": -1}, r"nodes is -1; give a number, as in budget=\{\"nodes\": 1000000\}"),
        ({"nodes": float("nan")}, "nodes is nan"),
        ({"nodes": "many"}, "nodes is 'many'"),
        (5, "budget must map limits to numbers"),
    ],
)
def test_a_wrong_budget_is_refused(budget: object, match: str) -> None:
    with pytest.raises(LoadError, match=match):
        pulse.load(loop_model(2), budget=budget)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("call", [pulse.stream, pulse.verify])
def test_stream_and_verify_keep_to_the_budget(call: Callable[..., object]) -> None:
    proto = loop_model(100, [node("Relu", "v", "a"), node("Add", "v one", "w")])
    assert pulse.stream(proto, backend="numpy").pulse
    with pytest.raises(LoadError, match="unfold to more than 10 nodes"):
        call(pulse.load(proto, budget={"nodes": 10}))
