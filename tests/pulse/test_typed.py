"""The offline model: the oracle, its symbols, what it takes and what it refuses."""

import numpy as np
import pytest

from pulse.dim import TDim
from pulse.errors import FactError, InputError, PulseError
from pulse.facts import Array
from pulse.models import TypedModel
from pulse.ops.concat import Concat
from pulse.ops.elementwise import Elementwise
from pulse.ops.pad import Pad
from pulse.ops.source import Const
from pulse.typed import known_value
from tests.pulse.model_builder import ModelBuilder, pads_of

F = np.float32


def model_of_two_inputs() -> TypedModel:
    builder = ModelBuilder(x="1,2,T", y="1,2,2*T")
    low = builder.conv(builder["y"], 2, stride=2, name="low")
    return builder.model(
        builder.apply("add", low, builder["x"], name="sum"), builder.apply("neg", low, name="other")
    )


def zeros(*shape: int) -> Array:
    return np.zeros(shape, F)


def test_inputs_outputs_and_symbols_are_listed() -> None:
    """They are listed by name, with their facts."""
    model = model_of_two_inputs()
    assert {name: str(fact) for name, fact in model.inputs.items()} == {"x": "1,2,T,f32", "y": "1,2,2*T,f32"}
    assert list(model.outputs) == ["sum", "other"]
    assert [symbol.name for symbol in model.symbols] == ["T"]
    assert model.find_symbol(None) is model.find_symbol("T") is model.find_symbol(model.symbols[0])


def test_run_evaluates_only_fetched_wires() -> None:
    """Any wire may be fetched or fed; what is not needed need not be fed."""
    model = model_of_two_inputs()
    y = np.random.default_rng(0).standard_normal((1, 2, 6)).astype(F)
    (other,) = model.run({"y": y}, ["other"]).values()
    (low,) = model.run({"y": y}, [model.graph.find("low")]).values()
    np.testing.assert_array_equal(other, -low)
    fed = model.run({"low": low, "x": zeros(1, 2, 3)}, ["sum", "low"])
    np.testing.assert_array_equal(fed["sum"], low)
    assert fed["low"] is low
    assert set(model.run({"x": zeros(1, 2, 3), "y": y})) == {"sum", "other"}
    with pytest.raises(InputError, match=r"input x \(1,2,T,f32\) is not fed"):
        model.run({"y": y})
    with pytest.raises(PulseError, match="unknown wire 'z'"):
        model.run({"y": y}, ["z"])


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({"x": zeros(2, 3), "y": zeros(1, 2, 6)}, r"x: expected rank 3 \(1,2,T\), got \(2, 3\)"),
        ({"x": zeros(1, 3, 3), "y": zeros(1, 2, 6)}, r"x: shape \(1, 3, 3\) does not fit 1,2,T"),
        ({"x": zeros(1, 2, 3), "y": zeros(1, 2, 5)}, r"y: shape \(1, 2, 5\) does not fit 1,2,2\*T"),
        ({"x": zeros(1, 2, 3), "y": zeros(1, 2, 6).astype(np.float64)}, "y: expected f32, got f64"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(feeds: dict[str, Array], message: str) -> None:
    """Rank, shape and type must match, and all inputs must have one length."""
    with pytest.raises(InputError, match=message):
        model_of_two_inputs().run(feeds)


def test_one_array_is_taken_for_one_input_only() -> None:
    """A model of two inputs refuses one array."""
    builder = ModelBuilder(x="1,2,T")
    assert builder.model(builder.apply("relu", builder["x"])).run(zeros(1, 2, 3))["relu"].shape == (1, 2, 3)
    with pytest.raises(InputError, match="has 2 inputs, feed them by name: x, y"):
        model_of_two_inputs().run(zeros(1, 2, 3))


def test_lengths_that_break_an_assumption_are_refused() -> None:
    """Reflection needs more frames than it adds."""
    builder = ModelBuilder(x="1,2,T")
    model = builder.model(builder.pad(builder["x"], (3, 0), "reflect"))
    assert model.run(zeros(1, 2, 4))["pad"].shape == (1, 2, 7)
    with pytest.raises(InputError, match=r"the model needs .*T.*, which T=3 does not satisfy"):
        model.run(zeros(1, 2, 3))


def test_symbols_are_read_off_linear_dims() -> None:
    """The dims are 2*T+3, and two symbols in one shape."""
    builder = ModelBuilder(x="2*T+3,U")
    model = builder.model(builder.apply("relu", builder["x"]))
    env = model.bind({"x": zeros(9, 5)})
    assert {symbol.name: value for symbol, value in env.items()} == {"T": 3, "U": 5}
    with pytest.raises(InputError, match="does not fit"):
        model.bind({"x": zeros(8, 5)})


def test_with_outputs_and_copy_leave_the_model_alone() -> None:
    """Only what the outputs need is kept; inputs stay."""
    model = model_of_two_inputs()
    before = len(model.graph.nodes)
    part = model.with_outputs(["low"])
    assert list(part.outputs) == ["low"]
    assert list(model.outputs) == ["sum", "other"]
    assert len(model.graph.nodes) == before
    assert not any(node.name in ("sum", "other") for node in part.graph.nodes)
    part.graph.check()
    assert list(model.copy().outputs) == list(model.outputs)


def test_a_fact_error_names_the_node_and_its_inputs() -> None:
    """The names serve to find the node in the file."""
    builder = ModelBuilder(x="1,2,T", y="1,3,T")
    with pytest.raises(FactError, match=r"join \(Concat\): .*\[reads x: 1,2,T,f32; y: 1,3,T,f32\]"):
        builder.add("join", Concat(2), builder["x"], builder["y"])
    with pytest.raises(FactError, match=r"met \(add\)"):
        builder.add("met", Elementwise("add"), builder["x"], builder["y"])


def test_known_values_are_folded_while_wiring() -> None:
    """Constants become constants; large ones are left alone."""
    builder = ModelBuilder(x="1,2,T")
    constant = builder.constant(np.ones((1, 2, 1), F))
    twice = builder.apply("add", constant, constant, name="twice")
    assert isinstance(builder.graph.node(twice).op, Const)
    np.testing.assert_array_equal(known_value(builder.graph, twice), np.full((1, 2, 1), 2, F))
    wide = builder.add("wide", Pad(pads_of((0, 0), (0, 0), (0, 1 << 25))), constant)
    assert known_value(builder.graph, wide) is None
    assert known_value(builder.graph, builder["x"]) is None
    sizes = builder.constant(np.array([builder.length(builder["x"]), TDim.of(1)], dtype=object))
    assert known_value(builder.graph, sizes) is None


def test_declutter_and_pulsify_are_steps_of_the_model() -> None:
    """Each step returns a new value."""
    model = model_of_two_inputs()
    assert model.declutter() is not model
    assert model.pulsify(pulse=2).pulse == 2
