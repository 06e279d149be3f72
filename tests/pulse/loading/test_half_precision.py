"""Models in f16 compute in f32; a cast to f16 that they have still rounds."""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import pulse
from pulse.facts import Array
from pulse.loading.half_precision import with_f32_for_f16
from pulse.program.native.native_program import NativeProgram
from streaming import Session
from tests.noise import normal_noise

HALF = np.float16


def half(*shape: int) -> Array:
    """Noise that f16 holds exactly."""
    return (0.3 * normal_noise(*shape)).astype(HALF)


def model_of(
    nodes: Sequence[onnx.NodeProto],
    constants: Mapping[str, Array],
    shapes: Mapping[str, Sequence[int | str]],
    outputs: Mapping[str, Sequence[int | str]],
    code: int = TensorProto.FLOAT16,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "half",
        [helper.make_tensor_value_info(name, code, shape) for name, shape in shapes.items()],
        [helper.make_tensor_value_info(name, code, shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def layers(dtype: type[np.floating]) -> onnx.ModelProto:
    """A convolution, a normalisation, a GRU and a product, all of one type."""
    parameters = {
        "w": half(64, 8, 3),
        "gain": half(64),
        "shift": half(64),
        "gru_w": half(1, 48, 64),
        "gru_r": half(1, 48, 16),
        "gru_b": half(1, 96),
        "out": half(16, 64),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[2, 0]),
        helper.make_node("Transpose", ["c"], ["t"], perm=[2, 0, 1]),
        helper.make_node("LayerNormalization", ["t", "gain", "shift"], ["n"]),
        helper.make_node("GRU", ["n", "gru_w", "gru_r", "gru_b"], ["g"], hidden_size=16),
        helper.make_node("Squeeze", ["g", "direction"], ["s"]),
        helper.make_node("MatMul", ["s", "out"], ["y"]),
    ]
    constants: dict[str, Array] = {name: value.astype(dtype) for name, value in parameters.items()}
    constants["direction"] = np.array([1])
    code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return model_of(nodes, constants, {"x": [1, 8, "T"]}, {"y": ["T", 1, 64]}, code)


def test_a_model_in_f16_is_the_one_in_f32_with_these_weights() -> None:
    models = [pulse.load(layers(dtype)) for dtype in (HALF, np.float32)]
    assert [str(model.analyse().inputs["x"]) for model in models] == ["1,8,T,f32"] * 2
    programs = [model.compile(4) for model in models]
    x = half(1, 8, 24).astype(np.float32)
    outputs = [
        np.concatenate([step["y"] for step in (state.step(x[..., i : i + 4]) for i in range(0, 24, 4))])
        for state in (program.spawn() for program in programs)
    ]
    np.testing.assert_array_equal(*outputs)
    for program in programs:
        assert isinstance(program, NativeProgram)
        assert any(row.kernel.endswith("_f16") for row in program.instructions)
    pulse.verify(layers(HALF), 4).require()


def test_arrays_of_f16_are_taken_for_f32() -> None:
    model, x = pulse.load(layers(HALF)), half(1, 8, 8)
    wide, program = x.astype(np.float32), model.compile(4)
    for run in (
        model.analyse().run,
        lambda x: program.spawn().step(x[..., :4]),
        lambda x: program.spawn().step({"x": x[..., :4]}),
        lambda x: program.spawn().flush(x[..., :3])[0],
        lambda x: program.spawn_many(2).step(np.stack([x[..., :4], x[..., 4:]])),
        lambda x: Session(program).push(x),
    ):
        np.testing.assert_array_equal(run(x)["y"], run(wide)["y"])
    with pytest.raises(pulse.InputError, match="f64"):
        program.spawn().step(wide[..., :4].astype(np.float64))


def test_f16_is_the_type_of_the_file_itself() -> None:
    """Numpy evaluates its operators in f16."""
    model = pulse.load(layers(HALF))
    assert str(model.model.analyse().inputs["x"]) == "1,8,T,f16"
    assert with_f32_for_f16(model.analyse()) is model.analyse()


@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_casts_to_f16_round(backend: str) -> None:
    """Converters put them around operators that stay in f32."""
    nodes = [
        helper.make_node("Cast", ["x"], ["h"], to=TensorProto.FLOAT16),
        helper.make_node("Mul", ["h", "k"], ["m"]),
        helper.make_node("Cast", ["m"], ["again"], to=TensorProto.FLOAT16),
        helper.make_node("Cast", ["again"], ["y"], to=TensorProto.FLOAT),
    ]
    shape = {"x": [1, "T"]}, {"y": [1, "T"]}
    model = model_of(nodes, {"k": np.array(3, HALF)}, *shape, TensorProto.FLOAT)
    x = np.concatenate([100 * normal_noise(40), [1e-7, 3e-8, 65519, 65520, 1e9, -1e9, 0.0, -0.0]])
    x = x.astype(np.float32)[None]
    with np.errstate(over="ignore"):
        expected = x.astype(HALF).astype(np.float32) * np.float32(3)
    step = pulse.stream(model, x.shape[1], backend=backend).spawn().step(x)["y"]
    np.testing.assert_array_equal(step, expected)
    np.testing.assert_array_equal(np.signbit(step), np.signbit(expected))
    pulse.verify(model, 5, backend=backend).require()


def test_a_cast_between_f16_and_integers_rounds_once() -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["whole"], to=TensorProto.INT64),
        helper.make_node("Cast", ["whole"], ["h"], to=TensorProto.FLOAT16),
        helper.make_node("Cast", ["h"], ["y"], to=TensorProto.FLOAT),
    ]
    model = model_of(nodes, {}, {"x": [1, "T"]}, {"y": [1, "T"]}, TensorProto.FLOAT)
    x = np.array([[2047.5, 2049, 2051, 4098, 5e4, -2049]], np.float32)
    step = pulse.stream(model, x.shape[1]).spawn().step(x)["y"]
    np.testing.assert_array_equal(step, x.astype(np.int64).astype(HALF).astype(np.float32))


def test_the_bits_of_f16_are_those_of_f16() -> None:
    nodes = [
        helper.make_node("BitCast", ["x"], ["b"], to=TensorProto.INT16),
        helper.make_node("BitCast", ["b"], ["y"], to=TensorProto.FLOAT16),
    ]
    model = model_of(nodes, {}, {"x": [1, "T"]}, {"y": [1, "T"]})
    model.opset_import[0].version = 26
    typed = with_f32_for_f16(pulse.load(model).model.analyse())
    x = np.array([[1, -2.5, 6e-8, 3.14159]], np.float32)
    outputs = typed.run({"x": x}, ["b", "y"])
    np.testing.assert_array_equal(outputs["b"], x.astype(HALF).view(np.int16))
    np.testing.assert_array_equal(outputs["y"], x.astype(HALF).astype(np.float32))


def scan_of_f16() -> onnx.ModelProto:
    """A decaying sum as a loop, whose state and body are in f16."""
    body = helper.make_graph(
        [
            helper.make_node("Mul", ["state", "decay"], ["kept"]),
            helper.make_node("Add", ["kept", "frame"], ["next"]),
            helper.make_node("Identity", ["next"], ["out"]),
        ],
        "body",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT16, [3]) for name in ("state", "frame")],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT16, [3]) for name in ("next", "out")],
        [numpy_helper.from_array(np.array(0.5, HALF), "decay")],
    )
    nodes = [helper.make_node("Scan", ["first", "x"], ["last", "y"], body=body, num_scan_inputs=1)]
    return model_of(nodes, {"first": np.ones(3, HALF)}, {"x": ["T", 3]}, {"y": ["T", 3]})


def test_bodies_of_loops_compute_in_f32() -> None:
    model = pulse.load(scan_of_f16())
    x = normal_noise(6, 3)
    state, expected = np.ones(3), list[Array]()
    for frame in x:
        state = state * 0.5 + frame
        expected.append(state)
    np.testing.assert_allclose(model.analyse().run({"x": x})["y"], expected, rtol=1e-5, atol=1e-6)
    pulse.verify(model, 2).require()


def test_states_of_a_model_of_chunks_are_f32() -> None:
    nodes = [
        helper.make_node("Concat", ["past", "x"], ["window"], axis=2),
        helper.make_node("Conv", ["window", "w"], ["y"]),
        helper.make_node("Slice", ["window", "from", "to", "axis"], ["next_past"]),
    ]
    constants = {"w": half(2, 2, 3), "from": np.array([4]), "to": np.array([6]), "axis": np.array([2])}
    file = model_of(
        nodes,
        constants,
        {"x": [1, 2, 4], "past": [1, 2, 2]},
        {"y": [1, 2, 4], "next_past": [1, 2, 2]},
    )
    model = pulse.load(file, chunking=pulse.Chunking(axes={"x": 2, "y": 2}))
    program = model.compile()
    assert {str(port.dtype) for port in (*program.inputs, *program.outputs)} == {"float32"}
    pulse.verify(model).require()
