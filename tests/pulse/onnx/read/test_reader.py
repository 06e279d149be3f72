"""The facts that are read from a file, those that the caller may state, and errors."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from pulse.errors import FactError, InputError, LoadError, PulseError
from pulse.loading.onnx_files import read_onnx
from tests.pulse.cases.build import floats, model, node


def conv_model(dims: list[object], opset: int = 17) -> ModelProto:
    proto = model([node("Conv", "x w", "h"), node("Relu", "h")], {}, {"w": floats("w", 2, 3, 3)}, opset)
    proto.graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, dims))
    return proto


def test_path_bytes_and_proto_agree(tmp_path: Path) -> None:
    proto = conv_model([1, 3, "T"])
    path = tmp_path / "net.onnx"
    onnx.save(proto, path)
    x = floats("x", 1, 3, 9)
    results = [
        read_onnx(source).analyse().run(x)["y"] for source in (path, str(path), path.read_bytes(), proto)
    ]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
    assert read_onnx(path).title == "net"


def test_wires_keep_the_names_of_the_file() -> None:
    typed = read_onnx(conv_model([1, 3, "T"])).analyse()
    assert list(typed.inputs) == ["x"]
    assert list(typed.outputs) == ["y"]
    assert str(typed.outputs["y"]) == "1,2,T-2,f32"
    assert [typed.graph.nodes[node_id].name for node_id in typed.graph.order()] == ["x", "w", "h", "y"]
    assert typed.run(floats("x", 1, 3, 9), ["h"])["h"].shape == (1, 2, 7)


def test_the_lines_of_a_model_are_its_nodes_and_facts() -> None:
    assert read_onnx(conv_model([1, 3, "T"])).lines() == [
        "model case",
        "input x 1,3,T,f32",
        "w = Constant -> 2,3,3,f32",
        "h = Conv(x, w) -> 1,2,T-2,f32",
        "y = Relu(h) -> 1,2,T-2,f32",
        "output y y",
    ]


def test_an_initializer_is_wired_once() -> None:
    proto = model([node("Add", "x w", "h"), node("Mul", "h w")], {"x": floats("x", 3)}, {"w": floats("w", 3)})
    typed = read_onnx(proto).analyse()
    assert sum(typed_node.name.startswith("w") for typed_node in typed.graph.nodes) == 1


def test_metadata_is_kept() -> None:
    proto = conv_model([1, 3, "T"])
    helper.set_model_props(proto, {"rate": "16000"})
    assert read_onnx(proto).analyse().metadata == {"rate": "16000"}


def test_functions_of_the_file_are_inlined() -> None:
    domain = "local"
    body = helper.make_function(
        domain,
        "Twice",
        ["a"],
        ["b"],
        [helper.make_node("Add", ["a", "a"], ["b"])],
        [helper.make_opsetid("", 17)],
    )
    proto = model([helper.make_node("Twice", ["x"], ["y"], domain=domain)], {"x": floats("x", 4)})
    proto.functions.append(body)
    proto.opset_import.append(helper.make_opsetid(domain, 1))
    x = floats("x", 4)
    np.testing.assert_array_equal(read_onnx(proto).analyse().run(x)["y"], x + x)


# inputs that the caller describes


def test_the_shape_of_an_input_is_that_of_the_caller() -> None:
    typed = read_onnx(conv_model([None, 3, None]), {"x": "1,3,T,f32"}).analyse()
    assert str(typed.inputs["x"]) == "1,3,T,f32"
    assert [str(assumption) for assumption in typed.scope.assumptions] == ["(T>=0)"]


def test_the_type_of_an_input_may_be_left_out() -> None:
    proto = model([node("Neg", "x")], {"x": np.arange(4)})
    assert str(read_onnx(proto, {"x": "4"}).analyse().inputs["x"]) == "4,i64"


def test_a_batch_symbol_is_fixed_everywhere() -> None:
    proto = model([node("Add", "x z")], {})
    for name in "xz":
        proto.graph.input.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", "T"]))
    typed = read_onnx(proto, {"x": "1,T"}).analyse()
    assert [str(fact) for fact in typed.inputs.values()] == ["1,T,f32", "1,T,f32"]


def test_odd_names_of_dims_become_symbols() -> None:
    typed = read_onnx(conv_model([1, 3, "audio length"])).analyse()
    assert str(typed.inputs["x"]) == "1,3,audio_length,f32"


def test_unknown_dims_are_refused_with_an_example() -> None:
    with pytest.raises(LoadError, match=r'input x .*axis 0, 2.*inputs=\{"x": "1,3,T"\}'):
        read_onnx(conv_model([None, 3, None])).analyse()


def test_an_input_without_a_shape_is_refused() -> None:
    proto = model([node("Relu", "x")], {})
    proto.graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, None))
    with pytest.raises(LoadError, match="input x: the file states no shape"):
        read_onnx(proto).analyse()
    assert str(read_onnx(proto, {"x": "2,T"}).analyse().outputs["y"]) == "2,T,f32"


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"z": "1,3,T"}, "unknown input 'z'; choose one of x"),
        ({"x": "1,4,T"}, "axis 1 as 4, the file fixes it to 3"),
        ({"x": "1,3"}, "has 2 dims; give 3"),
        ({"x": "1,3,T,i64"}, "asks for i64, the file has f32"),
        ({"x": "1,3,T T"}, "is not a shape such as"),
        ({"x": "1,,T"}, "is not a shape such as"),
        ({"x": "1,3,-1"}, "negative dim"),
    ],
)
def test_wrong_inputs_are_refused(inputs: dict[str, str], message: str) -> None:
    with pytest.raises(LoadError, match=message):
        read_onnx(conv_model([1, 3, "T"]), inputs)


# files that are not what they should be


def test_missing_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="no such file"):
        read_onnx(tmp_path / "none.onnx")


def test_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="is a folder"):
        read_onnx(tmp_path)


@pytest.mark.parametrize("data", [b"", b"RIFF1234WAVEfmt ", b"\x08\x07", b"<html></html>"])
def test_files_that_are_not_onnx_are_refused(data: bytes) -> None:
    with pytest.raises(LoadError, match="not an ONNX model"):
        read_onnx(data)


def test_truncated_files_are_refused(tmp_path: Path) -> None:
    data = conv_model([1, 3, "T"]).SerializeToString()
    for size in range(0, len(data), 7):
        path = tmp_path / "cut.onnx"
        path.write_bytes(data[:size])
        with pytest.raises(PulseError) as caught:
            read_onnx(path).analyse()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("opset", [0, 1000])
def test_unknown_opsets_are_refused(opset: int) -> None:
    with pytest.raises(LoadError, match=f"opset {opset} is not supported"):
        read_onnx(conv_model([1, 3, "T"], opset))


def test_a_broken_tensor_is_refused() -> None:
    proto = conv_model([1, 3, "T"])
    proto.graph.initializer[0].raw_data = b"1234"
    with pytest.raises(LoadError, match="initializer w: its data cannot be read"):
        read_onnx(proto)


def test_nodes_may_be_in_any_order() -> None:
    """Every reader of ONNX takes sorted nodes; onnxruntime takes any order too, and its quantiser writes others."""
    body = helper.make_graph(
        [node("Tanh", "s", "t"), node("Add", "h x", "s"), node("Identity", "t", "last")],
        "body",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("h", "x")],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("last", "t")],
    )
    nodes = [
        node("Mul", "b gain", "y"),
        node("Scan", "first a", "last b", body=body, num_scan_inputs=1),
        node("Relu", "x", "a"),
    ]
    constants = {"gain": np.float32(2), "first": np.zeros(2, np.float32)}
    feeds = {"x": floats("x", 5, 2)}
    shuffled = model(nodes, feeds, constants, 17, {"x": 0})
    body.node.sort(key=lambda n: ["Add", "Tanh", "Identity"].index(n.op_type))
    ordered = model(
        [nodes[2], node("Scan", "first a", "last b", body=body, num_scan_inputs=1), nodes[0]],
        feeds,
        constants,
        17,
        {"x": 0},
    )
    outputs = [read_onnx(proto).analyse().run(feeds)["y"] for proto in (shuffled, ordered)]
    np.testing.assert_array_equal(*outputs)
    assert np.ptp(outputs[0]) > 0


def test_nodes_in_a_circle_are_refused() -> None:
    with pytest.raises(LoadError, match="a reads 'b', which no node before it defines"):
        read_onnx(
            model(
                [node("Add", "x b", "a"), node("Relu", "a", "b"), node("Relu", "b", "y")],
                {"x": floats("x", 3)},
            )
        )


def test_a_value_that_nothing_makes_is_refused() -> None:
    with pytest.raises(LoadError, match="Relu_y reads 'z', which no node before it defines"):
        read_onnx(model([node("Relu", "z")], {}))


# weights in a file next to the model


def save_with_external_weights(folder: Path, location: str) -> Path:
    proto = conv_model([1, 3, "T"])
    path = folder / "net.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    stored = onnx.load(path, load_external_data=False)
    for entry in stored.graph.initializer[0].external_data:
        if entry.key == "location":
            entry.value = location
    path.write_bytes(stored.SerializeToString())
    return path


def test_weights_next_to_the_model_are_read(tmp_path: Path) -> None:
    x = floats("x", 1, 3, 9)
    output = read_onnx(save_with_external_weights(tmp_path, "w.bin")).analyse().run(x)["y"]
    np.testing.assert_array_equal(output, read_onnx(conv_model([1, 3, "T"])).analyse().run(x)["y"])


@pytest.mark.parametrize("location", ["../w.bin", "/etc/hostname"])
def test_weights_outside_of_the_folder_are_refused(tmp_path: Path, location: str) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    with pytest.raises(LoadError, match="outside the model's folder"):
        read_onnx(save_with_external_weights(inner, location))


def test_missing_weights_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"'gone\.bin' is missing"):
        read_onnx(save_with_external_weights(tmp_path, "gone.bin"))


def test_bytes_have_no_folder_for_weights(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="load the model from its path"):
        read_onnx(save_with_external_weights(tmp_path, "w.bin").read_bytes())


# operators, outputs and attributes that are not supported


def test_all_missing_operators_are_named_at_once() -> None:
    nodes = [
        node("StringSplit", "x", "a"),
        node("StringSplit", "x", "b"),
        node("Multinomial", "x", "c"),
        helper.make_node("Fused", ["x"], ["d"], domain="com.example"),
    ]
    proto = model(nodes, {"x": floats("x", 3, 3)}, outputs="a b c d")
    proto.opset_import.append(helper.make_opsetid("com.example", 1))
    with pytest.raises(LoadError) as caught:
        read_onnx(proto).analyse()
    assert str(caught.value) == (
        "case: operators that are not supported: Multinomial (1 node, first c); StringSplit (2 nodes, first a); "
        "com.example::Fused (1 node, first d); pulse.operator adds one, see docs/extend.md"
    )


def test_operators_that_no_output_needs_do_not_matter() -> None:
    proto = model([node("NonZero", "x", "a"), node("Relu", "x")], {"x": floats("x", 3)})
    assert list(read_onnx(proto).analyse().outputs) == ["y"]


def test_extra_outputs_are_refused() -> None:
    proto = model([node("Relu", "x", "y i")], {"x": floats("x", 1, 1, 4)}, outputs="y i")
    with pytest.raises(LoadError, match=r"y \(Relu\): its outputs i are not supported"):
        read_onnx(proto).analyse()


def test_wrong_attribute_types_are_refused() -> None:
    proto = model([node("Concat", "x x", axis=1.5)], {"x": floats("x", 2, 2)})
    with pytest.raises(LoadError, match="attribute axis has the wrong type"):
        read_onnx(proto).analyse()


def test_a_missing_attribute_is_refused() -> None:
    proto = model([node("Concat", "x x")], {"x": floats("x", 2, 2)})
    with pytest.raises(LoadError, match="attribute axis is missing"):
        read_onnx(proto).analyse()


def test_a_range_of_unknown_length_is_refused() -> None:
    nodes = [node("ReduceMax", "x", "n", keepdims=0), node("Range", "zero n one")]
    ends = {"zero": np.float32(0), "one": np.float32(1)}
    proto = model(nodes, {"x": floats("x", 4)}, ends, stream={"x": 0})
    with pytest.raises(LoadError, match=r"y \(Range\): its length is computed while running"):
        read_onnx(proto).analyse()


def test_a_shape_from_data_is_refused() -> None:
    proto = model([node("Reshape", "x s")], {"x": floats("x", 4), "s": np.array([2, 2])})
    with pytest.raises(
        LoadError,
        match=r"y \(Reshape\): its shape is computed from the values of input s; ",
    ):
        read_onnx(proto).analyse()


def test_facts_that_do_not_fit_name_the_node() -> None:
    proto = model([node("MatMul", "x w")], {"x": floats("x", 2, 3)}, {"w": floats("w", 4, 2)})
    with pytest.raises(FactError, match=r"y \(MatMul\).*reads x: 2,3,f32; w: 4,2,f32"):
        read_onnx(proto).analyse()


def test_a_bound_of_unclear_sign_is_assumed_to_be_positive() -> None:
    nodes = [node("Shape", "x", "s"), node("Sub", "s two", "e"), node("Slice", "x zero e")]
    ends = {"two": np.array([2]), "zero": np.array([0])}
    typed = read_onnx(model(nodes, {"x": floats("x", 5)}, ends, stream={"x": 0})).analyse()
    assert str(typed.outputs["y"]) == "T-2,f32"
    assert typed.run(floats("x", 5))["y"].shape == (3,)
    with pytest.raises(InputError, match="the model needs"):
        typed.run(floats("x", 1))


def test_a_constant_that_is_an_input_too_is_a_constant() -> None:
    proto = model([node("Add", "x w")], {"x": floats("x", 4)})
    proto.graph.initializer.append(numpy_helper.from_array(floats("w", 4), "w"))
    proto.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [4]))
    assert list(read_onnx(proto).analyse().inputs) == ["x"]
