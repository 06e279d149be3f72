"""Operators that are declared in one place and computed in another."""

from collections.abc import Iterator

import numpy as np
import pytest

import pulse
from pulse.errors import FactError, InputError, LoadError, PulsifyError
from pulse.extend import Pointwise, operator
from pulse.facts import Array
from pulse.onnx import registry
from pulse.tensorflow import register_kernel, register_op
from pulse.tensorflow.own_operators import OWN_OPERATORS, OwnOperator
from tests.noise import normal_noise
from tests.pulse.tensorflow.graphs import F32, I32, Call, GraphDefBuilder


@pytest.fixture(autouse=True)
def registers() -> Iterator[None]:
    """Remove the operators that a test registers when it ends."""
    translators, registered = dict(registry.USER_TRANSLATORS), dict(OWN_OPERATORS)
    yield
    registry.USER_TRANSLATORS.clear()
    registry.USER_TRANSLATORS.update(translators)
    OWN_OPERATORS.clear()
    OWN_OPERATORS.update(registered)


def zero_out() -> OwnOperator:
    operator = register_op("ZeroOut", inputs="to_zero:i32", outputs="zeroed:i32", shape=lambda shape: shape)

    @register_kernel("ZeroOut")
    def kernel(x: Array) -> Array:
        y = np.zeros_like(x)
        y.flat[:1] = x.flat[:1]
        return y

    return operator


def graph() -> GraphDefBuilder:
    builder = GraphDefBuilder()
    builder.place("x", -1, dtype=I32)
    builder.node("y", "ZeroOut", "x")
    return builder


def test_the_first_number_stays() -> None:
    operator = zero_out()
    assert operator([5, 4, 3, 2, 1]).tolist() == [5, 0, 0, 0, 0]
    assert operator(np.zeros(0, np.int32)).tolist() == []
    typed = pulse.load(graph().data).model.analyse()
    assert typed.run(np.int32([5, 4, 3]))["y"].tolist() == [5, 0, 0]
    assert pulse.tensorflow.load(graph().data).session().run("y", {"x": []}).tolist() == []


def test_own_operators_in_functions_are_read_by_output_names() -> None:
    register_op("Parts", "x:f32", "low:f32, high:f32", shape=lambda shape: [shape, shape])

    @register_kernel("Parts", "numba")
    def kernel(x: Array) -> tuple[Array, Array]:
        return np.minimum(x, np.float32(0)), np.maximum(x, np.float32(0))

    builder = GraphDefBuilder()
    builder.place("x", -1)
    builder.function("f", [("a", F32)], [("parts", "Parts", ("a",))], {"y": "parts:high:0"})
    builder.node("y", "PartitionedCall", "x", f=Call("f"))
    x = normal_noise(5)
    assert np.array_equal(pulse.load(builder.data).model.analyse().run(x)["y"], np.maximum(x, 0))


def test_own_operators_take_named_attributes_and_need_a_relation() -> None:
    register_op("Scaled", "x:any", "y:any", attributes={"factor": 2.0})
    register_kernel("Scaled")(lambda x, factor: x * x.dtype.type(factor))
    builder = GraphDefBuilder()
    builder.place("x", 1, -1)
    builder.node("y", "Scaled", "x", factor=3.0)
    typed = pulse.load(builder.data).model.analyse()
    assert np.array_equal(typed.run(normal_noise(1, 4))["y"], 3 * normal_noise(1, 4))
    with pytest.raises(PulsifyError, match="how it depends on time is not declared"):
        typed.pulsify()
    register_op("Again", "x:f32", "y:f32", stream=lambda facts, axes: Pointwise((axes[0] or 0,)))
    register_kernel("Again")(lambda x: x + np.float32(1))
    builder.node("z", "Again", "x")
    model = pulse.load(builder.data).model.analyse().with_outputs(["z"])
    pulse.verify(model, backend="numpy").require()


def test_wrong_types_of_inputs_are_refused() -> None:
    operator = zero_out()
    with pytest.raises(InputError, match=r"ZeroOut: to_zero 'text' is not of type i32"):
        operator("text")
    with pytest.raises(InputError, match="2 inputs for to_zero"):
        operator([1], [2])
    builder = graph()
    builder.proto.node[0].attr["dtype"].type = 1
    with pytest.raises(FactError, match="and i32 is declared"):
        pulse.load(builder.data).model.analyse()


def test_wrong_types_shapes_and_kernels_are_refused() -> None:
    operator = zero_out()
    register_kernel("ZeroOut")(lambda x: x[:1])
    with pytest.raises(InputError, match="its kernel returns zeroed as 1,i32, and 3,i32 is declared"):
        operator([1, 2, 3])
    bare = register_op("Bare", "x:f32", "y:f32")
    with pytest.raises(InputError, match="it has no kernel"):
        bare([1.0])


def test_declarations_are_checked() -> None:
    with pytest.raises(LoadError, match="is not a name and a type"):
        register_op("Odd", "x", "y:f32")
    with pytest.raises(LoadError, match="already exists"):
        register_op("Relu", "x:f32", "y:f32")
    with pytest.raises(LoadError, match="no operator is declared"):
        register_kernel("Nothing")
    zero_out()
    with pytest.raises(LoadError, match="give one of numpy, numba"):
        register_kernel("ZeroOut", "fortran")


def test_a_translator_is_registered_as_for_onnx() -> None:
    operator("tensorflow::Passing")(lambda node: node.input(0))
    builder = GraphDefBuilder()
    builder.place("x", -1)
    builder.node("p", "Passing", "x")
    builder.node("y", "Neg", "p", T=F32)
    assert pulse.load(builder.data).model.analyse().run(np.float32([1, 2]))["y"].tolist() == [-1, -2]
